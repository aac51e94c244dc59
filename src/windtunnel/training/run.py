"""One rank of a trial, from its order to its outcome: set up, resume, train, evaluate, publish."""

import time
from pathlib import Path

from torch import nn

from windtunnel.checkpoints.fence import Fence
from windtunnel.comm.base import run_on_root
from windtunnel.comm.ranks import RankEnv
from windtunnel.ledger.facts import read_outcome
from windtunnel.ledger.layout import TrialFolder
from windtunnel.models.build import build_model
from windtunnel.records.goodput import Phase
from windtunnel.records.trial import TrialConfig
from windtunnel.settings.base import parse_settings
from windtunnel.settings.study import TrialSettings
from windtunnel.tasks.find import find_task
from windtunnel.training.context import Run
from windtunnel.training.data import load_data
from windtunnel.training.evaluate import evaluate
from windtunnel.training.loop import Loop
from windtunnel.training.mesh import close_mesh, open_mesh, read_host
from windtunnel.training.meters import Meters, drop_later_lines
from windtunnel.training.outcome import publish_outcome
from windtunnel.training.parallelize import parallelize
from windtunnel.training.precision import derive_seed, seed_generators, set_arithmetic
from windtunnel.training.recovery import Recovery
from windtunnel.training.resume import TrainState, find_start, load_state
from windtunnel.training.step import make_optimizer
from windtunnel.training.stop import StopWish
from windtunnel.training.timeline import Timeline
from windtunnel.training.watch import watch_hangs


def run_rank(
    trial_dir: Path,
    *,
    attempt: int,
    config: TrialConfig,
    env: RankEnv,
    started: float,
    wish: StopWish,
    generation: int = 0,
) -> bool:
    """Do this rank's part of a trial; rank 0 publishes its outcome. Nothing is done where there is one already.

    False when it was told to stop before the last step: the same command goes on from where it was.

    `started` is the moment, on `time.perf_counter`, that set-up is counted from; `generation` that of the lease
    under which the rank was started, 0 without one.
    """
    folder = TrialFolder(trial_dir)
    settings = parse_settings(TrialSettings, config.trial.settings, where=str(folder.config))
    outcome, problem = read_outcome(folder, steps=settings.training.steps)
    if outcome is not None:
        print(f"{folder.done} is there: nothing to do", flush=True)
        return True
    fence = Fence(folder.lease if generation else None, generation)
    run = open_run(folder, attempt=attempt, config=config, settings=settings, env=env, fence=fence)
    if problem:
        run.report(f"making the outcome again: {problem}")
    state, wrapped = set_up(run)
    run.timeline.mark(Phase.RESTORE, state.step)
    resumed_from = resume(run, state)
    run.phases_s["setup"] = time.perf_counter() - started
    with watch_hangs(run.position, rank=run.mesh.rank, host=read_host(), attempt_dir=folder.attempt(attempt)):
        loop = Loop(run, state, wrapped, wish)
        done = loop.train()
    use = loop.gauges.read(run, state)
    if not done:
        run.report(f"stopped after step {state.step}, with a checkpoint")
        close_mesh()
        return False
    run.timeline.mark(Phase.EVALUATE, state.step)
    with run.phase("evaluate"):
        parts = (run.data.split.validation, run.data.split.test)
        evaluations = tuple(evaluate(state.model, run.data, part, settings=settings, mesh=run.mesh) for part in parts)
    publish_outcome(run, state, use=use, evaluations=evaluations, resumed_from=resumed_from)
    run.timeline.mark(Phase.DRAIN, state.step)
    close_mesh()
    return True


def open_run(
    folder: TrialFolder, *, attempt: int, config: TrialConfig, settings: TrialSettings, env: RankEnv, fence: Fence
) -> Run:
    """Join the other ranks and read the data."""
    set_arithmetic(settings.training)
    rendezvous = folder.attempt(attempt) / "rendezvous.json"
    mesh = open_mesh(settings.parallelism, settings.cluster, env=env, rendezvous=rendezvous)
    return Run(
        folder=folder,
        attempt=attempt,
        config=config,
        settings=settings,
        task=find_task(settings.task.name),
        mesh=mesh,
        data=load_data(Path(config.features_manifest), settings),
        seed=derive_seed(settings),
        hosts=tuple(mesh.comm.allgather(read_host())),
        fence=fence,
        timeline=Timeline(folder.attempt(attempt) if mesh.is_root else None),
    )


def set_up(run: Run) -> tuple[TrainState, nn.Module]:
    """The state to train from, and the model as this rank calls it."""
    seed_generators(run.seed)
    model = build_model(
        run.settings.model,
        n_features=run.data.n_features,
        n_outputs=run.task.n_outputs,
        window=run.settings.task.window,
    ).to(run.mesh.device)
    sample_x, _ = run.data.gather(run.step_rows(0), run.mesh.device)
    wrapped = parallelize(model, layout=run.settings.parallelism, mesh=run.mesh, sample_x=sample_x)
    # From here on ranks draw apart: two of them must not drop the same units.
    seed_generators(run.seed + 1 + run.mesh.rank)
    meters = Meters(run.mesh, discard_steps=run.settings.training.discard_steps)
    recovery = Recovery(run.settings.training.rollbacks)
    return TrainState(model, make_optimizer(model, run.settings.training), meters, recovery), wrapped


def resume(run: Run, state: TrainState) -> int | None:
    """Fill `state` from the newest checkpoint that verifies; the step that it had, None for a fresh start."""
    choice = find_start(run.checkpoints_dir, origin=run.origin(0), mesh=run.mesh)
    for line in choice.skipped:
        run.report(f"skipped checkpoint {line}")
    step = None
    if choice.path is not None and choice.manifest is not None:
        step = choice.manifest.step
        load_state(state, choice.path, step=step, mesh=run.mesh)
        run.report(f"resumed from {choice.path.name}")
    run_on_root(run.mesh.comm, lambda: drop_later_lines(run.folder.metrics, state.step))
    return step
