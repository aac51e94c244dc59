"""The doctor's own job: two nodes of the partition, started as a trial's job is, and what they left behind."""

import json
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from windtunnel.cli.doctor.node import NodeReport
from windtunnel.errors import CommandError
from windtunnel.launch.shapes import render_parameters
from windtunnel.ledger.tail import read_last_line
from windtunnel.process import Finished, run_command
from windtunnel.records.plan import Shape
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.slurm.surroundings import find_strange_variables

NAME = "windtunnel-doctor"
LOG = "job.log"
_TIME_MIN = 10
_ANSWER_S = 60.0
_REPORT_S = 420.0
_POLL_S = 0.1
_LOOK_EVERY_S = 10.0
_COMMAND_S = 60.0
_ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL", "")


@dataclass(frozen=True)
class JobFacts:
    """How the job went; times in seconds."""

    nodes: int
    waited_s: float | None = None
    """From submission until all nodes were seen here; None when they were not."""
    answered_s: float | None = None
    """Until the nodes' answers to a file of this machine's were seen here."""
    clock_ahead_s: tuple[tuple[float, float], ...] = ()
    """Bounds of each node's clock less this machine's."""
    reports: tuple[NodeReport, ...] = ()
    problem: str = ""
    """Why there is less than should be; empty when all is there."""


def make_shape(cluster: ClusterSettings, nodes: int) -> Shape:
    """One task a node, with a rank's CPUs, GPUs and memory."""
    flags = tuple((name, "" if value is True else str(value)) for name, value in cluster.sbatch.items() if value)
    return Shape(
        nodes=nodes,
        ranks_per_node=1,
        cpus_per_rank=cluster.cpus_per_rank,
        gpus_per_node=cluster.gpus_per_rank,
        mem_mib=cluster.memory,
        time_min=min(_TIME_MIN, cluster.time),
        partition=cluster.partition,
        account=cluster.account,
        qos=cluster.qos,
        constraint=cluster.constraint,
        gpu_type=cluster.gpu_type,
        flags=flags,
    )


def render_script(cluster: ClusterSettings, nodes: int, *, folder: Path, hosts: Sequence[str]) -> str:
    """The batch script: a trial's options and set-up lines, then one task of ours on each node."""
    given = render_parameters(make_shape(cluster, nodes), cluster, name=NAME)
    own = ("job_name", "time", "nodes", "ntasks_per_node", "cpus_per_task")
    options = {**{name: given[name] for name in own}, **given["additional_parameters"]}
    options |= {"output": str(folder / LOG), "open_mode": "append"}
    lines = [_render_option(name.replace("_", "-"), value) for name, value in options.items()]
    task = [sys.executable, "-m", "windtunnel.cli.doctor.node", str(folder), *hosts]
    step = f"srun --nodes={nodes} --ntasks={nodes} --ntasks-per-node=1 --mpi=none {shlex.join(task)}"
    return "\n".join(["#!/bin/bash", *lines, *(given["setup"] or []), step, ""])


def run_test_only(script: str) -> Finished:
    """Ask sbatch whether, and when, such a job would start."""
    return _sbatch(["--test-only"], script)


def run_job(cluster: ClusterSettings, nodes: int, *, store: Path, hosts: Sequence[str], wait_s: float) -> JobFacts:
    """Submit the job, answer its nodes, read their reports. Whatever happens, nothing is left of it."""
    folder = Path(tempfile.mkdtemp(prefix=".doctor-", dir=store.resolve()))
    job_id = ""
    try:
        said = _sbatch(["--parsable"], render_script(cluster, nodes, folder=folder, hosts=hosts))
        if said.code:
            return JobFacts(nodes, problem=f"sbatch refused it: {said.stderr.strip()}")
        job_id = said.stdout.strip().partition(";")[0]
        return _follow(job_id, nodes, folder, wait_s)
    finally:
        if job_id:
            run_command(["scancel", job_id], timeout_s=_COMMAND_S, check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _follow(job_id: str, nodes: int, folder: Path, wait_s: float) -> JobFacts:
    began = time.monotonic()
    problem = _await(lambda: _all_there(folder, "here-{}", nodes), job_id, folder, wait_s)
    if problem:
        return JobFacts(nodes, problem=problem)
    waited_s = time.monotonic() - began
    asked = time.time()
    (folder / "ask.tmp").write_text("")
    (folder / "ask.tmp").rename(folder / "ask")
    problem = _await(lambda: _all_there(folder, "clock-{}", nodes), job_id, folder, _ANSWER_S)
    if problem:
        return JobFacts(nodes, waited_s, problem=problem)
    seen = time.time()
    clocks = [float((folder / f"clock-{rank}").read_text()) for rank in range(nodes)]
    bounds = tuple((clock - seen, clock - asked) for clock in clocks)
    problem = _await(lambda: _all_there(folder, "report-{}.json", nodes), job_id, folder, _REPORT_S)
    texts = [path.read_text() for path in sorted(folder.glob("report-*.json"))]
    reports = tuple(NodeReport(**json.loads(text)) for text in texts)
    return JobFacts(nodes, waited_s, seen - asked, bounds, reports, problem)


def _await(there: Callable[[], bool], job_id: str, folder: Path, deadline_s: float) -> str:
    """Wait for the nodes' files; why they did not come, or nothing when they did."""
    end = time.monotonic() + deadline_s
    look_at = time.monotonic() + _LOOK_EVERY_S
    while not there():
        now = time.monotonic()
        if now > end:
            state, reason = _read_state(job_id)
            return f"job {job_id} is {state or 'gone'} ({reason or 'no reason'}) after {deadline_s:.0f} s"
        if now > look_at:
            look_at = now + _LOOK_EVERY_S
            state, _ = _read_state(job_id)
            # Its last files may take longer to be seen than its end.
            if state in _ENDED and not _settle(there, min(end, now + _ANSWER_S / 2)):
                return (
                    f"job {job_id} ended ({state or 'gone'}): {read_last_line(folder / LOG) or 'it printed nothing'}"
                )
        time.sleep(_POLL_S)
    return ""


def _settle(there: Callable[[], bool], until: float) -> bool:
    while not (found := there()) and time.monotonic() < until:
        time.sleep(_POLL_S)
    return found


def _all_there(folder: Path, name: str, nodes: int) -> bool:
    return all((folder / name.format(rank)).exists() for rank in range(nodes))


def _read_state(job_id: str) -> tuple[str, str]:
    argv = ["squeue", "--noheader", "--states=all", f"--jobs={job_id}", "--format=%T|%r"]
    try:
        said = run_command(argv, timeout_s=_COMMAND_S, check=False)
    except CommandError as error:
        return "UNKNOWN", str(error)
    state, _, reason = said.stdout.strip().partition("|")
    return state, reason


def _sbatch(words: Sequence[str], script: str) -> Finished:
    argv = ["env", *(f"--unset={name}" for name in find_strange_variables(os.environ)), "sbatch", *words]
    return run_command(argv, stdin=script, timeout_s=_COMMAND_S, check=False)


def _render_option(name: str, value: object) -> str:
    return f"#SBATCH --{name}" if value is True else f"#SBATCH --{name}={shlex.quote(str(value))}"
