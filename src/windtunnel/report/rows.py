"""One row per trial: what it was, how it ended, and every number known of it. Pure."""

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from windtunnel.artifacts import hash_json
from windtunnel.cost import Cost, price
from windtunnel.perfmodel.hardware import find_sheet_peak
from windtunnel.perfmodel.utilization import Peak, Utilization, find_utilization
from windtunnel.records.checks import CheckpointCheck, LatencyRow
from windtunnel.records.cluster import DeviceFacts
from windtunnel.records.plan import PlannedTrial
from windtunnel.records.trial import AttemptEnd, Evaluation, SweepEntry, TrialOutcome, Verdict
from windtunnel.report.collect import Collected
from windtunnel.settings.cluster import ClusterSettings

WAITING = "WAITING"
"""Shown for a planned trial that has no verdict yet."""
UNKNOWN_USE = Utilization()
_REPEAT_FIELDS = frozenset({"repeat", "seed"})


@dataclass(frozen=True)
class Row:
    """A trial. A number that was not measured is None, never zero."""

    trial_id: str
    label: str
    """Its name, numbered where several share it."""
    name: str
    choices: dict[str, str]
    configuration: str
    """Key that the repeats of one configuration share."""
    verdict: str
    evidence: str
    attempts: int
    validation: Evaluation | None
    test: Evaluation | None
    outcome: TrialOutcome | None
    latency: LatencyRow | None
    check: CheckpointCheck | None
    cost: Cost
    """Of all attempts."""
    lost: Cost
    """Of attempts that did not finish; part of `cost`."""
    utilization: Utilization = UNKNOWN_USE
    """Of its devices, while it trained."""

    @property
    def completed(self) -> bool:
        return self.verdict == Verdict.COMPLETED and self.outcome is not None

    @property
    def validation_loss(self) -> float | None:
        return finite(self.validation.loss) if self.validation else None

    @property
    def training_loss(self) -> float | None:
        """As the program told it last; that of no unseen data."""
        return finite(self.outcome.final_train_loss) if self.outcome else None

    @property
    def accuracy(self) -> float | None:
        return finite(self.validation.metrics.get("accuracy")) if self.validation else None

    @property
    def samples_per_s(self) -> float | None:
        return finite(self.outcome.samples_per_s) if self.outcome else None

    @property
    def tokens_per_s(self) -> float | None:
        found = self.outcome
        return found.work.tokens / found.step_s_median if found and found.work and found.step_s_median else None

    @property
    def step_spread(self) -> float | None:
        """How far the 90th percentile of step times lies above their median, as a share."""
        if self.outcome is None or not self.outcome.step_s_median or self.outcome.step_s_p90 is None:
            return None
        return self.outcome.step_s_p90 / self.outcome.step_s_median - 1

    @property
    def step_times_ms(self) -> tuple[float | None, float | None]:
        """Median and 90th percentile of a step."""
        found = self.outcome
        times_s = (found.step_s_median, found.step_s_p90) if found is not None else (None, None)
        median_s, p90_s = times_s
        return (None if median_s is None else 1e3 * median_s, None if p90_s is None else 1e3 * p90_s)

    @property
    def clean_cost(self) -> float:
        """Money where priced, else node-hours, of the attempts that finished."""
        if self.cost.money is not None and self.lost.money is not None:
            return self.cost.money - self.lost.money
        return self.cost.node_hours - self.lost.node_hours


def build_rows(collected: Collected, cluster: ClusterSettings) -> tuple[Row, ...]:
    """The sweep's trials, then planned ones without a verdict."""
    planned = {trial.id: trial for trial in collected.plan.trials} if collected.plan else {}
    entries = collected.sweep.entries if collected.sweep else ()
    seen = {entry.trial_id for entry in entries}
    waiting = tuple(_waiting_entry(trial) for trial in planned.values() if trial.id not in seen)
    names = [entry.name for entry in (*entries, *waiting)]
    labels = _number_names(names)
    latencies = {row.trial_id: row for row in collected.latency.rows} if collected.latency else {}
    checks = _final_checks(collected)
    return tuple(
        _build_row(
            entry,
            label=label,
            verdict=str(entry.verdict.value) if entry.trial_id in seen else WAITING,
            planned=planned.get(entry.trial_id),
            attempts=collected.attempts.get(entry.trial_id, ()),
            latency=latencies.get(entry.trial_id),
            check=checks.get(entry.trial_id),
            cluster=cluster,
            device=collected.device,
        )
        for entry, label in zip((*entries, *waiting), labels, strict=True)
    )


