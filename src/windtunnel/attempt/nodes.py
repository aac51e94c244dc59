"""An attempt's look at its nodes before it begins: one short process a node, bounded in time."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import windtunnel.device.probe
from windtunnel.attempt.health import Health, NodeFacts, Wants, judge_nodes, parse_facts
from windtunnel.attempt.plan import LaunchPlan, Process
from windtunnel.attempt.program import AttemptFiles
from windtunnel.attempt.ranks import StopRequest, run_ranks
from windtunnel.errors import ClusterError
from windtunnel.ledger.tail import find_last_line
from windtunnel.records.plan import Shape

CHECK_S = 60.0
"""Time that all nodes have. Each look of the probe has less, so that a sick node still tells which one failed."""
_STOP_S = 1.0
_LOG_BYTES = 1 << 20


def check_nodes(
    shape: Shape, hosts: tuple[str, ...], files: AttemptFiles, *, stop: StopRequest, beat: Callable[[], None]
) -> Health:
    """Look at `hosts`, which this process is on one of. `beat` is called all the while.

    What nodes said stays in the attempt's folder `nodes`. That Slurm would not start the look is merely a note: it
    tells nothing of the nodes.
    """
    plan = plan_check(shape, hosts, files)
    log = plan.processes[0].log
    log.parent.mkdir(exist_ok=True)
    try:
        _, reason = run_ranks(plan, stop=stop, beat=beat, stop_grace_s=_STOP_S)
    except ClusterError as error:
        return Health(notes=(f"its nodes were not looked at: {error}",))
    if stop.signum is not None:
        return Health()
    told = read_told(log.parent, len(hosts))
    words = _read(log) if plan.launcher else ""
    last = find_last_line(words) or "the look ended without a word"
    if not told and reason != "time":
        return Health(notes=(f"its nodes were not looked at: {last}",))
    if not told and plan.launcher:
        return Health(unanswered=f"none of its nodes answered within {CHECK_S:.0f} s: {last}")
    wants = Wants(shape.ranks_per_node * shape.cpus_per_rank, shape.mem_mib, shape.gpus_per_node)
    return judge_nodes(told, hosts, wants, words=words)


def plan_check(shape: Shape, hosts: tuple[str, ...], files: AttemptFiles) -> LaunchPlan:
    """The processes: the probe itself on one node alone, else one task a node of a step beside that of the ranks."""
    folder = files.path / "nodes"
    argv = (sys.executable, "-I", "-S", windtunnel.device.probe.__file__, str(files.path), str(shape.gpus_per_node))
    plan = LaunchPlan((Process(argv, {}, folder / "rank-0.log"),), hosts, None, CHECK_S, log_limit_bytes=_LOG_BYTES)
    if len(hosts) == 1:
        return plan
    srun = (
        "srun",
        f"--nodes={len(hosts)}",
        f"--nodelist={','.join(hosts)}",
        f"--ntasks={len(hosts)}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={shape.ranks_per_node * shape.cpus_per_rank}",
        "--cpu-bind=none",
        "--mpi=none",
        # Nothing of the job is taken: the ranks' step need not wait until the controller has cleared this one.
        "--overlap",
        "--kill-on-bad-exit=0",
        "--label",
        "--",
        *argv,
    )
    process = Process(srun, {}, folder / "srun.log", labelled_ranks=len(hosts))
    return replace(plan, processes=(process,), launcher="srun")


def read_told(folder: Path, nodes: int) -> list[NodeFacts]:
    """What nodes told of themselves, of those that did."""
    texts = (_read(folder / f"rank-{number}.log") for number in range(nodes))
    return [facts for text in texts if (facts := parse_facts(text)) is not None]


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
