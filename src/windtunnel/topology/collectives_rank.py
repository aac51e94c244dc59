"""One rank of the all-reduce measurement: `python -m windtunnel.topology.collectives_rank`, under srun or alone."""

import argparse
import json
import socket
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from windtunnel.artifacts import to_plain, write_atomic
from windtunnel.comm.ranks import RankEnv, read_rank_env
from windtunnel.comm.torch import init_process_group
from windtunnel.device.accelerator import synchronize
from windtunnel.records.cluster import CollectiveTiming

FLOAT32_BYTES = 4


def allreduce_busbw_gbps(size_bytes: int, ranks: int, seconds: float) -> float:
    """Gigabytes a second over each rank's link. Source: nccl-tests, doc/PERFORMANCE.md."""
    return size_bytes * 2 * (ranks - 1) / ranks / seconds / 1e9


def choose_repeats(once_s: float, *, budget_s: float, least: int, most: int) -> int:
    """Repeats that fit the budget, within bounds."""
    return max(least, min(most, int(budget_s / max(once_s, 1e-9))))


def main(argv: list[str] | None = None) -> None:
    """Join the others, time each size, and let rank 0 write hosts and timings."""
    options = _parse(argv)
    env = read_rank_env()
    torch.set_num_threads(1)
    device = pick_device(options.backend, env)
    init_process_group(options.rendezvous, env, backend=options.backend, timeout_s=options.timeout_s)
    hosts = gather_hosts(env)
    timings = [
        measure_allreduce(size, backend=options.backend, device=device, nodes=len(set(hosts)), options=options)
        for size in options.sizes
    ]
    if env.rank == 0:
        report = {"hosts": hosts, "timings": [to_plain(timing) for timing in timings]}
        write_atomic(options.out, json.dumps(report).encode())
    dist.barrier()
    dist.destroy_process_group()


def measure_allreduce(
    size_bytes: int, *, backend: str, device: torch.device, nodes: int, options: argparse.Namespace
) -> CollectiveTiming:
    """Median over repeats of the slowest rank's time; the first two are warm-up and decide how many follow."""
    ranks = dist.get_world_size()
    tensor = torch.zeros(size_bytes // FLOAT32_BYTES, device=device)

    def run_once() -> float:
        return time_slowest(lambda: dist.all_reduce(tensor), device)

    run_once()
    repeats = choose_repeats(run_once(), budget_s=options.budget_s, least=options.least, most=options.most)
    times_s = [run_once() for _ in range(repeats)]
    median_s = statistics.median(times_s)
    return CollectiveTiming(
        operation="all_reduce",
        backend=backend,
        ranks=ranks,
        nodes=nodes,
        bytes=size_bytes,
        median_s=median_s,
        spread_s=statistics.median(abs(t - median_s) for t in times_s),
        repeats=repeats,
        busbw_gbps=allreduce_busbw_gbps(size_bytes, ranks, median_s),
    )


def time_slowest(work: Callable[[], Any], device: torch.device, *, group: Any = None) -> float:
    """Seconds of the slowest rank of the group, equal on all of them, so that they agree on what follows."""
    dist.barrier(group=group)
    synchronize(device)
    started = time.perf_counter()
    work()
    synchronize(device)
    elapsed = torch.tensor([time.perf_counter() - started], dtype=torch.float64, device=device)
    dist.all_reduce(elapsed, op=dist.ReduceOp.MAX, group=group)
    return float(elapsed.item())


def pick_device(backend: str, env: RankEnv) -> torch.device:
    """The CPU under Gloo, else this rank's accelerator."""
    if backend == "gloo":
        return torch.device("cpu")
    accelerator = torch.accelerator.current_accelerator()
    assert accelerator is not None, "the parent chose this backend because it saw accelerators"
    torch.accelerator.set_device_index(env.local_rank)
    return torch.device(accelerator.type, env.local_rank)


def gather_hosts(env: RankEnv) -> list[str]:
    """Host of each rank."""
    hosts: list[str] = [""] * env.world_size
    dist.all_gather_object(hosts, socket.gethostname())
    return hosts


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rendezvous", type=Path, required=True, help="file that rank 0 publishes its address in")
    parser.add_argument("--out", type=Path, required=True, help="file that rank 0 writes hosts and timings to")
    parser.add_argument("--backend", choices=("gloo", "nccl"), required=True)
    parser.add_argument("--sizes", type=int, nargs="+", required=True, help="bytes")
    parser.add_argument("--least", type=int, default=5, help="fewest repeats of a size")
    parser.add_argument("--most", type=int, default=50, help="most repeats of a size")
    parser.add_argument("--budget-s", type=float, default=1.0, help="seconds for a size, beyond the fewest repeats")
    parser.add_argument("--timeout-s", type=float, default=120.0, help="deadline of the meeting and of a collective")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
