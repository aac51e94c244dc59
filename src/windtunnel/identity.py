"""What a trial's id is made of: its settings, its data, the code that can change its result, the torch version.

Nothing here imports torch or the code that is hashed: files are read as text.
"""

import ast
import hashlib
import importlib.metadata
import importlib.util
import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from windtunnel.artifacts import hash_file, hash_json, read_artifact
from windtunnel.errors import SettingsError
from windtunnel.records.data import ShardManifest
from windtunnel.records.plan import Identity
from windtunnel.settings.sbatch import NEUTRAL_FLAGS
from windtunnel.settings.study import TrialSettings
from windtunnel.settings.template import list_keys
from windtunnel.settings.workload import WorkloadSettings

PACKAGES = (
    "attempt",  # ranks' environment: threads, binding, network
    "checkpoints",
    "comm",
    "device",
    "fabric",  # the order of ranks
    "kernels",
    "models",
    "native",
    "settings",
    "shards",
    "tasks",
    "training",
)
"""Packages that can change a trial's loss or speed."""

_COMMAND_PACKAGES = ("attempt", "fabric")
"""Those that can change a trial of the user's own program."""

_NO_EFFECT = {"account", "qos", "time", "log_limit", "probe_nodes", "max_age_days", "cost_per_node_hour", "currency"}
_NO_EFFECT |= {"prometheus_dir", "dcgm_job_dir"}
"""Of a cluster's settings: what only pays for a trial, bounds it or watches it."""
_SOURCES = {".py", ".cpp", ".h", ".cu"}  # not what is built of them: the same source means the same trial
_INTERPRETER = re.compile(r"(python|pypy|bash|sh|perl|Rscript|julia)[\d.]*")
_ID_DIGITS = 16
_NAME_BYTES = 256  # no argument longer than that is the name of a file


def read_identity(features: Path | None) -> Identity:
    """The identity that all trials on a feature manifest share; empty of data where there is none yet."""
    data_sha256 = _hash_data(read_artifact(features, ShardManifest)) if features is not None else ""
    return Identity(data_sha256, hash_sources(), importlib.metadata.version("torch"))


def trial_id(settings: TrialSettings, identity: Identity, user_sha256: str) -> str:
    """First 16 hex digits of the hash of all that can change the trial's result."""
    plain = _list_effective(settings)
    facts = vars(identity)
    if settings.workload.kind == "command":
        plain = {key: value for key, value in plain.items() if key not in _unseen_groups(settings.workload)}
        data = identity.data_sha256 if settings.workload.data else ""
        facts = {"data_sha256": data, "source_sha256": hash_sources(*_COMMAND_PACKAGES)}
    return hash_json({"settings": plain, "identity": facts, "user": user_sha256})[:_ID_DIGITS]


def hash_settings(settings: TrialSettings) -> str:
    """SHA-256 of the settings that can change a trial's result: a checkpoint of others does not continue it.

    What only pays for it or bounds it (account, QOS, time limit, price, sbatch's neutral flags) is left out.
    """
    return hash_json(_list_effective(settings))


def _list_effective(settings: TrialSettings) -> dict[str, Any]:
    plain = settings.model_dump(mode="json", exclude={"cluster": _NO_EFFECT | {"sbatch"}})
    flags = {name: value for name, value in settings.cluster.sbatch.items() if value and name not in NEUTRAL_FLAGS}
    plain["cluster"]["sbatch"] = flags
    return plain


@cache
def hash_sources(*packages: str) -> str:
    """SHA-256 over the Python and C++ sources of `packages` (PACKAGES without any), by sorted relative name."""
    root = Path(__file__).parent
    paths = [
        path for package in packages or PACKAGES for path in (root / package).rglob("*") if path.suffix in _SOURCES
    ]
    return _hash_files(paths, root)


def hash_user_code(settings: TrialSettings, import_root: str) -> str:
    """SHA-256 over the user's files that a trial runs: its model's, or its program's; empty when there are none."""
    if settings.workload.kind == "command":
        return hash_program(settings.workload, import_root, on_host=not settings.cluster.container.image)
    return hash_user_files(settings.model.target, import_root)


def hash_program(workload: WorkloadSettings, import_root: str, *, on_host: bool = True) -> str:
    """SHA-256 over a program's own files in the project, the Python ones with what they import, and `workload.files`.

    A program elsewhere counts by its name alone. Raises SettingsError for a file that is not there, or a program
    that cannot be executed (unless it is that of a container: not `on_host`).
    """
    root = Path(import_root or ".").resolve()
    folder = (root / workload.directory).resolve()
    if not folder.is_dir():
        raise SettingsError(f"workload.directory={workload.directory!r}: no folder {folder}: correct it")
    if on_host:
        _require_program(workload.argv[0], folder)
        _require_script(workload.argv, folder)
    found: dict[Path, None] = {}
    for word in workload.argv:
        path = (folder / word).resolve() if "\0" not in word and len(word) < _NAME_BYTES else folder
        if path.is_file() and path.is_relative_to(root):
            found |= _reach_files(path.stem, path.parent) if path.suffix == ".py" else {path: None}
    for name in workload.files:
        found |= dict.fromkeys(_list_files(name, folder))
    names = sorted((os.path.relpath(path, folder), path) for path in found)
    return hash_json([[name, _hash_seen(str(path), *_stamp(path))] for name, path in names])


