rule report:
    input:
        settings="<results>/config/{study}/report.yaml",
        plan="<results>/{study}/plan.json",
        sweep="<results>/{study}/sweep.json",
        checkpoints="<results>/{study}/checkpoints.json",
        latency="<results>/{study}/latency.json",
        models="<results>/{study}/models.json",
        topology=cluster_fact("topology"),
        collectives=cluster_fact("collectives"),
        device=cluster_fact("device"),
    output:
        page=report(
            "<results>/{study}/report.html",
            caption="../report/study.rst",
            category="Studies",
            labels={"study": "{study}", "what": "report"},
        ),
        metrics=report(
            "<results>/{study}/metrics.parquet",
            caption="../report/metrics.rst",
            category="Studies",
            labels={"study": "{study}", "what": "numbers"},
        ),
    log:
        "<logs>/{study}/report.log",
    localrule: True
    conda:
        "../../envs/report.yaml"
    params:
        benchmarks=studies.benchmark_files,
    shell:
        "windtunnel report --settings {input.settings} --plan {input.plan} --sweep {input.sweep}"
        " --checkpoints {input.checkpoints} --latency {input.latency} --models {input.models}"
        " --topology {input.topology} --collectives {input.collectives} --device {input.device}"
        " --benchmarks {params.benchmarks} --out {output.page} --metrics {output.metrics}"
        " 2>&1 | tee {log}"
