"""Before anything is submitted: what a sweep would ask of the cluster, what it may cost, and all that is wrong.

`check_sweep` only looks; `refuse_mistakes` is what stops a sweep.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from windtunnel.cost import Cost
from windtunnel.errors import ClusterError, CommandError
from windtunnel.launch.budget import Charge, add_up, find_overruns
from windtunnel.launch.context import SweepContext
from windtunnel.launch.course import is_final
from windtunnel.launch.fits import find_delays, find_misfits
from windtunnel.launch.jobs import Estimate, estimate_start, render_script
from windtunnel.launch.packs import name_submission
from windtunnel.launch.shapes import ENDS_AT_ONCE, cut_arrays, pack_within, render_parameters
from windtunnel.ledger.facts import read_facts
from windtunnel.ledger.reconcile import (
    UNSEEN,
    JobSight,
    Phase,
    count_node_seconds,
    find_job_id,
    find_verdict_event,
    reconcile,
)
from windtunnel.planner.table import group_by_shape
from windtunnel.records.cluster import Node
from windtunnel.records.plan import Plan, PlannedTrial, Shape
from windtunnel.slurm.limits import Limits, read_limits
from windtunnel.slurm.scontrol import read_nodes

_MARK = "00000000"
_SHAPES_ASKED = 20
"""Shapes for which sbatch is asked when they would start: a tenth of a second each."""


@dataclass(frozen=True)
class ShapePlan:
    """Trials of one shape that are still to be submitted."""

    shape: Shape
    trials: int
    jobs: int
    arrays: int
    estimate: Estimate | None = None
    """None where Slurm was not asked."""


@dataclass(frozen=True)
class Preflight:
    """What a sweep is about to do; it may begin when there are no mistakes."""

    study: str
    on_slurm: bool
    shapes: tuple[ShapePlan, ...]
    finished: int
    """Trials with a final verdict."""
    under_way: int
    used: Cost
    """By the attempts so far."""
    at_most: Cost
    """By all that is left, each trial once and to its time limit."""
    expected: Cost | None
    """By all that is left, as long as the finished trials of the same shape took; None where one has none."""
    gpu_hours: float
    """With `at_most`."""
    mistakes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    limits: Limits | None = field(default=None, repr=False)
    """What it was held against; None without Slurm, or where Slurm did not answer."""


@dataclass(frozen=True)
class _Stock:
    """Where the plan's trials stand."""

    new: list[PlannedTrial] = field(default_factory=list)
    under_way: list[PlannedTrial] = field(default_factory=list)
    finished: list[PlannedTrial] = field(default_factory=list)
    node_seconds: dict[str, float] = field(default_factory=dict)
    """Used so far, by trial id."""


def check_sweep(plan: Plan, context: SweepContext, limits: Limits | None = None) -> Preflight:
    """What the sweep of a plan would do now. Only trials still to be submitted are held against the cluster.

    `limits` are read where they are not given. A Slurm that does not answer gives a warning.
    """
    stock = _take_stock(plan, context)
    warnings: list[str] = []
    on_slurm = context.cluster.kind == "slurm"
    if on_slurm and limits is None:
        limits = _read_limits(warnings)
    shapes = tuple(_plan_shapes(stock.new, context, limits or Limits()))
    mistakes: list[str] = []
    if on_slurm and shapes:
        mistakes += find_bad_names(context)
        if limits is not None and limits.partitions:
            mistakes += _check_shapes(shapes, stock.new, limits, warnings)
        shapes = _estimate(shapes, context, mistakes, warnings)
    charge = _charge(stock, context)
    return Preflight(
        study=plan.study,
        on_slurm=on_slurm,
        shapes=shapes,
        finished=len(stock.finished),
        under_way=len(stock.under_way),
        used=charge.used,
        at_most=charge.at_most,
        expected=charge.expected,
        gpu_hours=charge.gpu_hours,
        mistakes=(*mistakes, *find_overruns(charge, context.sweep, context.cluster)),
        warnings=tuple(warnings),
        limits=limits,
    )


def refuse_mistakes(preflight: Preflight) -> None:
    """Raise ClusterError with a line for each mistake, if there are any."""
    if preflight.mistakes:
        lines = "".join(f"\n  {mistake}" for mistake in preflight.mistakes)
        raise ClusterError(f"study {preflight.study} cannot be submitted as it is:{lines}")


def render_scripts(plan: Plan, context: SweepContext, limits: Limits | None = None) -> list[tuple[str, str]]:
    """The batch scripts of all that is still to be submitted, each with a name for people; nothing is written.

    A submission's name ends in a mark of its own, which is zeros here.
    """
    limits = limits or Limits()
    name = name_submission(context.study, _MARK)
    successor = context.sweep.successor
    options = ENDS_AT_ONCE if successor else {}
    scripts = []
    packs = pack_within(_take_stock(plan, context).new, limits, per_job=context.sweep.trials_per_job)
    for array in cut_arrays(packs, limit=limits.max_array_tasks):
        shape, trials = array[0][0].shape, sum(len(pack) for pack in array)
        parameters = render_parameters(shape, context.cluster, name=name, trials=len(array[0]), options=options)
        told = f"{trials} trials in {len(array)} jobs of {shape.nodes} x {shape.ranks_per_node} ranks"
        told += ", each of a name of its own and with a successor behind it" if successor else ""
        tasks = 1 if successor else len(array)
        scripts.append((told, render_script(parameters, tasks=tasks, folder=context.jobs_dir)))
    return scripts


