"""A look at a trial that costs two small reads: enough to tell an end that stays, which is what most trials have.

`ledger.reconcile` judges all others, from all that there is; where both can tell, they tell the same.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from windtunnel.launch.roster import Row
from windtunnel.ledger.log import ASIDE, LEDGER
from windtunnel.records.trial import FINAL, TrialOutcome, Verdict

_BLOCK_BYTES = 1 << 14
_TOLD_BY_DRIVER = FINAL - {Verdict.COMPLETED}
_TOLD_BY_SUPERVISOR = frozenset({Verdict.FAILED, Verdict.OOM})


@dataclass(frozen=True)
class Glance:
    """An end that no later look changes, unless someone withdraws it; or that nothing was ever begun."""

    verdict: Verdict | None
    """None: there is no record of the trial."""
    evidence: str = ""
    attempts: int = 0
    node_seconds: float = 0.0
    """By the times of the ledger's events; END.json is exact to the millisecond."""
    hosts: tuple[str, ...] = ()
    job_id: str = ""
    outcome: Mapping[str, Any] | None = None
    """DONE.json's content as plain values, when the trial is COMPLETED."""


def glance(trials: str, row: Row) -> Glance | None:
    """What two reads tell of a trial in the folder `trials`; None when they do not suffice."""
    folder = f"{trials}/{row.id}"
    ledger = _read(f"{folder}/{LEDGER}")
    if ledger is None:
        return None if Path(folder).exists() else Glance(None)
    events = _parse_ledger(ledger)
    last = next((event for event in reversed(events) if event["kind"] not in ASIDE), None)
    if last is None or last["kind"] not in ("ended", "verdict"):
        return None
    if last["attempt"] < max((event["attempt"] for event in events if event["kind"] == "started"), default=0):
        return None  # the word of one that did not see the attempt after it
    outcome = _parse_outcome(_read(f"{folder}/DONE.json"), row)
    if outcome is not None:
        evidence = f"DONE.json of attempt {outcome['attempt']}: {outcome['steps']} steps"
        return _make(Verdict.COMPLETED, evidence, events, outcome)
    told = _TOLD_BY_SUPERVISOR if last["kind"] == "ended" else _TOLD_BY_DRIVER
    verdict = last["details"].get("verdict")
    if verdict not in told:
        return None
    return _make(Verdict(verdict), str(last["details"].get("evidence", "")), events, None)


def count_ledger_node_seconds(events: Sequence[Mapping[str, Any]]) -> float:
    """Nodes times seconds from each start in the ledger to what came next."""
    total = 0.0
    events = [event for event in events if event["kind"] not in ASIDE]
    for event, later in zip(events, [*events[1:], None], strict=True):
        if event["kind"] == "started" and later is not None:
            until = later["details"].get("life_at") or later["at"]
            total += len(set(event["details"].get("hosts") or (event["host"],))) * max(0.0, until - event["at"])
    return total


def _make(
    verdict: Verdict, evidence: str, events: Sequence[Mapping[str, Any]], outcome: Mapping[str, Any] | None
) -> Glance:
    starts = [event for event in events if event["kind"] == "started"]
    details = starts[-1]["details"] if starts else {}
    attempts = len({event["attempt"] for event in events if event["kind"] in ("started", "ended")})
    hosts, job_id = tuple(details.get("hosts") or ()), str(details.get("job_id") or "")
    return Glance(verdict, evidence, attempts, count_ledger_node_seconds(events), hosts, job_id, outcome)


def _parse_ledger(data: bytes) -> list[dict[str, Any]]:
    lines = data.splitlines()
    try:
        return list(from_json(b"[" + b",".join(lines) + b"]"))
    except ValueError:
        return [event for line in lines if (event := _parse_event(line)) is not None]


def _parse_event(line: bytes) -> dict[str, Any] | None:
    try:
        event = from_json(line)
    except ValueError:
        return None  # torn
    return event if isinstance(event, dict) and "kind" in event else None


def _parse_outcome(data: bytes | None, row: Row) -> Mapping[str, Any] | None:
    if data is None:
        return None
    try:
        document = from_json(data)
        content: Mapping[str, Any] = document["content"]
        right = (document["schema"], content["trial_id"]) == (TrialOutcome.SCHEMA, row.id)
        return content if right and row.steps in (0, content["steps"]) and "checkpoint" in content else None
    except (ValueError, KeyError, TypeError):
        return None


def _read(path: str) -> bytes | None:
    # `open` does twice the work, and there may be twenty thousand of these.
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        data = os.read(descriptor, _BLOCK_BYTES)
        while len(data) % _BLOCK_BYTES == 0 and (more := os.read(descriptor, _BLOCK_BYTES)):
            data += more
        return data
    except OSError:
        return None
    finally:
        os.close(descriptor)
