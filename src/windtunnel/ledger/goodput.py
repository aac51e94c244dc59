"""Adds up where a trial's wall time went. Pure: the time is cut where one thing ended and the next began, so that
nothing is counted twice or dropped.

The ledger's order comes before its clocks: where those of two hosts differ, what is later never begins earlier.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from windtunnel.ledger.log import ASIDE, Event
from windtunnel.records.goodput import AttemptGoodput, Bucket, Goodput, Mark, Phase, Trace
from windtunnel.records.trial import AttemptEnd, Verdict

_SUBMISSION = ("submitting", "submitted", "waiting")
_WAITING = (*_SUBMISSION, "postponed", "withdrawn")
_PLAIN = {
    Phase.START_UP: Bucket.START_UP,
    Phase.RESTORE: Bucket.RESTORE,
    Phase.STALL: Bucket.STALL,
    Phase.DRAIN: Bucket.DRAIN,
    Phase.EVALUATE: Bucket.EVALUATE,
}


@dataclass(frozen=True)
class _Span:
    """An attempt's time, by the evidence that there is."""

    attempt: int
    start: float
    end: float
    stopped_at: float | None
    """When it was told to stop."""
    places: tuple[int, int]
    """Of its first and last event in the ledger; -1 without one."""
    trace: Trace
    unseen: Bucket
    """What its time was where it left no mark."""


@dataclass(frozen=True)
class _Piece:
    start: float
    end: float
    bucket: Bucket


def summarise_goodput(
    events: Sequence[Event], traces: Mapping[int, Trace], ends: Mapping[int, AttemptEnd], *, now: float
) -> Goodput:
    """Seconds by bucket; `traces` and `ends` are by attempt, `now` in seconds since 1970.

    A trial that was neither submitted nor started has no time at all.
    """
    spans = _find_spans(events, traces, ends)
    begun = next((event.at for event in events if event.kind in (*_SUBMISSION, "started")), None)
    cursor = begun if begun is not None else min((span.start for span in spans), default=now)
    began_at, frontier = cursor, 0
    rows: list[AttemptGoodput] = []
    for number, span in enumerate(spans):
        until = spans[number + 1].start if _is_overtaken(spans, number) else math.inf
        start = max(cursor, span.start)
        cursor = max(start, min(span.end, until))
        row, frontier = _split_attempt(replace(span, start=start, end=cursor), frontier=frontier)
        rows.append(row)
    return _add_up(rows, began_at=began_at, ended_at=max(cursor, _find_end(events, spans, now=now)))


def _add_up(rows: Sequence[AttemptGoodput], *, began_at: float, ended_at: float) -> Goodput:
    starts, ends = [row.began_at for row in rows], [row.ended_at for row in rows]
    waits = [start - end for end, start in zip([began_at, *ends], [*starts, ended_at], strict=True)]
    seconds = {bucket: math.fsum(row.seconds.get(bucket, 0.0) for row in rows) for bucket in Bucket}
    seconds[Bucket.QUEUE] += math.fsum(waits)
    return Goodput(ended_at - began_at, seconds, sum(row.new_steps for row in rows), tuple(rows))


def _find_spans(events: Sequence[Event], traces: Mapping[int, Trace], ends: Mapping[int, AttemptEnd]) -> list[_Span]:
    """Of each attempt of which there is any time, in the ledger's order, and after it those that it does not know."""
    told = [event.attempt for event in events if event.kind in ("started", "ended") and event.attempt]
    numbers = dict.fromkeys([*told, *sorted(traces), *sorted(ends)])
    found = (_find_span(number, events, traces.get(number, Trace()), ends.get(number)) for number in numbers)
    return [span for span in found if span is not None]


def _find_span(attempt: int, events: Sequence[Event], trace: Trace, end: AttemptEnd | None) -> _Span | None:
    mine = {event.kind: (place, event) for place, event in enumerate(events) if event.attempt == attempt}
    first, started = mine.get("started", (-1, None))
    last, ended = mine.get("ended", (first, None))
    ended_at = ended.at if ended is not None else None
    first_mark = trace.marks[0].at if trace.marks else None
    start = started.at if started is not None else None
    if start is None and ended_at is not None:  # it was refused before it began, or its start could not be written
        start = ended_at - end.wall_s if end is not None else ended_at
    start = start if start is not None else first_mark
    if start is None:
        return None
    if ended_at is None:
        ended_at = start + end.wall_s if end is not None else _find_last_sign(events, mine, trace, start=start)
    stopped_at = ended.details.get("signalled_at") if ended is not None else None
    took_steps = trace.foreign or (end is not None and end.verdict == Verdict.COMPLETED)
    unseen = Bucket.UNKNOWN if took_steps else Bucket.START_UP
    return _Span(attempt, start, ended_at, stopped_at, (first, last), trace, unseen)


