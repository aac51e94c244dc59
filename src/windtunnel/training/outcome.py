"""A trial's outcome, as rank 0 publishes it once for all: DONE.json."""

from collections.abc import Sequence

from windtunnel.artifacts import hash_json, write_artifact
from windtunnel.checkpoints.manifest import checkpoint_name
from windtunnel.comm.base import run_on_root
from windtunnel.kernels.backend import choose_backend
from windtunnel.records.trial import Evaluation, TrialOutcome
from windtunnel.training.context import Run
from windtunnel.training.mesh import describe_device
from windtunnel.training.meters import summarise_times
from windtunnel.training.resume import TrainState
from windtunnel.training.use import RankUse, add_energy
from windtunnel.training.work import describe_work
from windtunnel.units import MIB


def publish_outcome(
    run: Run, state: TrainState, *, use: RankUse, evaluations: tuple[Evaluation, ...], resumed_from: int | None
) -> None:
    """Gather what ranks know of themselves and write DONE.json, on which the trial is completed."""
    ranks = run.mesh.comm.allgather(use)
    outcome = describe_outcome(run, state, ranks=ranks, evaluations=evaluations, resumed_from=resumed_from)

    def publish() -> None:
        run.fence.check()
        write_artifact(run.folder.done, outcome, settings_hash=hash_json(run.config.trial.settings))

    run_on_root(run.mesh.comm, publish)
    scores = ", ".join(f"{part.split} loss {part.loss:.4f}" for part in evaluations)
    run.report(f"done after step {state.step}: {scores}, {outcome.samples_per_s:.0f} samples/s")


def describe_outcome(
    run: Run,
    state: TrainState,
    *,
    ranks: Sequence[RankUse],
    evaluations: tuple[Evaluation, ...],
    resumed_from: int | None,
) -> TrialOutcome:
    """The outcome as a record; `ranks` tell of each."""
    times = summarise_times(state.meters.state)
    checkpoint = run.checkpoints_dir / checkpoint_name(state.step)
    return TrialOutcome(
        trial_id=run.config.trial.id,
        attempt=run.attempt,
        steps=state.step,
        final_train_loss=state.meters.state.last_loss,
        evaluations=evaluations,
        samples_per_s=run.settings.training.batch_size / times.median_s,
        step_s_median=times.median_s,
        step_s_p90=times.p90_s,
        steps_timed=times.timed,
        steps_discarded=times.discarded,
        params=sum(parameter.numel() for parameter in state.model.parameters()),
        peak_rss_mib=max(rank.peak_resident_bytes for rank in ranks) / MIB,
        checkpoint=str(checkpoint.relative_to(run.folder.path)),
        resumed_from_step=resumed_from,
        device=describe_device(run.mesh.device),
        rank_hosts=tuple(rank.host for rank in ranks),
        phases_s=run.phases_s,
        kernels=choose_backend("auto"),
        notes=tuple(state.recovery.notes),
        work=describe_work(run.settings, n_features=run.data.n_features, n_outputs=run.task.n_outputs),
        rank_memory=tuple(rank.memory for rank in ranks),
        energy=add_energy(ranks),
        rank_phases=tuple(rank.phases for rank in ranks),
    )
