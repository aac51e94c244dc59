"""Hydra's messages as ours: one line, with the value, what was expected, and the fix. Pure."""

import re
from collections.abc import Sequence
from typing import Any

from windtunnel.settings.study import StudySettings

NO_OPTION = "Config group override must be"
"""How Hydra's ValueError begins, which is none of its own errors."""
_NO_NAME = re.compile(r"[^.=]+=(null|true|false|[-+.\d].*)", re.IGNORECASE)
_UNREADABLE = "LexerNoViableAltException"

_LAUNCHER = "hydra.launcher."
_SUBMITIT = {
    "timeout_min": "cluster.time",
    "mem_gb": "cluster.memory",
    "cpus_per_task": "cluster.cpus_per_rank",
    "gpus_per_node": "cluster.gpus_per_rank",
    "gpus_per_task": "cluster.gpus_per_rank",
    "nodes": "parallelism.*, whose ranks decide the nodes",
    "tasks_per_node": "parallelism.*, whose ranks decide the nodes",
    "array_parallelism": "nothing: Slurm's own limits hold",
    "max_num_timeout": "sweep.retries.timeout",
    "setup": "cluster.setup",
    "additional_parameters": "cluster.sbatch",
    "submitit_folder": "paths.results",
}
"""Settings of hydra-submitit-launcher, by habit typed here, and what says the same of trials."""
_ADVICE = {
    "hydra/launcher": "; trials run where their study's cluster.* says: cluster=local, cluster=slurm",
    "hydra/sweeper": "; a sweeper of another package is there once that is installed: pip install hydra-{}-sweeper",
}
_TABLES = {
    "space.values": "{key} cannot be set so: '+space.values={{SETTING:[A,B]}}' varies one more setting,"
    " ~space.values none of the study's, and SETTING=A fixes one",
    "space.groups": "{key} cannot be set so: '+space.groups={{GROUP:[A,B]}}' varies one more group,"
    " ~space.groups none of the study's, and GROUP=A fixes one",
    "workload.parameters": "{key} is no parameter of the study's program: correct its name, or add it with +{word}",
    "workload.environment": "{key} is no variable that the study sets: add it with +{word}",
    "cluster.sbatch": "{key} is no sbatch option that the study sets: add it with +{word}",
}
"""Settings that hold any names: Hydra changes those that are there, and adds others only with a +."""


def explain_hydra(message: str, overrides: Sequence[str]) -> str:
    """Hydra's message in one line, with the names that are known where an override's is not."""
    if message.startswith(NO_OPTION):
        wrong = ", ".join(word for word in overrides if _NO_NAME.fullmatch(word)) or "an override"
        return f"{wrong}: a group takes the name of one of its options, or a value for one setting: GROUP.NAME=VALUE"
    if message.startswith(_UNREADABLE):
        strange = [word for word in overrides if not word.isascii()]
        if any(word.startswith("study=") for word in strange):
            return f"{strange[0]}: the name of a study has only the letters a to z, digits and _"
        if strange:
            return f"{strange[0]}: put a value with other characters than ASCII's into quotes: {_quote(strange[0])}"
    lines = [line.strip() for line in message.partition("Config search path:")[0].splitlines() if line.strip()]
    option = re.search(r"Could not find '([^']+)/([^']+)'\s+Available options in '[^']+':\s+(.*)", message, re.DOTALL)
    if option is not None:
        known = ", ".join(option[3].partition("Config search path:")[0].split())
        told = f"unknown option {option[2]!r} of group {option[1]!r} (known: {known})"
        return told + _ADVICE.get(option[1], "").format(option[2])
    unknown = re.search(r"Could not override '([^']+)'", message)
    if unknown is None:
        return " ".join(lines) + (f" (overrides: {' '.join(overrides)})" if overrides else "")
    if unknown[1].startswith(_LAUNCHER):
        return _explain_launcher(unknown[1])
    return _explain_unknown(unknown[1], overrides) or " ".join(lines)


def _explain_launcher(key: str) -> str:
    name = key.removeprefix(_LAUNCHER)
    instead = _SUBMITIT.get(name, "what cluster.* has of it, or cluster.sbatch for any sbatch option")
    return f"hydra.launcher has no setting {name!r}: trials run where their study's cluster.* says; set {instead}"


def _explain_unknown(key: str, overrides: Sequence[str]) -> str:
    """Of a setting that the study does not have; empty where the settings know it."""
    path = key.split("/")[0].split(".")
    kind: Any = StudySettings
    for depth, part in enumerate(path):
        inside = ".".join(path[:depth])
        if inside in _TABLES or ".".join(path) in _TABLES:
            table = inside if inside in _TABLES else ".".join(path)
            return _TABLES[table].format(key=key, word=_find_word(key, overrides))
        fields = getattr(kind, "model_fields", {})
        if part not in fields:
            return f"unknown setting {key!r} (known in {inside or 'a study'}: {', '.join(sorted(fields)) or 'none'})"
        kind = fields[part].annotation
    return ""


def _find_word(key: str, overrides: Sequence[str]) -> str:
    return next((word for word in overrides if word.startswith(f"{key}=")), f"{key}=VALUE")


def _quote(override: str) -> str:
    key, _, value = override.partition("=")
    return f"\"{key}='{value}'\""
