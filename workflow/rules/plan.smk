rule plan:
    input:
        settings="<results>/config/{study}/plan.yaml",
        features=studies.features_of,
        topology=cluster_fact("topology"),
        collectives=cluster_fact("collectives"),
        device=cluster_fact("device"),
        models="<results>/{study}/models.json",
    output:
        plan="<results>/{study}/plan.json",
    log:
        "<logs>/{study}/plan.log",
    localrule: True
    conda:
        "../../envs/base.yaml"
    params:
        sources=studies.sources_of,
    shell:
        "windtunnel plan --settings {input.settings} --features {input.features}"
        " --topology {input.topology} --collectives {input.collectives} --device {input.device}"
        " --models {input.models} --out {output.plan} 2>&1 | tee {log}"
