# Only the manifest is declared: Snakemake deletes declared outputs before each run, and the
# shards beside it are kept, checked and added to by the command itself.
rule ingest:
    input:
        settings="<results>/config/data/{dataset}.yaml",
        raw=studies.raw_files,
    output:
        manifest="<store>/shards/{dataset}/MANIFEST.json",
    log:
        "<logs>/shards/{dataset}.log",
    benchmark:
        "<benchmarks>/shards/{dataset}.tsv"
    conda:
        "../../envs/ingest.yaml"
    threads: 2
    resources:
        **job,
        mem_mb=2000,
        runtime=30,
    params:
        sources=hash_sources("ingest", "shards"),
    shell:
        "windtunnel ingest --settings {input.settings} --out {output.manifest}"
        " --ranks {threads} > {log} 2>&1"
