"""What every settings model shares: frozen, unknown keys refused, one message per mistake."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from windtunnel.errors import InputFileError, SettingsError
from windtunnel.units import parse_memory_mib, parse_time_min

# Slurm reads 0 as "no limit" and as "all memory of the node": whoever means that writes the size.
YEAR_MIN = 365 * 24 * 60
YEAR_HOURS = 365 * 24
YEAR_S = 365 * 24 * 3600
"""No wait is meant to take longer, and what sleeps refuses much more."""
TimeMin = Annotated[int, BeforeValidator(parse_time_min), Field(ge=1, le=YEAR_MIN)]
MemoryMib = Annotated[int, BeforeValidator(parse_memory_mib), Field(ge=1)]
_MOST = 2**63 - 1


class Settings(BaseModel):
    """Frozen, and strict about names; a field's docstring is its documentation."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    @field_validator("*", mode="after")
    @classmethod
    def _fit_in_64_bits(cls, value: Any) -> Any:
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, int) and abs(number) > _MOST:
                raise ValueError(f"expected at most {_MOST}")
        return value


S = TypeVar("S", bound=Settings)


def parse_settings(kind: type[S], plain: Mapping[str, Any], *, where: str) -> S:
    """`plain` as settings; raises SettingsError naming each wrong value, what was expected, and where."""
    try:
        return kind.model_validate(dict(plain))
    except ValidationError as error:
        lines = [_explain(kind, item) for item in error.errors(include_url=False)]
        raise SettingsError(f"{where}: " + "; ".join(lines)) from None


def read_settings(kind: type[S], path: Path) -> S:
    """The settings file that the workflow wrote for a stage."""
    try:
        plain = yaml.safe_load(path.read_text())
    except OSError as error:
        raise InputFileError(f"settings file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"{path} is not UTF-8 text ({error.reason} at byte {error.start}): save it as UTF-8"
        ) from None
    except yaml.YAMLError as error:
        raise SettingsError(f"{path} is not YAML: {error}") from None
    if not isinstance(plain, dict):
        raise SettingsError(f"{path} holds no mapping of settings")
    return parse_settings(kind, plain, where=str(path))


def _explain(kind: type[Settings], item: Any) -> str:
    name = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        known = ", ".join(_known_fields(kind, item["loc"][:-1])) or "none"
        return f"unknown setting {name!r} (known here: {known})"
    if item["type"] == "missing":
        return f"setting {name!r} is missing"
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "value_error" and isinstance(item["input"], dict | BaseModel):
        return message  # of a whole group: it names the settings that contradict each other
    return f"setting {name!r} = {item['input']!r}: {message}"


def _known_fields(kind: Any, loc: tuple[int | str, ...]) -> list[str]:
    for part in loc:
        field = getattr(kind, "model_fields", {}).get(str(part))
        kind = field.annotation if field is not None else None
    return sorted(getattr(kind, "model_fields", {}))
