"""One rank of `windtunnel topology bench`: `python -m windtunnel.topology.bench_rank`, under srun or alone."""

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from pydantic import TypeAdapter

from windtunnel.artifacts import to_plain, write_atomic
from windtunnel.comm.ranks import read_rank_env
from windtunnel.comm.torch import init_process_group
from windtunnel.fabric.bench_cases import busbw_factor
from windtunnel.records.bench import BenchCase, CaseTimings, SizeTiming
from windtunnel.topology.collectives_rank import choose_repeats, gather_hosts, pick_device, time_slowest

_ELEMENT_BYTES = 4
_WARMUP = 2


def main(argv: list[str] | None = None) -> None:
    """Join the others, measure case after case, none beside another, and let rank 0 write all."""
    options = _parse(argv)
    env = read_rank_env()
    torch.set_num_threads(1)
    device = pick_device(options.backend, env)
    init_process_group(options.rendezvous, env, backend=options.backend, timeout_s=options.timeout_s)
    hosts = gather_hosts(env)
    cases = TypeAdapter(tuple[BenchCase, ...]).validate_json(options.cases.read_bytes())
    mine = [measured for case in cases if (measured := measure_case(case, device, options)) is not None]
    everyone: list[Any] = [None] * env.world_size
    dist.all_gather_object(everyone, [to_plain(measured) for measured in mine])
    if env.rank == 0:
        by_first = {rank: iter(measured) for rank, measured in enumerate(everyone)}
        report = {"hosts": hosts, "cases": [next(by_first[case.ranks[0]]) for case in cases]}
        write_atomic(options.out, json.dumps(report).encode())
    dist.barrier()
    dist.destroy_process_group()


def measure_case(case: BenchCase, device: torch.device, options: argparse.Namespace) -> CaseTimings | None:
    """The case's timings on its first rank; None on all others."""
    group = dist.new_group(list(case.ranks))
    timings = []
    if dist.get_rank() in case.ranks:
        timings = [_measure_size(case, size, group, device, options) for size in case.sizes_bytes]
    dist.barrier()
    if group is not dist.group.WORLD and dist.get_rank() in case.ranks:
        dist.destroy_process_group(group)
    return CaseTimings(case, tuple(timings)) if dist.get_rank() == case.ranks[0] else None


def _measure_size(
    case: BenchCase, size: int, group: Any, device: torch.device, options: argparse.Namespace
) -> SizeTiming:
    """Median over repeats of the slowest rank; the first two are warm-up and decide how many follow."""
    work = make_work(case, size, group, device)
    steps = 2 if case.operation == "p2p" else 1  # there and back

    def run_once() -> float:
        return time_slowest(work, device, group=group) / steps

    once_s = [run_once() for _ in range(_WARMUP)][-1]
    repeats = choose_repeats(once_s, budget_s=options.budget_s, least=options.least, most=options.most)
    times_s = [run_once() for _ in range(repeats)]
    median_s = statistics.median(times_s)
    algbw_gbps = size / median_s / 1e9
    return SizeTiming(
        bytes=size,
        median_s=median_s,
        spread_s=statistics.median(abs(t - median_s) for t in times_s),
        repeats=repeats,
        algbw_gbps=algbw_gbps,
        busbw_gbps=algbw_gbps * busbw_factor(case.operation, len(case.ranks)),
    )


def make_work(case: BenchCase, size: int, group: Any, device: torch.device) -> Callable[[], Any]:
    """The operation on buffers of this size; of the whole tensor for gathers and scatters, as nccl-tests counts."""
    n = len(case.ranks)
    whole = torch.zeros(size // _ELEMENT_BYTES, device=device)
    part = torch.zeros(len(whole) // n, device=device)
    first, last = case.ranks[0], case.ranks[-1]

    def bounce() -> None:
        if dist.get_rank() == first:
            dist.send(whole, last, group=group)
            dist.recv(whole, last, group=group)
        else:
            dist.recv(whole, first, group=group)
            dist.send(whole, first, group=group)

    works: dict[str, Callable[[], Any]] = {
        "all_reduce": lambda: dist.all_reduce(whole, group=group),
        "all_gather": lambda: dist.all_gather(list(whole.chunk(n)), part, group=group),
        "reduce_scatter": lambda: dist.reduce_scatter(part, list(whole.chunk(n)), group=group),
        "all_to_all": lambda: dist.all_to_all_single(torch.empty_like(whole), whole, group=group),
        "broadcast": lambda: dist.broadcast(whole, first, group=group),
        "p2p": bounce,
    }
    return works[case.operation]


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rendezvous", type=Path, required=True, help="file that rank 0 publishes its address in")
    parser.add_argument("--cases", type=Path, required=True, help="file with the cases, as JSON")
    parser.add_argument("--out", type=Path, required=True, help="file that rank 0 writes hosts and timings to")
    parser.add_argument("--backend", choices=("gloo", "nccl"), required=True)
    parser.add_argument("--least", type=int, default=5, help="fewest repeats of a size")
    parser.add_argument("--most", type=int, default=50, help="most repeats of a size")
    parser.add_argument("--budget-s", type=float, default=0.5, help="seconds for a size, beyond the fewest repeats")
    parser.add_argument("--timeout-s", type=float, default=300.0, help="deadline of the meeting and of an operation")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
