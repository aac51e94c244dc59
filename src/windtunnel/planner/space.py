"""A study's space: which layouts are legal from settings alone, and each trial's identity, name and shape."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import product
from typing import Any

from windtunnel.artifacts import to_plain
from windtunnel.errors import LayoutError, SettingsError
from windtunnel.identity import hash_user_code, trial_id
from windtunnel.perfmodel.legality import find_tensor_refusal
from windtunnel.planner.program import find_program_refusal
from windtunnel.records.plan import Identity, PlannedTrial, Shape
from windtunnel.settings.base import parse_settings
from windtunnel.settings.shapes import ShapeRule
from windtunnel.settings.study import MOST_REPEATS, PlanSettings, TrialSettings

MOST_TRIALS = MOST_REPEATS
"""Trials that one study may have: each is composed, checked and kept in one file."""

Combination = tuple[dict[str, str], TrialSettings]
"""What sets a trial apart in its study, and its settings."""


def list_combinations(settings: PlanSettings) -> tuple[Combination, ...]:
    """Every candidate with every combination of values, `repeats` times over, each in its own shape.

    Raises SettingsError with each mistake once, whichever combinations have it.
    """
    values = settings.values
    varied = {f"space.values.{key}": len(options) for key, options in values.items()}
    check_size(
        {"space.groups": len(settings.candidates), **varied, "space.repeats": settings.repeats},
        where=f"study {settings.study!r}",
    )
    found: list[Combination] = []
    mistakes: dict[str, None] = {}
    for candidate in settings.candidates:
        for chosen in product(*values.values()):
            for repeat in range(settings.repeats):
                pairs = dict(zip(values, chosen, strict=True))
                try:
                    choices, trial = _combine(candidate.settings, {**candidate.choices}, pairs, repeat)
                    found.append((choices, shape_trial(trial, choices=choices, rules=settings.shapes)))
                except SettingsError as error:
                    mistakes[str(error)] = None
    if mistakes:
        raise SettingsError("\n".join(mistakes))
    return tuple(found)


def check_size(counts: Mapping[str, int], *, where: str) -> None:
    """Raise SettingsError where so many options, by the name of what varies, are more than MOST_TRIALS together."""
    if math.prod(counts.values()) <= MOST_TRIALS:
        return
    trials = _show_count(math.prod(counts.values()))
    factors = " x ".join(f"{name} ({_show_count(count)})" for name, count in counts.items() if count > 1)
    raise SettingsError(
        f"{where} has {trials} trials, of {factors}; expected at most {MOST_TRIALS:,}: vary less, or leave it to a"
        " sampler"
    )


def shape_trial(settings: TrialSettings, *, choices: Mapping[str, str], rules: Sequence[ShapeRule]) -> TrialSettings:
    """The trial's settings with the cluster's as the fitting rules change them, a later rule over an earlier one."""
    if not rules:
        return settings
    plain = to_plain(settings)
    known = {**_read_choices(rules, plain), **{key: value for key, value in choices.items() if "." not in key}}
    for rule in rules:
        if rule.fits(known):
            plain["cluster"] = rule.apply(plain["cluster"])
    return parse_settings(TrialSettings, plain, where="space.shapes")


def find_refusal(settings: TrialSettings) -> str:
    """Why this layout cannot run on any cluster, with the fix; empty when it can."""
    layout, training, cluster = settings.parallelism, settings.training, settings.cluster
    reason = _find_trainer_refusal(settings) if settings.workload.kind == "train" else ""
    if reason:
        return reason
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
    return find_program_refusal(settings)


def plan_trial(
    settings: TrialSettings, *, choices: Mapping[str, str], identity: Identity, import_root: str
) -> PlannedTrial:
    """The trial that `settings` describe; raises LayoutError with the reason for an illegal layout."""
    name = name_trial(settings, choices)
    refusal = find_refusal(settings)
    if refusal:
        raise LayoutError(f"trial {name!r}: {refusal}")
    user_sha256 = hash_user_code(settings, import_root)
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
        gpu_type=cluster.gpu_type if cluster.gpus_per_rank else "",
        flags=tuple(
            sorted((name, "" if value is True else str(value)) for name, value in cluster.sbatch.items() if value)
        ),
    )


def name_trial(settings: TrialSettings, choices: Mapping[str, str]) -> str:
    """A name for people: model, layout with its ranks, precision, then what else is varied."""
    layout = settings.parallelism
    ranks = str(layout.ranks) if layout.ranks > 1 and not layout.name[-1].isdigit() else ""
    trains = settings.workload.kind == "train"
    what = settings.model.name if trains else settings.workload.name
    words = [what, layout.name + ranks, *([settings.training.precision] if trains else [])]
    shown = {"workload", "model", "parallelism", "repeat", *(["training.precision"] if trains else [])}
    words += [f"{key.rpartition('.')[2]}={value}" for key, value in choices.items() if key not in shown]
    return " ".join([*words, *([f"#{settings.repeat + 1}"] if "repeat" in choices else [])])


def _find_trainer_refusal(settings: TrialSettings) -> str:
    """What our own trainer cannot do; another program knows itself what it can."""
    layout, training = settings.parallelism, settings.training
    model, size = settings.model, layout.pipeline
    if size > 1:
        return f"model {model.name!r} has no pipeline-parallel form, expected parallelism.pipeline=1, got {size}"
    refusal = find_tensor_refusal(model, window=settings.task.window, tensor=layout.tensor)
    if refusal:
        return refusal
    if layout.data % layout.shard:
        return (
            f"{layout.shard} ranks that divide a model are no whole part of {layout.data} data-parallel ranks:"
            f" set parallelism.shard={_divisor(layout.data, layout.shard)}"
        )
    if training.batch_size % layout.data:
        fits = training.batch_size - training.batch_size % layout.data or layout.data
        return (
            f"a batch of {training.batch_size} does not divide over {layout.data} data-parallel ranks:"
            f" set training.batch_size={fits} or parallelism.data={_divisor(training.batch_size, layout.data)}"
        )
    part = training.batch_size // layout.data
    if part < training.accumulate:
        return (
            f"a rank's part of {part} samples (a batch of {training.batch_size} over {layout.data}) does not fill"
            f" {training.accumulate} micro-batches: set training.accumulate={part}"
        )
    return ""


def _combine(settings: TrialSettings, choices: dict[str, str], chosen: Mapping[str, Any], repeat: int) -> Combination:
    plain = to_plain(settings)
    for key, value in chosen.items():
        _merge(plain, key.split("."), value)
        choices[key] = str(value)
    plain["repeat"] = repeat
    if repeat:
        choices["repeat"] = str(repeat)
    return choices, parse_settings(TrialSettings, plain, where=f"space.values ({', '.join(chosen) or 'none'})")


def _read_choices(rules: Sequence[ShapeRule], plain: Mapping[str, Any]) -> dict[str, Any]:
    """What the settings themselves say of the rules' choices: of one that is fixed, there is nothing else."""
    known = {}
    for key in {key for rule in rules for key in rule.when}:
        value: Any = plain
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if isinstance(value, Mapping):
            value = value.get("name", value.get("policy"))
        if value is not None:
            known[key] = value
    return known


def _merge(plain: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        plain = plain.setdefault(part, {})
    plain[path[-1]] = value


def _show_count(count: int) -> str:
    return f"{count:,}" if count < 10**15 else f"{Decimal(count):.2e}"


def _divisor(number: int, at_most: int) -> int:
    return next(size for size in range(min(at_most, number), 0, -1) if number % size == 0)
