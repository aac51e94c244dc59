"""What a sweep runs next. Pure."""

from collections.abc import Mapping

from windtunnel.records.plan import Plan, PlannedTrial
from windtunnel.records.trial import SweepEntry


def next_round(plan: Plan, finished: Mapping[str, SweepEntry]) -> tuple[PlannedTrial, ...]:
    """The trials to run after those in `finished` (by id); none when the sweep is done.

    Every trial of the space is in the first round; a trial that two combinations share is run once.
    """
    waiting = {trial.id: trial for trial in plan.trials if trial.id not in finished}
    return tuple(waiting.values())