def find_bad_names(context: SweepContext) -> list[str]:
    """Folders that Slurm would take for something else."""
    strange = [character for character in ("%", "\\", "\n") if character in str(context.jobs_dir)]
    if not strange:
        return []
    return [f"{context.jobs_dir} holds {strange[0]!r}, which Slurm replaces in names of files: use another folder"]


def _take_stock(plan: Plan, context: SweepContext) -> _Stock:
    stock = _Stock()
    for trial in {trial.id: trial for trial in plan.trials}.values():
        folder = context.folder_of(trial)
        if not folder.path.is_dir():
            stock.new.append(trial)
            continue
        facts = read_facts(folder, steps=trial.steps)
        # Whether the job still lives is for the driver: one that was submitted is not held against the cluster again.
        submitted = find_job_id(facts) and find_verdict_event(facts) is None
        job = JobSight(Phase.RUNNING) if submitted else UNSEEN
        standing = reconcile(facts, job, now=time.time(), lost_after_s=float("inf"))
        stock.node_seconds[trial.id] = count_node_seconds(facts)
        if is_final(standing.verdict, strict=context.sweep.strict):
            stock.finished.append(trial)
        elif standing.phase in (Phase.RUNNING, Phase.QUEUED):
            stock.under_way.append(trial)
        else:
            stock.new.append(trial)
    return stock


def _read_limits(warnings: list[str]) -> Limits | None:
    try:
        return read_limits()
    except CommandError as error:
        warnings.append(f"Slurm does not answer, so that shapes are not held against it: {error}")
        return None


def _plan_shapes(trials: Sequence[PlannedTrial], context: SweepContext, limits: Limits) -> list[ShapePlan]:
    plans, jobs_each = [], 2 if context.sweep.successor else 1
    for shape, group in group_by_shape(trials).items():
        packs = pack_within(group, limits, per_job=context.sweep.trials_per_job)
        arrays = list(cut_arrays(packs, limit=limits.max_array_tasks))
        plans.append(ShapePlan(shape, len(group), len(packs) * jobs_each, len(arrays) if jobs_each == 1 else 1))
    return plans


def _check_shapes(
    shapes: Sequence[ShapePlan], trials: Sequence[PlannedTrial], limits: Limits, warnings: list[str]
) -> list[str]:
    nodes = _read_nodes({item.shape.partition for item in shapes}, limits, warnings)
    names = {shape: [trial.name for trial in group] for shape, group in group_by_shape(trials).items()}
    mistakes: dict[str, list[str]] = {}
    for item in shapes:
        here = nodes.get(item.shape.partition, ())
        for mistake in find_misfits(item.shape, limits, here):
            mistakes.setdefault(mistake, []).extend(names[item.shape])
        warnings += [delay for delay in find_delays(item.shape, limits, here) if delay not in warnings]
    return [f"{mistake} ({_name_first(told)})" for mistake, told in mistakes.items()]


def _read_nodes(names: set[str], limits: Limits, warnings: list[str]) -> Mapping[str, Sequence[Node]]:
    places = [place for place in limits.partitions if place.name in names]
    try:
        return {place.name: read_nodes(place.nodes) for place in places}
    except (CommandError, ClusterError) as error:
        warnings.append(f"the nodes are not known, so that sizes are not held against them: {error}")
        return {}


def _estimate(
    shapes: Sequence[ShapePlan], context: SweepContext, mistakes: list[str], warnings: list[str]
) -> tuple[ShapePlan, ...]:
    if mistakes:
        return tuple(shapes)
    asked = []
    for item in shapes[:_SHAPES_ASKED]:
        parameters = render_parameters(item.shape, context.cluster, name=name_submission(context.study, _MARK))
        try:
            estimate = estimate_start(render_script(parameters, tasks=1, folder=context.jobs_dir))
        except CommandError as error:
            warnings.append(f"no estimates of when jobs would start: {error}")
            break
        if estimate.refusal:
            told = f"{item.shape.nodes} nodes of partition {item.shape.partition}, {item.trials} trials"
            mistakes.append(f"{estimate.refusal} ({told})")
        asked.append(ShapePlan(item.shape, item.trials, item.jobs, item.arrays, estimate))
    return (*asked, *shapes[len(asked) :])


def _charge(stock: _Stock, context: SweepContext) -> Charge:
    known: dict[Shape, list[float]] = {}
    for trial in stock.finished:
        known.setdefault(trial.shape, []).append(stock.node_seconds[trial.id])
    left = [trial.shape for trial in (*stock.new, *stock.under_way)]
    return add_up(left, used_s=sum(stock.node_seconds.values()), known_s=known, cluster=context.cluster)


def _name_first(names: Sequence[str]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
