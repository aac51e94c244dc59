"""What the order of ranks is worth: an all-reduce over two interleaved leaves, in Slurm's order and in ours."""

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import Part, PartResult, Row, make_row, make_rows, run_paired
from windtunnel.fabric.graph import find_switch_paths
from windtunnel.fabric.placement import order_hosts, ring_crossings
from windtunnel.process import run_command
from windtunnel.records.cluster import Node, Topology
from windtunnel.slurm.scontrol import parse_nodes, parse_switches
from windtunnel.topology.ranks import (
    Measurement,
    render_hostfile,
    render_interface,
    render_rank_command,
    render_srun,
)
from windtunnel.units import MIB

INTERFACE = "eth0"
_TIMEOUT_S = 300.0
# A shaped link queues 50 ms, which no switch does. Gloo's hand-shakes wait there behind data of the other
# direction, for longer than a segment takes, so the link idles now and then. Windows of about the product of
# bandwidth and delay leave the queues short: the same for both sides, and repeatable on a busy machine.
RECEIVE_WINDOW = "4096 131072 262144"


@dataclass(frozen=True)
class Effort:
    """How much one run does."""

    nodes: int
    size_bytes: int
    repeats: int
    rounds: int


FULL = Effort(nodes=8, size_bytes=8 * MIB, repeats=3, rounds=6)
QUICK = Effort(nodes=4, size_bytes=MIB, repeats=1, rounds=1)


def run_ring(quick: bool) -> PartResult:
    """Gloo's all-reduce is a ring over the ranks, so only their order differs between the sides."""
    effort = QUICK if quick else FULL
    with temporary_testbed(effort.nodes) as bed:
        limit_windows(bed, effort.nodes)
        topology = read_topology(bed)
        hosts = tuple(node.name for node in topology.nodes)
        ours = order_hosts(hosts, topology, "leaf")
        paired = run_paired(
            {
                "all-reduce, Slurm's rank order": lambda: time_allreduce(bed, effort),
                "all-reduce, our rank order": lambda: time_allreduce(bed, effort, hosts=ours),
            },
            rounds=effort.rounds,
            discard=0,  # each run of a side discards its own first all-reduces
        )
    theirs_name, ours_name = paired.seconds
    speedup = paired.ratio(theirs_name, ours_name)
    crossings = [ring_crossings(order, topology) or 0 for order in (hosts, ours)]
    counts = [
        Row(f"ring's crossings, {side}", n, n, n, "", 1) for side, n in zip(("Slurm", "ours"), crossings, strict=True)
    ]
    rows = (*make_rows(paired), *counts, make_row("ring_speedup", speedup, "x"))
    return PartResult({"ring_speedup": speedup.median}, {"ring_speedup": speedup.count}, rows)


@contextmanager
def temporary_testbed(nodes: int) -> Iterator[Path]:
    """A Slurm of `nodes` nodes on two interleaved leaves with shaped links, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="wt-") as folder:
        bed = Path(folder) / "bed"
        run_testbed("up", bed, f"--nodes={nodes}", "--leaves=2", "--no-accounting", "--network")
        try:
            yield bed
        finally:
            run_testbed("down", bed)


def limit_windows(bed: Path, nodes: int) -> None:
    """Bound TCP's receive windows on every node, each of which has a network of its own."""
    script = f"echo '{RECEIVE_WINDOW}' > /proc/sys/net/ipv4/tcp_rmem"
    run_inside(bed, ["srun", f"--nodes={nodes}", f"--ntasks={nodes}", "sh", "-c", script])


def read_topology(bed: Path) -> Topology:
    """Nodes and switches as that Slurm tells them."""
    paths = find_switch_paths(parse_switches(run_inside(bed, ["scontrol", "show", "topology"])))
    nodes = parse_nodes(run_inside(bed, ["scontrol", "show", "node", "-o"]))
    placed = (Node(n.name, n.cpus, n.mem_mib, n.gpus, n.state, paths.get(n.name, ())) for n in nodes)
    return Topology("main", "slurm", tuple(placed), None, "")


def time_allreduce(bed: Path, effort: Effort, *, hosts: Sequence[str] = ()) -> float:
    """Median seconds of one all-reduce; ranks go to `hosts` in their order, or as Slurm likes."""
    fixed = ("--least", str(effort.repeats), "--most", str(effort.repeats))
    measurement = Measurement(tuple(hosts), 1, sizes_bytes=(effort.size_bytes,), options=fixed)
    with tempfile.TemporaryDirectory(prefix="wt-") as folder:
        out = Path(folder) / "timings.json"
        ranks = render_rank_command(measurement, rendezvous=out.with_name("rendezvous"), out=out)
        if hosts:
            out.with_name("hosts").write_text(render_hostfile(measurement))
            file = f"SLURM_HOSTFILE={out.with_name('hosts')}"
            run_inside(bed, ["env", file, *render_srun(measurement, ranks)])
        else:
            run_inside(bed, ["srun", f"--nodes={effort.nodes}", f"--ntasks={effort.nodes}", "--mpi=none", *ranks])
        report = json.loads(out.read_text())
    if hosts:
        assert report["hosts"] == list(hosts), f"srun placed {report['hosts']}"
    return float(report["timings"][0]["median_s"])


def run_inside(bed: Path, argv: Sequence[str]) -> str:
    """The output of a command on the testbed's login host."""
    return run_testbed("run", bed, "--", *argv)


def run_testbed(action: str, bed: Path, *arguments: str) -> str:
    """`windtunnel testbed` as a user types it."""
    argv = [sys.executable, "-m", "windtunnel.cli.main", "testbed", action, f"--dir={bed}", *arguments]
    return run_command(argv, env=render_interface(INTERFACE), timeout_s=_TIMEOUT_S).stdout


PART = Part(
    name="ring",
    figures=("ring_speedup",),
    measures=(
        "fabric/graph.py",
        "fabric/placement.py",
        "topology/ranks.py",
        "topology/collectives_rank.py",
        "comm/torch.py",
        "comm/ranks.py",
        "testbed/network.py",
        "testbed/spec.py",
        "benchmarks/placement_ring.py",
    ),
    run=run_ring,
)
