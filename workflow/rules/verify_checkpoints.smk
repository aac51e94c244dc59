rule verify_checkpoints:
    input:
        sweep="<results>/{study}/sweep.json",
    output:
        checkpoints="<results>/{study}/checkpoints.json",
    log:
        "<logs>/{study}/verify_checkpoints.log",
    benchmark:
        "<benchmarks>/{study}/verify_checkpoints.tsv"
    conda:
        "../../envs/base.yaml"
    resources:
        **job,
        mem_mb=1000,
        runtime=20,
    shell:
        "windtunnel verify-checkpoints --study {wildcards.study} --sweep {input.sweep}"
        " --out {output.checkpoints} > {log} 2>&1"
