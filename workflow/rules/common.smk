import shlex
import sys
from pathlib import Path

from windtunnel.cli.driver import hold_studies, open_studies
from windtunnel.identity import hash_sources

# The `windtunnel` of this very installation, also where its environment is not activated.
shell.prefix(
    f"set -euo pipefail; export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH; "
)

studies = open_studies(config, check=workflow.is_main_process)


pathvars:
    results=studies.results,
    store=studies.store,


wildcard_constraints:
    study="|".join(studies.by_name),
    dataset="[a-z0-9_]+",
    features="[a-z0-9_]+-[0-9a-f]{8}",
    partition=r"[\w+@:=~.%^-]+",


def on_cluster(field):
    """A resource that the cluster's settings give; unset on this machine, and where they are silent."""
    return lambda wildcards: studies.job_setting(wildcards, field)


def cluster_fact(name):
    """The file of that name among the facts of the study's partition."""
    return (
        lambda wildcards: f"<store>/cluster/{studies.of(wildcards).partition}/{name}.json"
    )


def measured_threads(wildcards):
    """A rank's CPUs in a job; here all that Snakemake may use, so that nothing disturbs."""
    rank_cpus = studies.job_setting(wildcards, "cpus_per_rank")
    return rank_cpus or workflow.resource_settings.cores


# What each job asks of Slurm besides its size.
job = dict(
    slurm_partition=on_cluster("partition"),
    slurm_account=on_cluster("account"),
    qos=on_cluster("qos"),
    constraint=on_cluster("constraint"),
)
measured = dict(**job, slurm_extra="--exclusive")  # shares its nodes with nobody
