"""`windtunnel topology bench`: the fabric between this job's nodes, level by level, with curves and slow parts."""

import json
import os
import socket
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from sys import executable

from pydantic import TypeAdapter

from windtunnel.artifacts import hash_json, to_plain, write_artifact
from windtunnel.device.accelerator import count_accelerators, read_device
from windtunnel.errors import SettingsError
from windtunnel.fabric.bench_cases import BenchPlan, plan_cases
from windtunnel.fabric.bench_report import render_bench
from windtunnel.fabric.graph import find_switch_paths
from windtunnel.fabric.placement import order_hosts
from windtunnel.hostlist import expand_hostlist
from windtunnel.process import run_command
from windtunnel.records.bench import BenchCase, CaseTimings, FabricBench
from windtunnel.records.cluster import Node, Topology
from windtunnel.slurm.scontrol import read_switches
from windtunnel.topology.ranks import LOOPBACK, Measurement, render_hostfile, render_interface, render_srun

_TIMEOUT_S = 3600.0
_LOCAL_RANKS = 2


@dataclass(frozen=True)
class BenchRun:
    """How the ranks of a benchmark are started."""

    hosts: tuple[str, ...]
    slurm: bool
    backend: str
    interface: str
    ranks_per_host: int
    options: tuple[str, ...] = ()


def run_bench(plan: BenchPlan, *, out: Path, interface: str, options: tuple[str, ...] = ()) -> FabricBench:
    """Measure on all nodes of this job, or two ranks of this machine outside one; print, and write `out`.

    Raises SettingsError where there is nothing to measure, CommandError when a rank fails.
    """
    run, paths = _choose_run(plan, interface, options)
    cases = plan_cases(
        run.hosts, paths, BenchPlan(plan.operations, plan.sizes_bytes, plan.pair_bytes, run.ranks_per_host)
    )
    if not cases:
        raise SettingsError(
            f"one rank on {run.hosts[0]} has nobody to talk to: give --ranks-per-host=2, or more nodes"
        )
    hosts, measured = _run_ranks(run, cases, folder=out.parent)
    bench = FabricBench(run.backend, run.interface, hosts, measured)
    write_artifact(out, bench, settings_hash=hash_json(to_plain(plan)))
    print(render_bench(bench), flush=True)
    return bench


def _choose_run(
    plan: BenchPlan, interface: str, options: tuple[str, ...]
) -> tuple[BenchRun, Mapping[str, tuple[str, ...]]]:
    granted = os.environ.get("SLURM_JOB_NODELIST", "")
    devices = count_accelerators()
    slurm = bool(granted)
    names = tuple(expand_hostlist(granted)) if slurm else (socket.gethostname(),)
    paths = find_switch_paths(read_switches()) if slurm else {}
    nodes = tuple(Node(name, 0, 0, 0, "", paths.get(name, ())) for name in names)
    hosts = order_hosts(names, Topology("", "slurm", nodes, None, ""), "leaf")
    nccl = devices > 0 and read_device().kind == "cuda"
    least = devices if nccl else 1 if slurm and len(hosts) > 1 else _LOCAL_RANKS
    ranks_per_host = plan.ranks_per_host if plan.ranks_per_host > 1 else max(1, least)
    return BenchRun(hosts, slurm, "nccl" if nccl else "gloo", interface, ranks_per_host, options), paths


def _run_ranks(
    run: BenchRun, cases: Sequence[BenchCase], *, folder: Path
) -> tuple[tuple[str, ...], tuple[CaseTimings, ...]]:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=folder) as work:
        files = Path(work).resolve()
        (files / "cases.json").write_text(json.dumps([to_plain(case) for case in cases]))
        command = render_bench_rank(run, files)
        measurement = Measurement(run.hosts, run.ranks_per_host, run.backend, network_interface=run.interface)
        if run.slurm:
            (files / "hosts").write_text(render_hostfile(measurement))
            env = {"SLURM_HOSTFILE": str(files / "hosts"), **render_interface(run.interface)}
            run_command(render_srun(measurement, command), env=env, timeout_s=_TIMEOUT_S)
        else:
            _run_locally(run, command)
        report = json.loads((files / "timings.json").read_text())
    return tuple(report["hosts"]), TypeAdapter(tuple[CaseTimings, ...]).validate_python(report["cases"])


def render_bench_rank(run: BenchRun, files: Path) -> list[str]:
    """The command line of each rank."""
    names = {"rendezvous": "rendezvous.json", "cases": "cases.json", "out": "timings.json"}
    paths = [word for option, name in names.items() for word in (f"--{option}", str(files / name))]
    return [executable, "-m", "windtunnel.topology.bench_rank", "--backend", run.backend, *paths, *run.options]


def _run_locally(run: BenchRun, command: Sequence[str]) -> None:
    interface = render_interface(run.interface or os.environ.get("GLOO_SOCKET_IFNAME", LOOPBACK))

    def run_rank(rank: int) -> None:
        env = {"RANK": str(rank), "WORLD_SIZE": str(run.ranks_per_host), "LOCAL_RANK": str(rank), **interface}
        run_command(command, env=env, timeout_s=_TIMEOUT_S)

    with ThreadPoolExecutor(run.ranks_per_host) as pool:
        for finished in [pool.submit(run_rank, rank) for rank in range(run.ranks_per_host)]:
            finished.result()
