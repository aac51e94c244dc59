# A local rule: the sweep submits its own jobs, so it must hold no allocation while it waits
# for them. Its progress is shown as it comes.
rule sweep:
    input:
        settings="<results>/config/{study}/sweep.yaml",
        plan="<results>/{study}/plan.json",
        features=studies.features_of,
        topology=cluster_fact("topology"),
        # For the partial report alone: a new title runs no trial again.
        report=ancient("<results>/config/{study}/report.yaml"),
    output:
        sweep="<results>/{study}/sweep.json",
    log:
        "<logs>/{study}/sweep.log",
    benchmark:
        "<benchmarks>/{study}/sweep.tsv"
    localrule: True
    conda:
        "../../envs/train.yaml"
    threads: measured_threads
    params:
        sources=studies.sources_of,
        store=lambda wildcards: studies.store,
    shell:
        "windtunnel sweep --settings {input.settings} --plan {input.plan}"
        " --features {input.features} --topology {input.topology}"
        " --store {params.store} --report {input.report} --out {output.sweep} 2>&1 | tee {log}"