def finite(value: float | None) -> float | None:
    """The value, or None for what is no number: a diverged loss ranks nowhere."""
    return value if value is not None and math.isfinite(value) else None


def _build_row(
    entry: SweepEntry,
    *,
    label: str,
    verdict: str,
    planned: PlannedTrial | None,
    attempts: tuple[AttemptEnd, ...],
    latency: LatencyRow | None,
    check: CheckpointCheck | None,
    cluster: ClusterSettings,
    device: DeviceFacts | None,
) -> Row:
    rate: dict[str, Any] = {"per_node_hour": cluster.cost_per_node_hour, "currency": cluster.currency}
    return Row(
        trial_id=entry.trial_id,
        label=label,
        name=entry.name,
        choices=entry.choices,
        configuration=_configuration(entry, planned),
        verdict=verdict,
        evidence=entry.evidence,
        attempts=entry.attempts,
        validation=_evaluation(entry, "validation"),
        test=_evaluation(entry, "test"),
        outcome=entry.outcome,
        latency=latency,
        check=check,
        cost=price(entry.node_seconds, **rate),
        lost=price(lost_node_seconds(entry, attempts), **rate),
        utilization=_find_utilization(entry.outcome, device),
    )


def _find_utilization(outcome: TrialOutcome | None, device: DeviceFacts | None) -> Utilization:
    if outcome is None or outcome.work is None or not outcome.step_s_median:
        return UNKNOWN_USE
    dtype, rates = outcome.work.dtype, device.rates if device and device.device == outcome.device else ()
    measured = next((1e9 * rate.value for rate in rates if rate.name == f"matmul_{dtype}"), None)
    peak = Peak(measured, find_sheet_peak(outcome.device, dtype))
    devices = len(outcome.rank_hosts)
    return find_utilization(outcome.work, step_s=outcome.step_s_median, devices=devices, peak=peak)


def lost_node_seconds(entry: SweepEntry, attempts: tuple[AttemptEnd, ...]) -> float:
    """Node-seconds of the attempts that did not finish: all, for a trial that never did."""
    if entry.verdict != Verdict.COMPLETED:
        return entry.node_seconds
    finished = [end for end in attempts if end.verdict == Verdict.COMPLETED]
    if entry.attempts <= 1 or not finished:
        return 0.0
    used = sum(len(set(end.hosts)) * end.wall_s for end in finished)
    return max(0.0, entry.node_seconds - used)


def _configuration(entry: SweepEntry, planned: PlannedTrial | None) -> str:
    what = planned.settings if planned else entry.choices
    return hash_json({key: value for key, value in what.items() if key not in _REPEAT_FIELDS})[:16]


def _evaluation(entry: SweepEntry, split: str) -> Evaluation | None:
    evaluations = entry.outcome.evaluations if entry.outcome else ()
    return next((evaluation for evaluation in evaluations if evaluation.split == split), None)


def _waiting_entry(trial: PlannedTrial) -> SweepEntry:
    # Its verdict is a placeholder: build_rows shows WAITING instead.
    return SweepEntry(trial.id, trial.name, trial.choices, Verdict.LOST, "no verdict yet", 0, 0.0, None)


def _number_names(names: list[str]) -> list[str]:
    """`tcn`, `tcn` become `tcn (1)`, `tcn (2)`; a name used once stays."""
    seen: defaultdict[str, int] = defaultdict(int)
    labels = []
    for name in names:
        seen[name] += 1
        labels.append(f"{name} ({seen[name]})" if names.count(name) > 1 else name)
    return labels


def _final_checks(collected: Collected) -> dict[str, CheckpointCheck]:
    checks = collected.checkpoints.checks if collected.checkpoints else ()
    return {check.trial_id: check for check in sorted(checks, key=lambda check: check.step)}
