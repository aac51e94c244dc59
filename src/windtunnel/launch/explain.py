"""Why a trial ran, was tried again, waits or ended: its history in sentences, from its records alone. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from windtunnel.cost import price
from windtunnel.hostlist import collapse_hostlist
from windtunnel.launch.roster import Row
from windtunnel.ledger.facts import TrialFacts
from windtunnel.ledger.lease import Holder
from windtunnel.ledger.log import Event
from windtunnel.ledger.nodes import Exclusion
from windtunnel.ledger.reconcile import JobSight, Phase, Standing, count_node_seconds, find_job_id
from windtunnel.ledger.retries import Ending, decide_retry, read_retried
from windtunnel.records.goodput import Goodput
from windtunnel.records.trial import FINAL, AttemptEnd, Verdict
from windtunnel.settings.sweep import RetrySettings
from windtunnel.units import format_seconds


@dataclass(frozen=True)
class Case:
    """All that is known of one trial in its study."""

    row: Row
    facts: TrialFacts
    standing: Standing
    sight: JobSight
    retries: RetrySettings
    strict: bool
    driver: Holder | None
    command: str
    """What goes on with the study, as one types it."""
    exclusion: Exclusion
    goodput: Goodput | None = None


def explain_trial(case: Case) -> list[str]:
    """A line for what it is, a line an event, and a last one for what comes next."""
    nodes = f"{case.row.nodes} node{'s' if case.row.nodes > 1 else ''}"
    goal = f"{case.row.steps} steps" if case.row.steps else "its program's own end"
    limit = f", at most {format_seconds(case.row.time_min * 60)} an attempt" if case.row.time_min else ""
    first = f"trial {case.row.id}: {case.row.name}: {nodes}, {goal}{limit}"
    used = price(count_node_seconds(case.facts), per_node_hour=0, currency="")
    spent = [f"It used {used} in {_count(len(case.facts.attempts), 'attempt')}."] if case.facts.attempts else []
    time = tell_goodput(case.goodput) if case.goodput is not None and case.facts.attempts else []
    return [first, *tell_history(case.facts), *spent, *time, *_tell_nodes(case.exclusion), tell_state(case)]


def tell_history(facts: TrialFacts) -> list[str]:
    """A sentence for each event of the ledger, in order."""
    return [f"{_when(event.at)}  {sentence}" for event, sentence in _tell_events(facts) if sentence]


def tell_goodput(goodput: Goodput) -> list[str]:
    """Where its time went, the largest part first; no line while it has none."""
    parts = sorted(goodput.seconds.items(), key=lambda part: -part[1])
    shares = [f"{seconds / goodput.wall_s:.1%} {bucket}" for bucket, seconds in parts if seconds > 0.0]
    told = ", ".join(shares).replace("_", "-")
    rate = f"; {_count(goodput.new_steps, 'new step')} at {goodput.steps_per_s:.3g} a second"
    steps = rate if goodput.new_steps else ""
    return [f"Its {format_seconds(goodput.wall_s)} were: {told}{steps}."] if shares else []


def tell_state(case: Case) -> str:
    """What it is doing now, or how it ended, and what happens next."""
    standing = case.standing
    if standing.phase == Phase.ENDED:
        return f"It is {standing.verdict}: {_sentence(standing.evidence)} {_tell_next(case)}".rstrip()
    job_id = find_job_id(case.facts)
    if standing.phase == Phase.QUEUED:
        return f"It waits: Slurm has job {job_id} queued{_because(case.sight.evidence)}.{_tell_driver(case)}"
    if standing.phase == Phase.RUNNING:
        holder = case.facts.holder
        where = f" under pid {holder.pid} on host {holder.host}" if holder is not None else f" as job {job_id}"
        return f"It runs{where}{_because(standing.evidence)}.{_tell_driver(case)}"
    if standing.phase == Phase.NEW:
        again = "was withdrawn, and " if case.facts.events else ""
        return f"It {again}has not been submitted{_tell_waiting(case)}."
    return (
        f"It is unsure: neither its records nor Slurm show it alive or ended{_because(standing.evidence)}; "
        f"its driver waits before it calls it LOST.{_tell_driver(case)}"
    )


def _tell_events(facts: TrialFacts) -> Iterator[tuple[Event, str]]:
    for event in facts.events:
        yield event, _tell_event(event, facts.ends.get(event.attempt))


def _tell_event(event: Event, end: AttemptEnd | None) -> str:
    details = event.details
    match event.kind:
        case "submitted":
            return f"Submitted as job {details.get('job_id')} from host {event.host}."
        case "queued" if details.get("job_id"):
            return f"Job {details['job_id']} was queued behind job {details.get('behind')}, to go on with it."
        case "queued":
            return f"No job was queued behind its own: {_sentence(details.get('evidence'))}"
        case "started":
            hosts = tuple(dict.fromkeys(details.get("hosts") or (event.host,)))
            where = hosts[0] if len(hosts) == 1 else collapse_hostlist(hosts)
            return f"Attempt {event.attempt} started on {where}."
        case "ended":
            took = f" after {format_seconds(end.wall_s)}" if end is not None else ""
            return (
                f"Attempt {event.attempt} ended{took}: {details.get('verdict')}: {_sentence(details.get('evidence'))}"
            )
        case "verdict":
            judge = "The job behind it" if details.get("by") == "successor" else "Its driver"
            return f"{judge} judged it {details.get('verdict')}: {_sentence(details.get('evidence'))}"
        case "cancelling":
            study = f" of study {details['study']}" if details.get("study") else ""
            return f"{details.get('user', 'Someone')} cancelled it{study} on host {event.host}."
        case "withdrawn":
            return f"Its verdict was withdrawn, and its budgets count anew: {_sentence(details.get('reason'))}"
    return ""  # a submission's beginning is told by its answer


def _tell_next(case: Case) -> str:
    verdict = case.standing.verdict
    assert verdict is not None
    if verdict == Verdict.COMPLETED:
        return "That is final."
    if verdict == Verdict.CANCELLED:
        return f"It is not tried again by itself: `{case.command}` does it."
    told = [event for event in case.facts.events if event.kind == "verdict"]
    step = max((int(event.details.get("step", 0)) for event in told), default=0)
    retry = decide_retry(Ending(verdict, step), read_retried(case.facts.events, case.facts.ends), case.retries)
    words = f" ({retry.words})" if retry.words else ""
    if retry.again and case.driver is not None:
        return f"Its driver tries it again{words}."
    if verdict in FINAL and not (case.strict and verdict == Verdict.FAILED):
        return f"That is final{words}. `windtunnel retry` withdraws it, if it shall run again."
    return f"It is not final: `{case.command}` tries it again{words}."


def _tell_waiting(case: Case) -> str:
    if case.driver is None:
        return f", and nobody drives its study: `{case.command}` submits it"
    return f": the driver (pid {case.driver.pid} on host {case.driver.host}) submits it as room appears"


def _tell_driver(case: Case) -> str:
    return "" if case.driver is not None else f" Nobody drives its study: `{case.command}` watches it."


def _tell_nodes(exclusion: Exclusion) -> list[str]:
    if not exclusion.nodes:
        return []
    return [f"Left out of submissions after failures: {collapse_hostlist(exclusion.nodes)}."]


def _because(text: str) -> str:
    return f" ({text})" if text else ""


def _sentence(text: object) -> str:
    words = str(text or "no reason was written").strip()
    return words if words.endswith((".", "!", "?")) else f"{words}."


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(sep=" ", timespec="seconds")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def explain_pruned(pruned: Sequence[tuple[str, str]], word: str) -> list[str]:
    """A line for each refused combination of that name: why it has no trial at all."""
    return [f"{name} was pruned, and is no trial: {reason}" for name, reason in pruned if word and word in name]
