"""The outcome of a program that is not ours, from the lines that it wrote: DONE.json. Pure."""

from windtunnel.attempt.protocol import Tally, describe_passed_over, measure_speed
from windtunnel.records.trial import Evaluation, TrialConfig, TrialOutcome


def describe_outcome(
    config: TrialConfig, tally: Tally, *, attempt: int, rank_hosts: tuple[str, ...], wall_s: float
) -> TrialOutcome:
    """The outcome as a record; a number that the program did not tell is None."""
    speed = measure_speed(tally, discard_steps=config.trial.settings["training"]["discard_steps"])
    params = tally.newest.get("params")
    return TrialOutcome(
        trial_id=config.trial.id,
        attempt=attempt,
        steps=tally.last_step,
        final_train_loss=tally.newest.get("loss"),
        evaluations=_read_evaluations(tally),
        samples_per_s=speed.samples_per_s,
        step_s_median=speed.step_s_median,
        step_s_p90=speed.step_s_p90,
        steps_timed=speed.steps_timed,
        steps_discarded=speed.steps_discarded,
        params=int(params) if params is not None else None,
        peak_rss_mib=tally.newest.get("peak_rss_mib"),
        checkpoint="",
        resumed_from_step=None,
        device=tally.device,
        rank_hosts=rank_hosts,
        phases_s={"run": wall_s},
        notes=describe_passed_over(tally),
    )


def _read_evaluations(tally: Tally) -> tuple[Evaluation, ...]:
    """One a range whose loss was told; numbers of no known meaning belong to the validation."""
    evaluations = []
    for split in ("validation", "test"):
        loss = tally.newest.get(f"{split}_loss")
        if loss is not None:
            samples = int(tally.newest.get(f"{split}_samples", 0))
            evaluations.append(Evaluation(split, samples, loss, tally.metrics if split == "validation" else {}))
    return tuple(evaluations)
