"""The calibrate stage: what one rank's device, and the file system of the results, attain."""

import socket
from pathlib import Path

import torch

from windtunnel.artifacts import hash_json, write_artifact
from windtunnel.calibrate.rates import measure_copy, measure_matmul, measure_storage
from windtunnel.device.accelerator import read_device
from windtunnel.device.cpu import count_cpus, read_cpu_name, read_driver_version
from windtunnel.records.cluster import DeviceFacts, Rate
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.slurm.job import read_job_hosts


def run_calibrate(settings: ClusterSettings, *, out: Path) -> DeviceFacts:
    """Measure, write `out`, and return it. On a CPU the rates are those of `cpus_per_rank` threads.

    On Slurm this runs inside a job of the partition; raises ClusterError outside one.
    """
    if settings.kind == "slurm":
        read_job_hosts(settings.partition)
    device = read_device()
    cpus = count_cpus()
    rates = []
    for rate in _measure(torch.device(device.kind), threads=min(settings.cpus_per_rank, cpus), folder=out.parent):
        print(render_rate(rate), flush=True)
        rates.append(rate)
    facts = DeviceFacts(
        partition=settings.partition,
        fingerprint=hash_device(device.name, cpus),
        host=socket.gethostname(),
        device=device.name,
        kind=device.kind,
        cpus=cpus,
        mem_mib=device.mem_mib,
        rates=tuple(rates),
    )
    write_artifact(out, facts, settings_hash=hash_json(settings))
    return facts


def hash_device(name: str, cpus: int) -> str:
    """First 16 hex digits of a hash of what the rates depend on."""
    software = {"torch": str(torch.__version__), "driver": read_driver_version()}
    return hash_json({"device": name, "cpu": read_cpu_name(), "cpus": cpus, "software": software})[:16]


def render_rate(rate: Rate) -> str:
    """One line for people."""
    return f"{rate.name}: {rate.value:.4g} +- {rate.spread:.2g} {rate.unit} ({rate.repeats} repeats after warm-up)"


def _measure(device: torch.device, *, threads: int, folder: Path) -> list[Rate]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return [
            measure_matmul(device, torch.float32, name="matmul_fp32"),
            measure_matmul(device, torch.bfloat16, name="matmul_bf16"),
            measure_copy(device),
            *measure_storage(folder),
        ]
    finally:
        torch.set_num_threads(before)
