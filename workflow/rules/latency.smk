rule latency:
    input:
        settings="<results>/config/{study}/latency.yaml",
        sweep="<results>/{study}/sweep.json",
        checkpoints="<results>/{study}/checkpoints.json",
    output:
        latency="<results>/{study}/latency.json",
    log:
        "<logs>/{study}/latency.log",
    benchmark:
        "<benchmarks>/{study}/latency.tsv"
    conda:
        "../../envs/train.yaml"
    threads: measured_threads
    resources:
        **measured,
        mem_mb=2000,
        runtime=20,
        gpu=on_cluster("gpus_per_rank"),
    params:
        sources=studies.sources_of,
    shell:
        "windtunnel latency --settings {input.settings} --sweep {input.sweep}"
        " --checkpoints {input.checkpoints} --out {output.latency} > {log} 2>&1"
