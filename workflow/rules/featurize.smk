rule featurize:
    input:
        settings="<results>/config/features/{features}.yaml",
        shards=studies.shards_of,
    output:
        manifest="<store>/features/{features}/MANIFEST.json",
    log:
        "<logs>/features/{features}.log",
    benchmark:
        "<benchmarks>/features/{features}.tsv"
    conda:
        "../../envs/features.yaml"
    threads: 2
    resources:
        **job,
        mem_mb=2000,
        runtime=30,
    params:
        sources=hash_sources("featurize", "kernels", "native", "shards"),
    shell:
        "windtunnel featurize --settings {input.settings} --shards {input.shards}"
        " --out {output.manifest} > {log} 2>&1"
