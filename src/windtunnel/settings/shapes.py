"""Rules that give some trials of a study another shape than the rest: more time, memory, another partition."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from windtunnel.settings.base import YEAR_MIN, Settings
from windtunnel.settings.sbatch import Flags, read_partition, read_text
from windtunnel.units import parse_memory_mib, parse_time_min


def _or_none(parse: Callable[[Any], Any]) -> BeforeValidator:
    return BeforeValidator(lambda value: None if value is None else parse(value))


class ShapeRule(Settings):
    """Settings of the cluster for the trials whose choices are those of `when`; what is absent stays as it is."""

    when: dict[str, Any] = {}
    """Choices by the names of `space.groups` and `space.values`, one or a list of them; all must hold."""
    partition: Annotated[str | None, _or_none(read_partition)] = None
    """Slurm partition."""
    account: Annotated[str | None, _or_none(read_text)] = None
    """Slurm account."""
    qos: Annotated[str | None, _or_none(read_text)] = None
    """Slurm quality of service."""
    constraint: Annotated[str | None, _or_none(read_text)] = None
    """Slurm node features."""
    time: Annotated[int | None, _or_none(parse_time_min), Field(ge=1, le=YEAR_MIN)] = None
    """Time limit of a trial, in Slurm's syntax."""
    memory: Annotated[int | None, _or_none(parse_memory_mib)] = None
    """Memory a rank, in Slurm's syntax."""
    cpus_per_rank: int | None = Field(default=None, ge=1)
    """CPUs a rank."""
    gpus_per_rank: int | None = Field(default=None, ge=0)
    """GPUs a rank."""
    gpu_type: Annotated[str | None, _or_none(read_text)] = None
    """Slurm's name of the kind of GPU."""
    sbatch: Flags = {}
    """Flags of sbatch, added to those of `cluster.sbatch`."""

    def fits(self, choices: Mapping[str, Any]) -> bool:
        """Whether a trial of these choices is meant."""
        return all(key in choices and str(choices[key]) in _options(wanted) for key, wanted in self.when.items())

    def apply(self, cluster: Mapping[str, Any]) -> dict[str, Any]:
        """The plain settings of the cluster as the rule has them."""
        changes = self.model_dump(mode="json", exclude={"when", "sbatch"}, exclude_none=True)
        return {**cluster, **changes, "sbatch": {**cluster.get("sbatch", {}), **self.sbatch}}


def find_mistakes(rules: Sequence[ShapeRule], space: Mapping[str, Sequence[Any]]) -> list[str]:
    """What is wrong with rules over a space of choices by name: a sentence a mistake."""
    return [mistake for number, rule in enumerate(rules) for mistake in _find_mistakes(number, rule, space)]


def _find_mistakes(number: int, rule: ShapeRule, space: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    where = f"space.shapes[{number}]"
    for key, wanted in rule.when.items():
        known = [str(option) for option in space.get(key, ())]
        if key not in space:
            yield f"{where}.when.{key} is not varied by this study, which varies: {', '.join(space) or 'nothing'}"
        for option in _options(wanted) if key in space else ():
            if option not in known:
                yield f"{where}.when.{key}={option!r} is none of its choices, which are: {', '.join(known)}"
    changed = rule.model_dump(exclude={"when", "sbatch"}, exclude_none=True)
    for name in changed:
        if f"cluster.{name}" in space:
            yield f"{where}.{name} is varied by space.values already: leave it to one of the two"
    if not changed and not rule.sbatch:
        yield f"{where} changes nothing: give it a setting of the cluster, such as time or memory"


def _options(wanted: Any) -> list[str]:
    return [str(option) for option in wanted] if isinstance(wanted, list | tuple) else [str(wanted)]
