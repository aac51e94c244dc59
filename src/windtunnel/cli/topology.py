"""`windtunnel topology facts`, `fit`, `bench`, `place`, `lint`, `show`: networks and machines, for people."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windtunnel.fabric.topology import Host, Topology

_STDIN = "-"


def add_topology_parsers(parser: argparse.ArgumentParser) -> None:
    """Add the actions below the stage's own subcommand, which runs where none is named."""
    actions = parser.add_subparsers(dest="topology_action", metavar="ACTION", help="for people; none is the stage")
    facts = actions.add_parser("facts", help="print what is understood of a file, as JSON")
    facts.add_argument("file", type=Path, nargs="?", metavar="FILE", help="a file of any known kind, or -")
    facts.add_argument(
        "--corpus", type=Path, metavar="DIR", help="hold every file of DIR/INDEX.csv against its facts"
    )
    facts.add_argument("--slurm-version", help="of the Slurm that printed the file, which its text does not say")
    facts.set_defaults(func=_facts)
    fit = actions.add_parser("fit", help="fit a cost curve to a log of nccl-tests or OSU, and say how far it holds")
    fit.add_argument("file", type=Path, metavar="FILE", help="a log, or -")
    fit.set_defaults(func=_fit)
    _add_bench_parser(actions)
    _add_place_parser(actions)
    lint = actions.add_parser("lint", help="find what is wrong in a topology")
    lint.add_argument(
        "file", type=Path, nargs="?", metavar="FILE", help="topology.conf or other network (Slurm's own)"
    )
    lint.add_argument("--nodes", type=Path, help="the cluster's nodes: slurm.conf, `scontrol show node`, sinfo")
    lint.set_defaults(func=_lint)
    show = actions.add_parser("show", help="draw the tree of switches, and the map of GPUs, NICs and NUMA nodes")
    show.add_argument("file", type=Path, nargs="?", metavar="FILE", help="a file of any known kind (this cluster)")
    show.add_argument("--svg", type=Path, metavar="OUT", help="write a drawing instead of text")
    show.set_defaults(func=_show)


def _add_bench_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    bench = actions.add_parser("bench", help="measure the fabric between the nodes of this job, level by level")
    bench.add_argument("--out", type=Path, default=Path("fabric.json"), help="file to write (fabric.json)")
    bench.add_argument("--operations", help="of all_reduce,all_gather,reduce_scatter,all_to_all,broadcast,p2p (all)")
    bench.add_argument("--sizes", default="1K,8K,64K,512K,4M,16M", help="messages, as 64K or 8M with commas between")
    bench.add_argument("--pair-size", default="1M", help="at which pairs of hosts are held against each other (1M)")
    bench.add_argument(
        "--ranks-per-host", type=int, default=1, help="with 2 or more the inside of a node is measured too"
    )
    bench.add_argument("--interface", default="", help="network interface of Gloo and NCCL (they choose)")
    bench.add_argument("--budget-s", type=float, default=0.5, help="seconds for a size, beyond five repeats (0.5)")
    bench.set_defaults(func=_bench)


def _add_place_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    place = actions.add_parser("place", help="the order of ranks with the least exposed communication, and its bound")
    place.add_argument("bench", type=Path, metavar="BENCH", help="what `topology bench` wrote (fabric.json)")
    axes = "axes, the fastest first: NAME=RANKS:PATTERN:BYTES[:EXPOSED], as tp=2:ring:100M,dp=4:ring:32M:0.5"
    place.add_argument("--axes", required=True, help=axes)
    place.add_argument("--topology", type=Path, help="file with the switches (scontrol show topology)")
    place.add_argument("--ranks-per-host", type=int, default=1)
    place.set_defaults(func=_place)


def run_place(bench_file: Path, axes: str, topology: Path | None, ranks_per_host: int) -> int:
    """Print the host of each rank, what it costs, what no order can beat, and what is gained."""
    from windtunnel.artifacts import read_artifact
    from windtunnel.fabric.axes_text import parse_axes
    from windtunnel.fabric.graph import find_switch_paths
    from windtunnel.fabric.level_costs import find_levels
    from windtunnel.fabric.slots import build_slots
    from windtunnel.fabric.solver import describe_gain, place_ranks
    from windtunnel.hostlist import collapse_hostlist, expand_hostlist
    from windtunnel.records.bench import FabricBench
    from windtunnel.topology.live import read_live_network
    from windtunnel.units import format_seconds

    bench = read_artifact(bench_file, FabricBench)
    network = read_live_network() if topology is None else _read(topology)
    paths = find_switch_paths(network.switches)
    hosts = expand_hostlist(collapse_hostlist(sorted(set(bench.hosts))))  # as Slurm itself orders them
    tree = build_slots(hosts, paths, find_levels(bench, paths), ranks_per_host=ranks_per_host)
    placement = place_ranks(tree, parse_axes(axes))
    print("\n".join(placement.hosts))
    times = [format_seconds(time) for time in (placement.cost_s, placement.bound_s, placement.given_s)]
    told = f"exposed communication a step {times[0]}, bound {times[1]}, given order {times[2]}"
    print(f"{told}; {describe_gain(placement)}", file=sys.stderr)
    return 0