def hash_user_files(target: str, import_root: str) -> str:
    """SHA-256 over the user's files that `target` reaches: its module and all that it imports in `import_root`.

    Empty for our own models. A target in an installed package counts by the package's name and version.
    Raises SettingsError when there is no such module.
    """
    module = target.rpartition(".")[0]
    if module == "windtunnel" or module.startswith("windtunnel."):
        _require_module(target, module, Path(__file__).parents[1])
        return ""
    root = Path(import_root).resolve() if import_root else None
    files = _reach_files(module, root) if root else {}
    if root and files:
        _require_module(target, module, root)
        return _hash_files(list(files), root)
    top = module.partition(".")[0]
    if importlib.util.find_spec(top) is None:
        where = f"{import_root} nor installed" if import_root else "the installed packages"
        raise SettingsError(f"model _target_ {target!r}: no module {module!r} in {where}: check its spelling")
    return hash_json([f"{name} {importlib.metadata.version(name)}" for name in _distributions(top)])


def _unseen_groups(workload: WorkloadSettings) -> set[str]:
    """Settings of a trial that its program is not told of."""
    return {"model", "task", "kernels"} | (set() if workload.data else {"features", "dataset"})


def _require_program(word: str, folder: Path) -> None:
    # A bare name is looked for on the PATH of the node; what stands in a template is known only there.
    if "/" not in word or list_keys(word):
        return
    path = folder / word
    if not path.is_file():
        raise SettingsError(f"workload.argv: there is no program {word!r} in {folder}: correct its path")
    if not os.access(path, os.X_OK):
        raise SettingsError(
            f"workload.argv: {path} cannot be executed: chmod +x it, or put its interpreter before it"
        )


def _require_script(argv: Sequence[str], folder: Path) -> None:
    """What an interpreter is given first must be there, unless it is an option's, or stands in a template."""
    script = argv[1] if len(argv) > 1 else "-"
    interpreted = _INTERPRETER.fullmatch(Path(argv[0]).name) is not None
    if interpreted and not script.startswith("-") and not list_keys(script) and not (folder / script).is_file():
        raise SettingsError(f"workload.argv: there is no file {script!r} in {folder}: correct its path")


def _list_files(name: str, folder: Path) -> list[Path]:
    path = (folder / name).resolve()
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise SettingsError(f"workload.files: there is no {name!r} in {folder}: correct its path")
    return [file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts]


def _stamp(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


@cache
def _hash_seen(path: str, _size: int, _mtime_ns: int) -> str:
    # Thousands of trials run one program: its file is read once, until it changes.
    return hash_file(Path(path))


def _require_module(target: str, module: str, root: Path) -> None:
    base = root.joinpath(*module.split("."))
    if not (base / "__init__.py").is_file() and not any(base.parent.glob(f"{base.name}.*")):  # compiled ones too
        raise SettingsError(f"model _target_ {target!r}: no module {module!r} in {root}: check its spelling")


def _hash_data(manifest: ShardManifest) -> str:
    # Where raw files lay and how big their shards are on disk do not matter; what the shards hold does.
    shards = [[shard.instrument, shard.rows, shard.sha256] for shard in manifest.shards]
    columns = [[column.name, column.dtype] for column in manifest.columns]
    return hash_json([manifest.kind, manifest.dataset, manifest.source, columns, shards])


def _hash_files(paths: list[Path], root: Path) -> str:
    digest = hashlib.sha256()
    for name in sorted(path.relative_to(root).as_posix() for path in paths):
        digest.update(f"{name}\0{hash_file(root / name)}\n".encode())
    return digest.hexdigest()


def _distributions(top: str) -> list[str]:
    return sorted(set(importlib.metadata.packages_distributions().get(top, [])))


def _reach_files(module: str, root: Path) -> dict[Path, None]:
    """Files under `root` that importing `module` runs, each once."""
    found: dict[Path, None] = {}
    waiting = [module]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for path in _locate(name, root):
            if path not in found:
                found[path] = None
                waiting += _imports(path, _package_of(path, root))
    return found


def _locate(module: str, root: Path) -> Iterator[Path]:
    """The module's file, and the `__init__.py` of each package above it."""
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        base = root.joinpath(*parts[:depth])
        for path in (base / "__init__.py", base.with_suffix(".py")):
            if path.is_file():
                yield path


def _package_of(path: Path, root: Path) -> tuple[str, ...]:
    return path.relative_to(root).parent.parts


def _imports(path: Path, package: tuple[str, ...]) -> Iterator[str]:
    """Dotted names that a file imports anywhere in it; `from a import b` may mean a module `a.b`."""
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError as error:
        raise SettingsError(f"{path} is not valid Python: {error.msg} in line {error.lineno}") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base_of(node, package)
            yield from (f"{base}.{alias.name}".lstrip(".") for alias in node.names)


def _base_of(node: Any, package: tuple[str, ...]) -> str:
    above = package[: len(package) - node.level + 1] if node.level else ()
    return ".".join([*above, *([node.module] if node.module else [])])