def _find_last_sign(
    events: Sequence[Event], mine: Mapping[str, tuple[int, Event]], trace: Trace, *, start: float
) -> float:
    """The end of an attempt that left no word of it: its last sign of life, before what came next in the ledger."""
    sign = max([start, trace.last_sign, *(mark.at for mark in trace.marks)])
    judged = mine["verdict"][1] if "verdict" in mine else None
    if judged is not None and "life_at" in judged.details:
        sign = max(sign, float(judged.details["life_at"]))
    place = mine["started"][0] if "started" in mine else len(events)
    # A wish for its end, or a late word of its own submission, does not end it.
    later = [event.at for event in events[place + 1 :] if event.kind not in {*ASIDE, "submitted"}]
    return min([sign, *(at for at in later if at >= start)])


def _is_overtaken(spans: Sequence[_Span], number: int) -> bool:
    """Whether the next attempt began before the last word of this one: a writer that had lost its trial."""
    return number + 1 < len(spans) and spans[number].places[1] > spans[number + 1].places[0] >= 0


def _find_end(events: Sequence[Event], spans: Sequence[_Span], *, now: float) -> float:
    """When the trial's time ended after its last attempt: at once, with its last verdict, or not yet."""
    place = max((span.places[1] for span in spans), default=-1)
    started = next((event for event in reversed(events) if event.kind == "started"), None)
    job_id = started.details.get("job_id") if started is not None else None
    later = [event for event in events[place + 1 :] if event.kind not in ASIDE]
    waits = [number for number, event in enumerate(later) if _is_waiting(event, job_id)]
    if not waits:
        return -math.inf
    after = later[waits[-1] + 1 :]
    return after[-1].at if after else now


def _is_waiting(event: Event, job_id: object) -> bool:
    # A quick job may tell of itself before its driver has written its id down.
    return event.kind in _WAITING and not (event.kind == "submitted" and event.details.get("job_id") == job_id)


def _split_attempt(span: _Span, *, frontier: int) -> tuple[AttemptGoodput, int]:
    """An attempt's part of the time, and the highest step that was reached by its end."""
    start, end, trace = span.start, span.end, span.trace
    marks = _fit_marks(trace.marks, start, end)
    pieces = [_Piece(start, end, span.unseen)]
    if marks:
        pieces = list(_cut_pieces(marks, start, end, frontier=frontier))
    reached = max([frontier, *(mark.step for mark in marks)])
    last = marks[-1].at if marks else start
    if span.stopped_at is not None:
        pieces = _end_with(pieces, max(last, span.stopped_at), end, Bucket.DRAIN)
    if trace.hung_since is not None:
        pieces = _end_with(pieces, max(last, trace.hung_since), end, Bucket.HANG)
    seconds = {
        bucket: math.fsum(piece.end - piece.start for piece in pieces if piece.bucket is bucket)
        for bucket in dict.fromkeys(piece.bucket for piece in pieces)
    }
    return AttemptGoodput(span.attempt, start, end, seconds, reached - frontier), reached


def _fit_marks(marks: Sequence[Mark], start: float, end: float) -> list[Mark]:
    """Marks within the attempt: all moved where a rank's clock is not its supervisor's, cut where that fails."""
    if not marks:
        return []
    shift = max(0.0, start - marks[0].at) or min(0.0, end - marks[-1].at)
    fitted, floor = [], start
    for mark in marks:
        floor = min(end, max(floor, mark.at + shift))
        fitted.append(Mark(mark.phase, floor, mark.step))
    return fitted


def _cut_pieces(marks: Sequence[Mark], start: float, end: float, *, frontier: int) -> Iterator[_Piece]:
    yield _Piece(start, marks[0].at, Bucket.START_UP)
    for mark, after in itertools.pairwise(marks):
        if mark.phase is Phase.TRAIN:
            yield from _cut_steps(mark, after, frontier=frontier)
            frontier = max(frontier, after.step)
        else:
            # Looking for a checkpoint where there is none is a part of the start.
            fresh = mark.phase is Phase.RESTORE and after.step == 0
            yield _Piece(mark.at, after.at, Bucket.START_UP if fresh else _PLAIN[mark.phase])
    last = marks[-1]
    # Nobody saw its last steps finished: the pass that counts is a later one.
    yield _Piece(last.at, end, _PLAIN.get(last.phase, Bucket.REPLAY))


def _cut_steps(mark: Mark, after: Mark, *, frontier: int) -> Iterator[_Piece]:
    """The steps from one mark to the next: up to the highest that was reached before, and beyond it."""
    steps = after.step - mark.step
    again = min(max(frontier - mark.step, 0), steps) if steps > 0 else 1
    turn = mark.at + (after.at - mark.at) * again / max(steps, 1)
    turn = min(max(turn, mark.at), after.at)
    yield _Piece(mark.at, turn, Bucket.REPLAY)
    yield _Piece(turn, after.at, Bucket.PRODUCTIVE)


def _end_with(pieces: Iterable[_Piece], at: float, end: float, bucket: Bucket) -> list[_Piece]:
    """The pieces up to a moment, and one of the bucket from there to the end."""
    at = min(at, end)
    kept = [_Piece(piece.start, min(piece.end, at), piece.bucket) for piece in pieces if piece.start < at]
    return [*kept, _Piece(at, end, bucket)]
