"""A study's space: which layouts are legal from settings alone, and each trial's identity, name and shape."""

from collections.abc import Mapping
from itertools import product
from typing import Any

from windtunnel.artifacts import to_plain
from windtunnel.errors import LayoutError
from windtunnel.identity import hash_user_files, trial_id
from windtunnel.records.plan import Identity, PlannedTrial, Shape
from windtunnel.settings.base import parse_settings
from windtunnel.settings.study import PlanSettings, TrialSettings

Combination = tuple[dict[str, str], TrialSettings]
"""What sets a trial apart in its study, and its settings."""


def list_combinations(settings: PlanSettings) -> tuple[Combination, ...]:
    """Every candidate with every combination of values, `repeats` times over."""
    values = settings.values
    return tuple(
        _combine(candidate.settings, {**candidate.choices}, dict(zip(values, chosen, strict=True)), repeat)
        for candidate in settings.candidates
        for chosen in product(*values.values())
        for repeat in range(settings.repeats)
    )


def find_refusal(settings: TrialSettings) -> str:
    """Why this layout cannot run on any cluster, with the fix; empty when it can."""
    layout, training, cluster = settings.parallelism, settings.training, settings.cluster
    for axis, size in (("tensor", layout.tensor), ("pipeline", layout.pipeline)):
        if size > 1:
            model = settings.model.name
            return f"model {model!r} has no {axis}-parallel form, expected parallelism.{axis}=1, got {size}"
    if training.batch_size % layout.data:
        fits = training.batch_size - training.batch_size % layout.data or layout.data
        return (
            f"a batch of {training.batch_size} does not divide over {layout.data} data-parallel ranks:"
            f" set training.batch_size={fits} or parallelism.data={_divisor(training.batch_size, layout.data)}"
        )
    if layout.ranks % layout.nodes:
        fits = _divisor(layout.ranks, layout.nodes)
        return f"{layout.ranks} ranks do not spread equally over {layout.nodes} nodes: set parallelism.nodes={fits}"
    if cluster.kind == "local" and layout.nodes > 1:
        return f"parallelism.nodes={layout.nodes}, but cluster.kind=local is one machine: set parallelism.nodes=1"
    if training.threads_per_rank > cluster.cpus_per_rank:
        return (
            f"training.threads_per_rank={training.threads_per_rank} is more than cluster.cpus_per_rank="
            f"{cluster.cpus_per_rank}: set cluster.cpus_per_rank={training.threads_per_rank}"
        )
    return ""


def plan_trial(
    settings: TrialSettings, *, choices: Mapping[str, str], identity: Identity, import_root: str
) -> PlannedTrial:
    """The trial that `settings` describe; raises LayoutError with the reason for an illegal layout."""
    name = name_trial(settings, choices)
    refusal = find_refusal(settings)
    if refusal:
        raise LayoutError(f"trial {name!r}: {refusal}")
    user_sha256 = hash_user_files(settings.model.target, import_root)
    return PlannedTrial(
        id=trial_id(settings, identity, user_sha256),
        name=name,
        choices=dict(choices),
        settings=to_plain(settings),
        user_sha256=user_sha256,
        shape=make_shape(settings),
    )


def make_shape(settings: TrialSettings) -> Shape:
    """What the trial asks of the scheduler."""
    layout, cluster = settings.parallelism, settings.cluster
    ranks_per_node = layout.ranks // layout.nodes
    return Shape(
        nodes=layout.nodes,
        ranks_per_node=ranks_per_node,
        cpus_per_rank=cluster.cpus_per_rank,
        gpus_per_node=cluster.gpus_per_rank * ranks_per_node,
        mem_mib=cluster.memory * ranks_per_node,
        time_min=cluster.time,
        partition=cluster.partition,
        account=cluster.account,
        qos=cluster.qos,
        constraint=cluster.constraint,
    )


def name_trial(settings: TrialSettings, choices: Mapping[str, str]) -> str:
    """A name for people: model, layout with its ranks, precision, then what else is varied."""
    layout = settings.parallelism
    ranks = str(layout.ranks) if layout.ranks > 1 and not layout.name[-1].isdigit() else ""
    words = [settings.model.name, layout.name + ranks, settings.training.precision]
    shown = {"model", "parallelism", "training.precision", "repeat"}
    words += [f"{key.rpartition('.')[2]}={value}" for key, value in choices.items() if key not in shown]
    return " ".join([*words, *([f"#{settings.repeat + 1}"] if "repeat" in choices else [])])


def _combine(settings: TrialSettings, choices: dict[str, str], chosen: Mapping[str, Any], repeat: int) -> Combination:
    plain = to_plain(settings)
    for key, value in chosen.items():
        _merge(plain, key.split("."), value)
        choices[key] = str(value)
    plain["repeat"] = repeat
    if repeat:
        choices["repeat"] = str(repeat)
    return choices, parse_settings(TrialSettings, plain, where=f"space.values ({', '.join(chosen) or 'none'})")


def _merge(plain: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        plain = plain.setdefault(part, {})
    plain[path[-1]] = value


def _divisor(number: int, at_most: int) -> int:
    return next(size for size in range(min(at_most, number), 0, -1) if number % size == 0)
