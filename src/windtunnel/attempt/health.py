"""Whether the nodes of a grant are fit for an attempt, from what each told of itself. Pure.

A fault is a node's own only if it cannot be the trial's, the file system's or the grant's as a whole.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from windtunnel.device.gpus import Gpu, find_gpu_faults, find_xid_faults, parse_gpus, select_visible
from windtunnel.records.trial import NodeFault, Verdict

SKEW_S = 30.0
"""A lease counts as dead after 90 s without a heartbeat; past a third of it clocks begin to matter."""
LEAST_MIB = 16
"""Room below which neither ranks nor their libraries can be expected to start."""
_LATE = "late"
_FULL = frozenset({"ENOSPC", "EDQUOT", "EFBIG"})


class Kind(StrEnum):
    """What a finding is a fault of, if it is one."""

    HARD = "hard"
    """The node's, until somebody repairs it."""
    SOFT = "soft"
    """The node's, for now."""
    STORAGE = "storage"
    """Of a file system that all nodes share."""
    NOTE = "note"
    """Nobody's that can be named: told, and no more."""


# Any other, such as a TMPDIR that only the login node has, is the user's own setting.
_SCRATCH = {"EROFS": Kind.HARD, "EIO": Kind.HARD, _LATE: Kind.SOFT, **dict.fromkeys(_FULL, Kind.SOFT)}


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be."""

    kind: Kind
    text: str


@dataclass(frozen=True)
class Wants:
    """What the job was granted on each node."""

    cpus: int
    memory_mib: int
    gpus: int


@dataclass(frozen=True)
class NodeFacts:
    """A line of `device.probe`, whose keys these are."""

    node: str
    cpus: int
    cpus_online: int
    memory_limit_mib: int | None
    memory_total_mib: int | None
    shm_mib: int | None
    visible: str | None
    folder: Mapping[str, Any]
    scratch: Mapping[str, Any]
    gpus: Mapping[str, Any]
    xids: Sequence[str]


@dataclass(frozen=True)
class Health:
    """The judgement over all nodes of a grant."""

    faults: tuple[NodeFault, ...] = ()
    storage: str = ""
    """Why no node can work, where that is a shared file system's fault."""
    unanswered: str = ""
    """Why nothing is known of any node."""
    notes: tuple[str, ...] = ()


def parse_facts(text: str) -> NodeFacts | None:
    """The facts in what a node printed; None when it printed none."""
    for line in text.splitlines():
        try:
            document = json.loads(line)
            return NodeFacts(**{item.name: document[item.name] for item in fields(NodeFacts)})
        except (ValueError, KeyError, TypeError):
            continue  # a warning of the node's shell or loader
    return None


def judge_nodes(told: Sequence[NodeFacts], hosts: Sequence[str], wants: Wants, *, words: str) -> Health:
    """The health of `hosts`; of those that told nothing `words`, the launcher's, may say why."""
    refused = Counter(_name_refusal(facts.folder) for facts in told)
    findings = {facts.node: _find_troubles(facts, wants, refused, nodes=len(hosts)) for facts in told}
    silent = [host for host in hosts if host not in findings] if len(told) < len(hosts) else []
    for host in silent:
        findings[host] = [Finding(Kind.SOFT, _describe_silence(host, words))]
    return _gather(findings)


def describe_unfit(health: Health) -> tuple[Verdict, str] | None:
    """The verdict of an attempt that cannot begin for its nodes, with its evidence; None when it can."""
    if health.faults:
        told = "; ".join(f"node {fault.node} is not fit: {fault.text}" for fault in health.faults)
        return Verdict.NODE_FAIL, f"{told}; no rank was started"
    if health.storage:
        return Verdict.CANCELLED, f"{health.storage}; mend it, or make room, then the same command goes on"
    if health.unanswered:
        return Verdict.LOST, health.unanswered
    return None


def _find_troubles(facts: NodeFacts, wants: Wants, refused: Mapping[str, int], *, nodes: int) -> list[Finding]:
    word = _name_refusal(facts.folder)
    shared = [Finding(_weigh_refusal(word, refused, nodes), _describe_refusal(facts.folder))] if word else []
    gpus = _find_gpu_troubles(facts, wants.gpus) if wants.gpus else ()
    return [*_find_grant_troubles(facts, wants), *shared, *_find_place_troubles(facts), *gpus]


