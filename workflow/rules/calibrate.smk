rule calibrate:
    input:
        settings="<results>/config/cluster/{partition}.yaml",
    output:
        device="<store>/cluster/{partition}/device.json",
    log:
        "<logs>/cluster/{partition}/calibrate.log",
    benchmark:
        "<benchmarks>/cluster/{partition}-calibrate.tsv"
    conda:
        "../../envs/train.yaml"
    threads: measured_threads
    resources:
        **measured,
        mem_mb=2000,
        runtime=10,
        gpu=on_cluster("gpus_per_rank"),
    shell:
        "windtunnel calibrate --settings {input.settings} --out {output.device} > {log} 2>&1"
