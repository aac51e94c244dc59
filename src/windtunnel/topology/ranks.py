"""Starts the ranks of a measurement and waits for them: by srun over a job's nodes, or as local processes."""

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from windtunnel.process import run_command
from windtunnel.records.cluster import CollectiveTiming

LOOPBACK = "lo"
SIZES_BYTES = (64 * 1024, 1024 * 1024, 8 * 1024 * 1024)
_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Measurement:
    """What a measurement runs: where, over which backend, at which sizes."""

    hosts: tuple[str, ...]
    """One entry a node, in rank order."""
    ranks_per_node: int
    backend: str = "gloo"
    sizes_bytes: tuple[int, ...] = SIZES_BYTES
    network_interface: str = ""
    """Interface of Gloo and NCCL; empty lets them choose."""
    options: tuple[str, ...] = ()
    """Further options of `collectives_rank`."""


@dataclass(frozen=True)
class Measured:
    """Host of each rank, and timings of each size."""

    hosts: tuple[str, ...]
    timings: tuple[CollectiveTiming, ...]


def render_rank_command(measurement: Measurement, *, rendezvous: Path, out: Path) -> list[str]:
    """The command line of each rank."""
    sizes = [str(size) for size in measurement.sizes_bytes]
    files = ["--rendezvous", str(rendezvous), "--out", str(out)]
    module = [sys.executable, "-m", "windtunnel.topology.collectives_rank"]
    return [*module, *files, "--backend", measurement.backend, "--sizes", *sizes, *measurement.options]


def render_srun(measurement: Measurement, command: Sequence[str]) -> list[str]:
    """srun over the job's nodes in the order of SLURM_HOSTFILE; the step around it may hold them too."""
    return [
        "srun",
        "--overlap",
        f"--nodes={len(measurement.hosts)}",
        f"--ntasks={len(measurement.hosts) * measurement.ranks_per_node}",
        "--overcommit",  # a lone node may have been granted with one CPU, and an all-reduce needs two ranks
        "--distribution=arbitrary",
        "--mem=0",
        "--mpi=none",
        "--cpu-bind=none",
        "--kill-on-bad-exit=1",
        *command,
    ]


def render_hostfile(measurement: Measurement) -> str:
    """A line a rank, as srun's arbitrary distribution reads it."""
    return "".join(f"{host}\n" * measurement.ranks_per_node for host in measurement.hosts)


def render_interface(interface: str) -> dict[str, str]:
    """What the environment of a rank gains to use this interface; nothing when it may choose."""
    return dict.fromkeys(("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"), interface) if interface else {}


def run_measurement(measurement: Measurement, *, folder: Path, slurm: bool) -> Measured:
    """Run all ranks to their end. `folder` is one that every node sees; nothing stays in it.

    Raises CommandError when a rank fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".collectives-", dir=folder) as work:
        out = Path(work).resolve() / "timings.json"
        command = render_rank_command(measurement, rendezvous=out.with_name("rendezvous.json"), out=out)
        if slurm:
            _run_under_slurm(measurement, command, hostfile=out.with_name("hosts"))
        else:
            _run_locally(measurement, command)
        report = json.loads(out.read_text())
    return Measured(
        tuple(report["hosts"]), TypeAdapter(tuple[CollectiveTiming, ...]).validate_python(report["timings"])
    )


def _run_under_slurm(measurement: Measurement, command: Sequence[str], *, hostfile: Path) -> None:
    hostfile.write_text(render_hostfile(measurement))
    env = {"SLURM_HOSTFILE": str(hostfile), **render_interface(measurement.network_interface)}
    run_command(render_srun(measurement, command), env=env, timeout_s=_TIMEOUT_S)


def _run_locally(measurement: Measurement, command: Sequence[str]) -> None:
    """Processes on this machine; they need no network but the loopback."""
    ranks = measurement.ranks_per_node
    interface = render_interface(measurement.network_interface or os.environ.get("GLOO_SOCKET_IFNAME", LOOPBACK))

    def run_rank(rank: int) -> None:
        env = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank), **interface}
        run_command(command, env=env, timeout_s=_TIMEOUT_S)

    with ThreadPoolExecutor(ranks) as pool:
        for finished in [pool.submit(run_rank, rank) for rank in range(ranks)]:
            finished.result()
