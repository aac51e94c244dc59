rule trace:
    input:
        settings="<results>/config/{study}/trace.yaml",
        features=studies.features_of,
    output:
        models="<results>/{study}/models.json",
    log:
        "<logs>/{study}/trace.log",
    benchmark:
        "<benchmarks>/{study}/trace.tsv"
    conda:
        "../../envs/train.yaml"
    resources:
        **job,
        mem_mb=2000,
        runtime=10,
    params:
        sources=studies.sources_of,
    shell:
        "windtunnel trace --settings {input.settings} --features {input.features}"
        " --out {output.models} > {log} 2>&1"
