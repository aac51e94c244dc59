# A stage's settings are a file of the DAG: an edit in conf/ reaches only the stages
# whose resolved settings it changes.
rule settings:
    output:
        settings="<results>/config/{owner}/{name}.yaml",
    log:
        "<logs>/config/{owner}/{name}.log",
    localrule: True
    conda:
        "../../envs/base.yaml"
    params:
        text=studies.settings_text,
    script:
        "../scripts/write_settings.py"