def run_facts(file: Path, *, version: str | None) -> int:
    """Print a file's facts; its mistakes are on standard error too, each with its place."""
    from windtunnel.fabric.facts import collect_facts, render_finding
    from windtunnel.topology.corpus import find_entry

    topology = _read(file)
    entry = None if version is not None or str(file) == _STDIN else find_entry(file)
    print(json.dumps(collect_facts(topology, version=version or (entry.version if entry else None)), indent=2))
    for finding in topology.errors:
        print(render_finding(finding, str(file)), file=sys.stderr)
    return 0


def run_corpus(folder: Path) -> int:
    """Print each file whose facts are not all right; 1 where there is one."""
    from windtunnel.topology.corpus import check_corpus

    checked = check_corpus(folder)
    wrong = [item for item in checked if item.differences]
    for item in wrong:
        print("\n    ".join([item.file, *item.differences]))
    print(f"{len(checked) - len(wrong)} of {len(checked)} files are understood as expected")
    return 1 if wrong else 0


def run_fit(file: Path) -> int:
    """Print the curve of a benchmark's log: pieces, error, latency, and whether the times have two levels."""
    from windtunnel.errors import InputFileError
    from windtunnel.fabric.curves import describe_curve, fit_curve
    from windtunnel.fabric.timing_points import read_points

    timings = _read(file).timings
    if timings is None:
        raise InputFileError(f"{file} is no log of nccl-tests or OSU: there are no times to fit a curve to")
    print(describe_curve(fit_curve(read_points(timings))))
    return 0


def run_lint(file: Path | None, nodes: Path | None) -> int:
    """Print what is wrong; 1 where something is an error, which Slurm itself would refuse."""
    from windtunnel.errors import InputFileError
    from windtunnel.fabric.facts import render_finding
    from windtunnel.fabric.lint import lint_topology
    from windtunnel.fabric.topology import NETWORKS
    from windtunnel.topology.live import read_live_hosts, read_live_network

    network = read_live_network() if file is None else _read(file)
    if network.kind not in NETWORKS or not (network.switches or network.blocks or network.findings):
        raise InputFileError(
            f"{file or 'this cluster'} describes no switches and no blocks: there is nothing to check"
        )
    cluster: Sequence[Host] | None = None
    if nodes is not None:
        cluster = _read(nodes).hosts
    elif file is None:
        cluster = read_live_hosts().hosts
    findings = lint_topology(network, cluster)
    for finding in findings:
        print(render_finding(finding, str(file or "scontrol show topology")))
    known = "" if cluster is not None else "; without --nodes the cluster's nodes were not compared"
    print(f"{len(findings)} finding{'' if len(findings) == 1 else 's'}{known}")
    return 1 if any(finding.severity == "error" for finding in findings) else 0


def run_show(file: Path | None, svg: Path | None) -> int:
    """Draw a file, or this cluster's network and this machine."""
    from windtunnel.artifacts import write_atomic
    from windtunnel.fabric.drawing import draw_topology
    from windtunnel.fabric.outline import outline_topology
    from windtunnel.fabric.svg import render_outline_svg

    shown = _read_here() if file is None else [_read(file)]
    if svg is not None:
        branches = [branch for topology in shown for branch in outline_topology(topology)]
        write_atomic(svg, render_outline_svg(branches, f"Topology of {file or 'this cluster'}").encode())
        return 0
    print("\n\n".join(draw_topology(topology) for topology in shown))
    return 0


def _read(file: Path) -> "Topology":
    from windtunnel.fabric.detect import parse_topology
    from windtunnel.topology.corpus import read_text

    if str(file) == _STDIN:
        return parse_topology(sys.stdin.read(), "standard input")
    return parse_topology(read_text(file), str(file))


def _read_here() -> "list[Topology]":
    from windtunnel.errors import ClusterError, CommandError
    from windtunnel.topology.live import read_live_machine, read_live_network

    machine = read_live_machine()
    try:
        return [read_live_network(), machine]
    except (ClusterError, CommandError) as error:  # a machine without Slurm still has an inside
        print(f"windtunnel: this machine alone, since the network is not known: {error}", file=sys.stderr)
        return [machine]


def _facts(args: argparse.Namespace) -> int:
    from windtunnel.errors import SettingsError

    if (args.file is None) == (args.corpus is None):
        raise SettingsError("topology facts needs a FILE, or --corpus DIR")
    if args.corpus is not None:
        return run_corpus(args.corpus)
    return run_facts(args.file, version=args.slurm_version)


def _bench(args: argparse.Namespace) -> int:
    from windtunnel.fabric.bench_cases import OPERATIONS, BenchPlan
    from windtunnel.topology.bench import run_bench
    from windtunnel.units import parse_bytes

    operations = tuple(args.operations.split(",")) if args.operations else OPERATIONS
    sizes = tuple(parse_bytes(word) for word in args.sizes.split(","))
    plan = BenchPlan(operations, sizes, parse_bytes(args.pair_size), args.ranks_per_host)
    run_bench(plan, out=args.out, interface=args.interface, options=("--budget-s", str(args.budget_s)))
    return 0


def _place(args: argparse.Namespace) -> int:
    return run_place(args.bench, args.axes, args.topology, args.ranks_per_host)


def _fit(args: argparse.Namespace) -> int:
    return run_fit(args.file)


def _lint(args: argparse.Namespace) -> int:
    return run_lint(args.file, args.nodes)


def _show(args: argparse.Namespace) -> int:
    return run_show(args.file, args.svg)
