# One rule for both files: the collectives are timed on the very nodes that are described.
rule topology:
    input:
        settings="<results>/config/cluster/{partition}.yaml",
    output:
        topology="<store>/cluster/{partition}/topology.json",
        collectives="<store>/cluster/{partition}/collectives.json",
    log:
        "<logs>/cluster/{partition}/topology.log",
    benchmark:
        "<benchmarks>/cluster/{partition}-topology.tsv"
    conda:
        "../../envs/train.yaml"
    threads: measured_threads
    resources:
        **measured,
        mem_mb=1000,
        runtime=10,
        nodes=on_cluster("probe_nodes"),
        tasks=on_cluster("probe_nodes"),
    shell:
        "windtunnel topology --settings {input.settings} --out {output.topology}"
        " --collectives {output.collectives} > {log} 2>&1"
