"""The training loop: steps, with lines in metrics.jsonl and checkpoints on the way, and back after a fault."""

import copy
import math
import time
from contextlib import nullcontext
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from windtunnel.checkpoints.retention import Retention
from windtunnel.checkpoints.saver import Saver
from windtunnel.comm.base import run_on_root
from windtunnel.errors import DivergedError
from windtunnel.records.goodput import Phase
from windtunnel.records.meter import StepPhase
from windtunnel.records.trial import StepRecord
from windtunnel.training.context import Run
from windtunnel.training.interval import FIRST_STEPS, interval_steps
from windtunnel.training.meters import MetricsLog, drop_later_lines
from windtunnel.training.parallelize import hold_sums
from windtunnel.training.precision import autocast
from windtunnel.training.recovery import Fault, Remedy
from windtunnel.training.resume import TrainState, find_newest, load_state, state_tensors
from windtunnel.training.step import compute_gradients, gradient_norm, learning_rate, rank_loss, set_learning_rate
from windtunnel.training.stop import StopVote, StopWish
from windtunnel.training.straggler import find_stragglers
from windtunnel.training.use import Gauges
from windtunnel.units import format_count

_HOST = torch.device("cpu")


class Loop:
    """Takes a run's state to its last step; `wrapped` is the model as this rank calls it."""

    def __init__(self, run: Run, state: TrainState, wrapped: nn.Module, wish: StopWish) -> None:
        self._run = run
        self._state = state
        self._wrapped = wrapped
        self.gauges = Gauges(state)
        self._saver = open_saver(run)
        self._vote = StopVote(wish, run.mesh)
        self._log = MetricsLog(run.folder.metrics, write=run.mesh.is_root)
        self._started = 0.0
        self._due = state.step + FIRST_STEPS
        self._slow: set[int] = set()
        self._named: set[int] = set()

    def train(self) -> bool:
        """Take steps to the last; False when told to stop before, after a checkpoint of there.

        Raises DivergedError before anything that is not finite is kept.
        """
        run, state, steps = self._run, self._state, self._run.settings.training.steps
        run.phases_s["checkpoint"] = 0.0
        self._started = time.perf_counter()
        self._wrapped.train()
        state.meters.begin()
        run.timeline.mark(Phase.TRAIN, state.step)
        stopped = False
        try:
            while state.step < steps and not stopped:
                # Of the first step alone, since looking at what it saves takes time.
                with self.gauges.saved.watch() if self.gauges.saved.bytes is None else nullcontext():
                    take_step(run, state, self._wrapped)
                stopped = state.step < steps and self._vote.is_agreed(state.step)
                stopped = self._keep_books(stopped=stopped) and stopped
        finally:  # also after a save that failed, or a loss that stayed bad
            run.timeline.mark(Phase.DRAIN, state.step)
        state.meters.enter(StepPhase.CHECKPOINT)
        with run.phase("checkpoint"):
            self._saver.wait()
        state.meters.close()
        self._log.close()
        run.phases_s["train"] = time.perf_counter() - self._started - run.phases_s["checkpoint"]
        return not stopped

    def _keep_books(self, *, stopped: bool) -> bool:
        """Write what is due after a step; False when a fault led back to an earlier one instead."""
        settings, state = self._run.settings.training, self._state
        last = state.step == settings.steps
        line_due = last or state.step % settings.log_every == 0
        checkpoint_due = last or stopped or self._is_checkpoint_due()
        if line_due or checkpoint_due:
            fault = state.meters.flush(spike=settings.spike_factor) or find_bad_gradient(state)
            self._vote.pace(state.meters.agreed_step_s)
            self._run.position.learn(state.meters.state.step_times_s)
            self._note_stragglers()
            self._run.position.leave()
            if fault is not None:
                self._recover(fault)
                return False
        if line_due and state.meters.line_ready:
            write_line(self._run, state, self._log, elapsed_s=time.perf_counter() - self._started)
        if checkpoint_due:
            self._run.timeline.mark(Phase.DRAIN if last or stopped else Phase.STALL, state.step)
            self._save()
        if (line_due or checkpoint_due) and not (last or stopped):
            self._run.timeline.mark(Phase.TRAIN, state.step)
        return True

    def _note_stragglers(self) -> None:
        slow = find_stragglers(self._state.meters.ranks_own_s)
        again, self._slow = self._slow & set(slow), set(slow)
        for rank, times in slow.items():
            if rank in again - self._named:  # slow twice in a row: once may be the operating system's
                self._named.add(rank)
                told = f"straggler: rank {rank} on {self._run.hosts[rank]} takes {times:.2g} times the usual"
                self._run.report(f"{told} (step {self._state.step})")
                self._state.recovery.notes.append(f"{told}, first seen by step {self._state.step}")

    def _save(self) -> None:
        run, state = self._run, self._state
        state.meters.enter(StepPhase.CHECKPOINT)
        for note in state.recovery.settle(state.step):
            run.report(note)
        self._log.sync()
        began, origin = time.perf_counter(), run.origin(state.step, train_loss=state.meters.known_loss)
        with run.phase("checkpoint"):
            self._saver.save(state_tensors(state, run.mesh), origin)
        state.meters.enter(StepPhase.OTHER)
        self._plan_next(time.perf_counter() - began)

    def _is_checkpoint_due(self) -> bool:
        every = self._run.settings.training.checkpoint_every
        return self._state.step % every == 0 if every else self._state.step >= self._due

    def _plan_next(self, cost_s: float) -> None:
        """Measured on each rank, decided by the first."""
        run, step_s = self._run, self._state.meters.agreed_step_s
        nodes, hours = len(set(run.hosts)), run.settings.training.node_mtbf_hours
        if not run.settings.training.checkpoint_every and step_s > 0:
            steps = interval_steps(cost_s=cost_s, step_s=step_s, nodes=nodes, node_mtbf_hours=hours)
            self._due = self._state.step + run_on_root(run.mesh.comm, lambda: steps)

    def _recover(self, fault: Fault) -> None:
        run, state = self._run, self._state
        run.timeline.mark(Phase.RESTORE, state.step)
        remedy = state.recovery.decide(fault)
        with run.phase("checkpoint"):
            self._saver.wait()
        choice = find_newest(run.checkpoints_dir, mesh=run.mesh) if remedy is not Remedy.STOP else None
        if choice is None or choice.path is None or choice.manifest is None:
            none = "" if choice is None else "; there is no checkpoint to return to"
            raise DivergedError(f"{state.recovery.explain_stop()}{none}")
        run.report(f"{fault.told}: back to step {choice.manifest.step}, to {remedy}")
        known = copy.deepcopy(state.recovery)
        load_state(state, choice.path, step=choice.manifest.step, mesh=run.mesh)
        state.recovery = known  # what is known of the faults is newer than the checkpoint
        state.meters.forget_pending()
        state.optimizer.zero_grad(set_to_none=True)
        self._log.close()
        if run.mesh.is_root:
            drop_later_lines(run.folder.metrics, state.step)
        self._log = MetricsLog(run.folder.metrics, write=run.mesh.is_root)
        run.timeline.mark(Phase.TRAIN, state.step)


