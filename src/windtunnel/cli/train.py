"""`windtunnel train`: Hydra's command line, single or multirun, with the workflow's own plan, sweep and report."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from windtunnel.cli.batches import Batches, render_train
from windtunnel.cli.compose import check_multirun, read_app_run, run_app, show_app, to_plain_dict
from windtunnel.cli.jobs import read_job
from windtunnel.cli.objective import read_result
from windtunnel.cli.studies import list_names
from windtunnel.cli.tools import add_train_options
from windtunnel.cli.workflow import WORKFLOW, read_config_file
from windtunnel.errors import SettingsError

OURS = "windtunnel"
_HYDRAS_OWN = "basic"
_LAUNCHER = "hydra/launcher="


def run_train(words: Sequence[str]) -> int:
    """Train what the command line says and print a ranking. Returns the exit code."""
    args = _parse(words)
    overrides = list(args.overrides)
    project = Path.cwd()
    if not any(word.startswith("study=") for word in overrides):
        overrides.append(f"study={default_study(project)}")
    if args.cfg:
        show_app(overrides, part=args.cfg, project=project)
        return 0
    if args.multirun:
        overrides = choose_launcher(overrides, project)
    run_app(train_once, overrides, multirun=args.multirun, project=project)
    return 0


def choose_launcher(overrides: Sequence[str], project: Path) -> list[str]:
    """The overrides with our launcher.

    Raises SettingsError where a study, or the command line, names another one, and for a grid that cannot be run.
    """
    chosen = check_multirun(overrides, project=project)
    # Hydra's own is every study's default: only on the command line can one see that it is wanted.
    if chosen != OURS and (chosen != _HYDRAS_OWN or f"{_LAUNCHER}{chosen}" in overrides):
        raise SettingsError(
            f"hydra/launcher={chosen} cannot run these trials: windtunnel train submits them itself, where cluster.*"
            " says; take it out of the study, or off the command line"
        )
    rest = [word for word in overrides if not word.startswith(_LAUNCHER)]
    return [*rest, f"{_LAUNCHER}{OURS}"]


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="windtunnel train")
    add_train_options(parser)
    return parser.parse_intermixed_args(words)


def train_once(config: Any) -> float | list[float] | None:
    """Hydra's task function: trains one job, and returns what `sweep.objective` names of it, if that was measured.

    The launcher takes its jobs' settings instead, and runs them as trials of one sweep.
    """
    run = read_app_run()
    job = read_job(to_plain_dict(config), run.study, run.overrides)
    batches = Batches(run.folder, command=render_train(run.overrides))
    (end,) = batches.run([job], number=0)
    return read_result(end, job.settings.sweep.objective, sampled=False)


train_once.windtunnel_task = True  # type: ignore[attr-defined]  # our launcher runs such a function's jobs as trials


def default_study(project: Path) -> str:
    """The first study of the project's workflow; `quickstart` without one. Raises SettingsError for a broken file."""
    names = list_names(read_config_file(project / WORKFLOW))
    return names[0] if names else "quickstart"
