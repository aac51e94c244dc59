"""The training loop: steps, with lines in metrics.jsonl and checkpoints on the way."""

import math
import time

from torch import nn

from windtunnel.checkpoints.retention import Retention
from windtunnel.checkpoints.saver import Saver
from windtunnel.errors import DivergedError
from windtunnel.records.trial import StepRecord
from windtunnel.training.context import Run
from windtunnel.training.meters import MetricsLog
from windtunnel.training.precision import autocast
from windtunnel.training.resume import TrainState, state_tensors
from windtunnel.training.step import apply_gradients, gradient_norm, learning_rate, rank_loss, set_learning_rate
from windtunnel.training.stop import StopVote, StopWish
from windtunnel.units import format_count


def train(run: Run, state: TrainState, wrapped: nn.Module, wish: StopWish) -> bool:
    """Take steps from `state.step` to the last; False when it was told to stop before, after a checkpoint of there.

    Raises DivergedError before anything that is not finite is kept.
    """
    settings = run.settings.training
    log = MetricsLog(run.folder.metrics, write=run.mesh.is_root)
    saver, vote = open_saver(run), StopVote(wish, run.mesh)
    run.phases_s["checkpoint"] = 0.0
    started = time.perf_counter()
    wrapped.train()
    stopped = False
    while state.step < settings.steps and not stopped:
        take_step(run, state, wrapped)
        last = state.step == settings.steps
        stopped = not last and vote.is_agreed(state.step)
        line_due = last or state.step % settings.log_every == 0
        checkpoint_due = last or stopped or state.step % settings.checkpoint_every == 0
        if line_due or checkpoint_due:
            state.meters.flush(state.step)
            vote.pace(state.meters.agreed_step_s)
            check_gradients(state)
        if line_due:
            write_line(run, state, log, elapsed_s=time.perf_counter() - started)
        if checkpoint_due:
            log.sync()
            with run.phase("checkpoint"):
                saver.save(state_tensors(state, run.mesh), run.origin(state.step, train_loss=state.meters.known_loss))
    with run.phase("checkpoint"):
        saver.wait()
    log.close()
    run.phases_s["train"] = time.perf_counter() - started - run.phases_s["checkpoint"]
    return not stopped


def take_step(run: Run, state: TrainState, wrapped: nn.Module) -> None:
    """One optimizer step on this rank's part of the global batch."""
    settings = run.settings.training
    state.meters.start_step()
    batch = run.data.gather(run.step_rows(state.step), run.mesh.device)
    set_learning_rate(state.optimizer, learning_rate(state.step, settings))
    state.optimizer.zero_grad(set_to_none=True)
    loss = rank_loss(
        wrapped,
        batch,
        task=run.task,
        volatility_weight=run.settings.task.volatility_weight,
        batch_size=settings.batch_size,
        context=autocast(settings, run.mesh.device),
    )
    apply_gradients(loss, state.optimizer, world_size=run.mesh.world_size)
    state.step += 1
    state.meters.stop_step(loss)


def check_gradients(state: TrainState) -> None:
    """Raise DivergedError when the last step's gradient was not finite, though its loss was."""
    norm = gradient_norm(state.model)
    if not math.isfinite(norm):
        raise DivergedError(
            f"the gradient's norm became {norm} by step {state.step}: lower training.learning_rate, or try "
            "training.precision=fp32"
        )


def write_line(run: Run, state: TrainState, log: MetricsLog, *, elapsed_s: float) -> None:
    """Add the steps since the line before to metrics.jsonl, and show them."""
    settings = run.settings.training
    loss, step_s = state.meters.take_line()
    record = StepRecord(
        step=state.step,
        attempt=run.attempt,
        loss=loss,
        learning_rate=learning_rate(state.step - 1, settings),
        samples_per_s=settings.batch_size / step_s,
        step_s=step_s,
        elapsed_s=elapsed_s,
    )
    log.append(record)
    rate = format_count(settings.batch_size / step_s)
    run.report(f"step {record.step}/{settings.steps}  loss {loss:.4f}  {rate} samples/s")


def open_saver(run: Run) -> Saver:
    """What writes this run's checkpoints."""
    settings = run.settings.training
    kept = Retention(settings.keep_checkpoints, settings.keep_every_steps, settings.keep_best)
    return Saver(
        run.checkpoints_dir,
        comm=run.mesh.comm,
        fence=run.fence,
        retention=kept,
        group=run.mesh.saver_group,
        asynchronous=settings.async_checkpoints,
    )
