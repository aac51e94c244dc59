# The whole study, in the data's order. Each stage is a rule that calls `windtunnel <stage>`.
from snakemake.utils import min_version

min_version("9.20")  # pathvars, also in a user's module


configfile: "conf/workflow.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/settings.smk"
include: "workflow/rules/ingest.smk"
include: "workflow/rules/featurize.smk"
include: "workflow/rules/topology.smk"
include: "workflow/rules/calibrate.smk"
include: "workflow/rules/trace.smk"
include: "workflow/rules/plan.smk"
include: "workflow/rules/sweep.smk"
include: "workflow/rules/verify_checkpoints.smk"
include: "workflow/rules/latency.smk"
include: "workflow/rules/report.smk"


onstart:
    hold_studies(studies)


rule all:
    default_target: True
    input:
        expand("<results>/{study}/report.html", study=studies.by_name),