def _weigh_refusal(word: str, refused: Mapping[str, int], nodes: int) -> Kind:
    """Whose fault it is that one of so many nodes cannot write in the trial's folder."""
    if word in _FULL or refused[word] == nodes > 1:
        return Kind.STORAGE
    wrote_elsewhere = refused[""] > 0
    return Kind.HARD if wrote_elsewhere and word != _LATE else Kind.SOFT


def _find_grant_troubles(facts: NodeFacts, wants: Wants) -> Iterator[Finding]:
    if facts.cpus < wants.cpus:
        # Slurm can be told of more CPUs than a node has; then it is its configuration, not the node, that is wrong.
        kind = Kind.SOFT if facts.cpus_online >= wants.cpus else Kind.NOTE
        yield Finding(kind, f"{facts.cpus} CPUs may be used, of {facts.cpus_online}; the job asked for {wants.cpus}")
    limit, total = facts.memory_limit_mib, facts.memory_total_mib
    if limit is not None and limit < wants.memory_mib:
        yield Finding(Kind.SOFT, f"its control group allows {limit} MiB; the job asked for {wants.memory_mib}")
    elif total is not None and total < wants.memory_mib:
        yield Finding(Kind.NOTE, f"it has {total} MiB of memory; the job asked for {wants.memory_mib}")


def _find_place_troubles(facts: NodeFacts) -> Iterator[Finding]:
    if "skew_s" in facts.folder and abs(facts.folder["skew_s"]) > SKEW_S + facts.folder["write_s"]:
        yield Finding(Kind.SOFT, f"its clock is {-facts.folder['skew_s']:+.0f} s off the file system's")
    free_mib = facts.scratch.get("free_mib")
    if _name_refusal(facts.scratch):
        yield Finding(_SCRATCH.get(_name_refusal(facts.scratch), Kind.NOTE), _describe_refusal(facts.scratch))
    elif free_mib is not None and free_mib < LEAST_MIB:
        yield Finding(Kind.SOFT, f"{facts.scratch['path']} has {free_mib} MiB left")
    if facts.shm_mib is not None and facts.shm_mib < LEAST_MIB:
        yield Finding(Kind.SOFT, f"/dev/shm has {facts.shm_mib} MiB left")


def _find_gpu_troubles(facts: NodeFacts, asked: int) -> Iterator[Finding]:
    if _LATE in facts.gpus:
        yield Finding(Kind.HARD, f"nvidia-smi did not answer within {facts.gpus[_LATE]:.0f} s")
    elif "problem" in facts.gpus:
        yield Finding(Kind.HARD, str(facts.gpus["problem"]))
    elif not facts.gpus:
        yield Finding(Kind.NOTE, "there is no nvidia-smi: its GPUs were not looked at")
    else:
        gpus = select_visible(parse_gpus(facts.gpus["rows"], facts.gpus["fields"]), facts.visible)
        yield from _judge_gpus(gpus, facts, asked)


def _judge_gpus(gpus: Sequence[Gpu], facts: NodeFacts, asked: int) -> Iterator[Finding]:
    xids = facts.xids if isinstance(facts.xids, list) else []
    for fault in (*find_gpu_faults(gpus, asked=asked), *find_xid_faults(xids, gpus)):
        yield Finding(Kind.HARD if fault.hard else Kind.SOFT, fault.text)


def _name_refusal(place: Mapping[str, Any]) -> str:
    return str(place.get("errno") or (_LATE if _LATE in place else ""))


def _describe_refusal(place: Mapping[str, Any]) -> str:
    if _LATE in place:
        return f"a small file in {place['path']} was not written within {place[_LATE]:.0f} s"
    return f"it cannot write in {place['path']}: {place['error']}"


def _describe_silence(host: str, words: str) -> str:
    told = [line.strip() for line in words.splitlines() if re.search(rf"\b{re.escape(host)}\b", line)]
    return f"it did not answer{f': {told[-1]}' if told else ''}"


def _gather(findings: Mapping[str, Sequence[Finding]]) -> Health:
    faults, notes, storage = [], [], ""
    for node, found in findings.items():
        own = [finding for finding in found if finding.kind in (Kind.HARD, Kind.SOFT)]
        if own:
            hard = any(finding.kind is Kind.HARD for finding in own)
            faults.append(NodeFault(node, "; ".join(finding.text for finding in own), hard))
        notes += [f"node {node}: {finding.text}" for finding in found if finding.kind is Kind.NOTE]
        storage = storage or next((finding.text for finding in found if finding.kind is Kind.STORAGE), "")
    return Health(tuple(faults), storage, notes=tuple(notes))
