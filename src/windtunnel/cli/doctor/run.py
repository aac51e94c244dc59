"""`windtunnel doctor`: look at this machine, its Slurm and the shared folder, try two nodes, and say what to set."""

import json
import shutil
import socket
import sys
import time
from pathlib import Path

from windtunnel.cli.doctor.across import judge_job
from windtunnel.cli.doctor.cluster import (
    AREA,
    judge_accounting_answer,
    judge_config,
    judge_silence,
    judge_slurm_version,
    judge_switches,
)
from windtunnel.cli.doctor.findings import Finding, Level, find_worst, render_plain, render_text
from windtunnel.cli.doctor.folder import judge_folder, read_folder
from windtunnel.cli.doctor.job import render_script, run_job, run_test_only
from windtunnel.cli.doctor.machine import judge_machine, read_machine
from windtunnel.cli.doctor.partition import (
    choose_partition,
    judge_bounds,
    judge_nodes,
    judge_partition,
    judge_test_only,
    read_fields,
)
from windtunnel.cli.project import read_site
from windtunnel.errors import CommandError
from windtunnel.process import run_command
from windtunnel.settings.base import parse_settings
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.slurm.limits import read_limits
from windtunnel.slurm.scontrol import Partition, read_config, read_nodes, read_partitions, read_switches

_TIMEOUT_S = 60.0
_SACCT = ("sacct", "--noheader", "--allocations", "--starttime=now-1minutes", "--format=JobID")


def run_doctor(*, partition: str, store: Path, wait_s: float, job: bool, as_json: bool) -> int:
    """Print the findings; the exit code is 1 when something will not work."""
    slurm = shutil.which("scontrol") is not None
    findings = [*judge_machine(read_machine(), slurm=slurm), *judge_folder(read_folder(store), shared=slurm)]
    if slurm:
        findings += look_at_cluster(partition, store, wait_s=wait_s, job=job)
    else:
        findings.append(Finding(AREA, "Slurm", "none on this machine: studies run here, with cluster=local"))
    print(json.dumps(render_plain(findings), indent=1) if as_json else render_text(findings), flush=True)
    return 1 if find_worst(findings) is Level.FAIL else 0


def look_at_cluster(wanted: str, store: Path, *, wait_s: float, job: bool) -> list[Finding]:
    """The findings of Slurm, of a partition of it, and with `job` of its nodes."""
    try:
        config, partitions = read_config(), read_partitions()
    except CommandError as error:
        return [judge_silence(str(error))]
    findings = [judge_slurm_version(config.get("SLURM_VERSION", ""))]
    findings += judge_config(config)
    if config.get("AccountingStorageType", "").endswith("slurmdbd"):
        findings.append(_look_at_accounting())
    findings.append(judge_switches(len(read_switches()), config.get("TopologyPlugin", "")))
    site = read_site(Path.cwd())
    chosen, finding = choose_partition(partitions, wanted or str(site.get("partition", "")))
    findings.append(finding)
    if chosen is None:
        return findings
    named = {"partition": chosen.name}
    cluster = parse_settings(ClusterSettings, {**site, **named, "kind": "slurm"}, where="site file")
    return findings + _look_at_partition(chosen, cluster, store, wait_s=wait_s, job=job)


def _look_at_partition(
    partition: Partition, cluster: ClusterSettings, store: Path, *, wait_s: float, job: bool
) -> list[Finding]:
    shown = run_command(["scontrol", "show", "partition", "--oneliner", partition.name], timeout_s=_TIMEOUT_S)
    nodes = read_nodes(partition.nodes)
    limits = read_limits()
    use = limits.resolve(cluster.account, cluster.qos, partition.name)
    findings = [
        *judge_partition(partition, read_fields(shown.stdout), cluster),
        *judge_nodes(nodes, cluster),
        judge_bounds(limits.find_bounds(use), max_array_tasks=limits.max_array_tasks),
    ]
    hosts = [*partition.nodes[:2], socket.gethostname()]
    wanted = min(2, len(partition.nodes))
    asked = run_test_only(render_script(cluster, wanted, folder=store, hosts=hosts))
    findings.append(judge_test_only(asked.code, asked.stderr))
    if asked.code or not job:
        return findings
    told = f"doctor: a job of {wanted} nodes in {partition.name}; waiting at most {wait_s:.0f} s for it"
    print(told, file=sys.stderr, flush=True)
    facts = run_job(cluster, wanted, store=store, hosts=hosts, wait_s=wait_s)
    return [*findings, *judge_job(facts, cluster)]


def _look_at_accounting() -> Finding:
    began = time.monotonic()
    try:
        said = run_command(_SACCT, timeout_s=_TIMEOUT_S, check=False)
    except CommandError as error:
        return judge_accounting_answer(1, str(error), 0.0)
    return judge_accounting_answer(said.code, said.stderr.strip(), time.monotonic() - began)