def take_step(run: Run, state: TrainState, wrapped: nn.Module) -> None:
    """One optimizer step on this rank's part of the global batch, or none where the batch is to be skipped."""
    settings = run.settings.training
    if state.step + 1 in state.recovery.skipped:
        state.step += 1
        return
    meters = state.meters
    meters.start_step()
    micro_batches = np.array_split(run.step_rows(state.step), settings.accumulate)
    meters.enter(StepPhase.OPTIMIZER)
    set_learning_rate(state.optimizer, learning_rate(state.step, settings))
    state.optimizer.zero_grad(set_to_none=True)
    losses = []
    for rows in micro_batches[:-1]:
        with hold_sums(wrapped):
            losses.append(add_gradients(run, state, wrapped, rows).detach())
    losses.append(add_gradients(run, state, wrapped, micro_batches[-1], last=True).detach())
    meters.enter(StepPhase.OPTIMIZER)
    state.optimizer.step()
    run.position.enter("agree", state.step + 1)
    state.step += 1
    meters.stop_step(losses[0] if len(losses) == 1 else torch.stack(losses).sum(), step=state.step)


def add_gradients(
    run: Run, state: TrainState, wrapped: nn.Module, rows: NDArray[np.int64], *, last: bool = False
) -> Tensor:
    """Add the gradients of the samples that end at `rows`, the whole of a part of a batch or less; their loss."""
    settings, meters, device, step = run.settings.training, state.meters, run.mesh.device, state.step + 1
    meters.enter(StepPhase.DATA_WAIT)
    run.position.enter("data", step)
    batch = run.data.gather(rows, _HOST)
    meters.enter(StepPhase.HOST_TO_DEVICE)
    batch = (batch[0].to(device, non_blocking=True), batch[1].to(device, non_blocking=True))
    meters.enter(StepPhase.FORWARD)
    run.position.enter("forward", step)
    loss = rank_loss(
        wrapped,
        batch,
        task=run.task,
        volatility_weight=run.settings.task.volatility_weight,
        batch_size=settings.batch_size,
        context=autocast(settings, device),
    )
    run.position.enter("backward", step)
    if last and device.type == "cpu":  # elsewhere the clock shows only how long the asking took
        meters.add_own(time.monotonic() - run.position.step_began)
    meters.enter(StepPhase.BACKWARD)
    exposed = partial(meters.enter, StepPhase.COMMUNICATION) if last and run.mesh.world_size > 1 else None
    compute_gradients(loss, parts=run.mesh.data_size, call=exposed)
    return loss


def find_bad_gradient(state: TrainState) -> Fault | None:
    """The last step, when its gradient was not finite though its loss was."""
    norm = gradient_norm(state.model)
    if math.isfinite(norm):
        return None
    return Fault(
        state.step,
        f"the gradient's norm became {norm} by step {state.step}: lower training.learning_rate, or try "
        "training.precision=fp32",
    )


def write_line(run: Run, state: TrainState, log: MetricsLog, *, elapsed_s: float) -> None:
    """Add the steps since the line before to metrics.jsonl, and show them."""
    settings = run.settings.training
    steps = len(state.meters.state.pending_losses)
    loss, step_s = state.meters.take_line()
    record = StepRecord(
        step=state.step,
        attempt=run.attempt,
        loss=loss,
        learning_rate=learning_rate(state.step - 1, settings),
        samples_per_s=settings.batch_size / step_s,
        step_s=step_s,
        elapsed_s=elapsed_s,
        phases_s=state.meters.take_phases(steps),
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
