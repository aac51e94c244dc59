"""Nodes that failed under trials: an append-only record in the store, shared by studies, and who is left out of it.

Two failures of a node are distinct when they are of different trials, and the second one's job began there
after the first had ended: so one outage under ten jobs counts once, and so does one trial that kills its node
each time, while a node that ends whatever is started on it counts at its second victim.
"""

import json
import os
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from windtunnel.ledger.facts import TrialFacts
from windtunnel.ledger.reconcile import JobSight, Phase
from windtunnel.records.trial import Verdict
from windtunnel.settings.sweep import ExclusionSettings

NODES = "cluster/nodes.jsonl"
_HOUR_S = 3600.0
_ATTRIBUTED = frozenset({Verdict.NODE_FAIL, Verdict.LOST})


@dataclass(frozen=True)
class NodeFailure:
    """A line of `cluster/nodes.jsonl`: a trial that ended because of a node, or on it without a word."""

    node: str
    verdict: Verdict
    trial_id: str
    job_id: str
    began_at: float
    """When its attempt began there, or was submitted; in seconds since 1970 UTC."""
    at: float
    """When its end was seen."""
    hard: bool = False
    """Whether any job there would meet it until somebody repairs the node: then it counts alone."""


@dataclass(frozen=True)
class Exclusion:
    """Nodes to leave out of submissions, and those that failed as often but are above the share allowed."""

    nodes: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()


_FAILURE = TypeAdapter(NodeFailure)


def decide_exclusion(
    failures: Iterable[NodeFailure],
    partition: Collection[str],
    settings: ExclusionSettings,
    *,
    now: float,
    needed: int = 1,
) -> Exclusion:
    """Which of the partition's nodes to leave out at `now`; a job must still find its `needed` nodes.

    The share allowed goes to the nodes that failed last.
    """
    by_node: dict[str, list[NodeFailure]] = {}
    since = now - (settings.within_hours + settings.hours) * _HOUR_S
    for failure in failures:
        if failure.node in partition and failure.at > since:
            by_node.setdefault(failure.node, []).append(failure)
    last = {node: found for node, each in by_node.items() if (found := _find_last(each, settings, now)) is not None}
    failed = sorted(last, key=lambda node: (-last[node], node))
    share = int(len(partition) * settings.at_most + 1e-9)
    # A node that every job would fail on is worth one, also where the share comes to none.
    share = max(share, int(settings.at_most > 0 and any(each.hard for node in last for each in by_node[node])))
    allowed = max(0, min(share, len(partition) - needed))
    return Exclusion(tuple(sorted(failed[:allowed])), tuple(failed[allowed:]))


def find_incidents(failures: Iterable[NodeFailure]) -> list[NodeFailure]:
    """The distinct failures among those of one node, in order of time."""
    incidents: list[NodeFailure] = []
    for failure in sorted(failures, key=lambda each: each.at):
        known = {incident.trial_id for incident in incidents}
        if failure.trial_id not in known and (not incidents or failure.began_at > incidents[-1].at):
            incidents.append(failure)
    return incidents


def find_suspects(facts: TrialFacts, job: JobSight, verdict: Verdict) -> tuple[str, ...]:
    """The hosts of which one failed under the newest attempt; none where nothing points to a host.

    A LOST trial points to its host only if Slurm told of its job's end, or its own supervisor did: of one that
    merely cannot be found, nobody knows why.
    """
    last = facts.attempts[-1] if facts.attempts else 0
    started = next((event for event in reversed(facts.events) if event.kind in ("started", "submitted")), None)
    end = facts.ends.get(last)
    told = job.phase == Phase.ENDED or (end is not None and end.verdict == verdict)
    if verdict not in _ATTRIBUTED or not told:
        return ()
    if started is None or started.kind == "submitted":
        return job.hosts  # its supervisor never came up there
    if end is not None and end.node_faults:
        return tuple(fault.node for fault in end.node_faults)
    hosts: list[str] = started.details.get("granted") or started.details.get("hosts") or []
    return tuple(hosts)


def find_faults(facts: TrialFacts) -> dict[str, bool]:
    """The nodes that the newest attempt itself found unfit, and whether each is until somebody repairs it."""
    end = facts.ends.get(facts.attempts[-1]) if facts.attempts else None
    return {fault.node: fault.hard for fault in end.node_faults} if end is not None else {}


def find_begin(facts: TrialFacts) -> float:
    """When the newest run began, or was submitted; 0 when nobody wrote it down."""
    return next((event.at for event in reversed(facts.events) if event.kind in ("started", "submitted")), 0.0)


def append_failure(store: Path, failure: NodeFailure) -> None:
    """Add one line with a single write; the record informs later submissions, and no state hangs on it."""
    path = store / NODES
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(asdict(failure), separators=(",", ":")) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o664)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def read_failures(store: Path) -> tuple[NodeFailure, ...]:
    """All whole lines of the record; a torn one is passed over."""
    try:
        lines = (store / NODES).read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return ()
    failures = []
    for line in lines:
        try:
            failures.append(_FAILURE.validate_json(line))
        except ValidationError:
            continue
    return tuple(failures)


def _find_last(failures: Iterable[NodeFailure], settings: ExclusionSettings, now: float) -> float | None:
    """When the incident came for which the node is left out now; None when it is not."""
    failures = list(failures)
    hard = max((failure.at for failure in failures if failure.hard), default=None)
    if hard is not None and now - hard < settings.hours * _HOUR_S:
        return hard
    times = [incident.at for incident in find_incidents(failures)]
    count = settings.failures
    for index in range(len(times) - 1, count - 2, -1):
        together = times[index] - times[index - count + 1] <= settings.within_hours * _HOUR_S
        if together and now - times[index] < settings.hours * _HOUR_S:
            return times[index]
    return None
