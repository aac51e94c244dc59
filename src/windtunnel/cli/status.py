"""`windtunnel status`: a study's board once or live, or a line for each study."""

import gc
import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from windtunnel.cli.folders import RESULTS, find_study_folder, list_begun, list_study_folders, render_unreadable
from windtunnel.errors import ArtifactError, InputFileError, SettingsError, UnplannedError
from windtunnel.launch.board import render_board, render_driver, render_headline, to_json
from windtunnel.launch.overview import StudyView, read_study
from windtunnel.launch.views import TrialView

_REFRESH_S = 2.0
_LAZY = 10.0
"""A look that takes a second is followed by a pause of ten."""
_MOVING = frozenset({"RUNNING", "QUEUED", "UNSURE"})


def run_status(study: str | None, *, results: Path | None, watch: bool, as_json: bool) -> None:
    """Print a study's state, or a line a study."""
    if study is None:
        if watch:
            raise SettingsError("--watch needs a study: windtunnel status STUDY --watch")
        _print_all(results, as_json=as_json)
        return
    folder = _await_plan(study, results) if watch else _find(study, results, as_json=as_json)
    if folder is None:
        return
    for view in watch_study(folder) if watch else [_read(folder)]:
        _show(view, as_json=as_json, live=watch and sys.stdout.isatty())


def _find(study: str, results: Path | None, *, as_json: bool) -> Path | None:
    """The study's folder; None once it has been told that there is no plan yet."""
    try:
        return find_study_folder(study, results)
    except UnplannedError as error:
        if not as_json:
            raise
        print(json.dumps({"study": study, "trials": [], "problem": str(error)}), flush=True)
        return None


def _await_plan(study: str, results: Path | None, *, refresh_s: float = _REFRESH_S) -> Path:
    """The study's folder, once it has a plan; raises StudyError when nobody makes one."""
    told = ""
    while True:
        try:
            return find_study_folder(study, results)
        except UnplannedError as error:
            if str(error) != told:
                told = str(error)
                print(told, file=sys.stderr, flush=True)
            time.sleep(refresh_s)


def watch_study(folder: Path, *, refresh_s: float = _REFRESH_S) -> Iterator[StudyView]:
    """Views until no trial is open, or nobody is left who could change one."""
    known: Mapping[str, TrialView] = {}
    while True:
        started = time.monotonic()
        view = _read(folder, known)
        took_s = time.monotonic() - started
        yield view
        moving = view.driver is not None or any(trial.state in _MOVING for trial in view.trials)
        if not (view.open and moving):
            return
        known = {trial.trial_id: trial for trial in view.trials}
        time.sleep(max(refresh_s, took_s * _LAZY))


def _read(folder: Path, known: Mapping[str, TrialView] | None = None) -> StudyView:
    # Ten thousand trials are a million small objects, none of them in a cycle: collecting takes half the time.
    gc.disable()
    try:
        return read_study(folder, known=known)
    finally:
        gc.freeze()
        gc.enable()


def _print_all(results: Path | None, *, as_json: bool) -> None:
    folders = list_study_folders(results)
    views: list[StudyView] = []
    for folder in folders:
        try:
            view = _read(folder)
        except (ArtifactError, InputFileError) as error:
            print(render_unreadable(folder, error), file=sys.stderr if as_json else sys.stdout, flush=True)
            continue
        views.append(view)
        if not as_json:
            print(f"{render_headline(view)}\n  {render_driver(view)}", flush=True)
    begun = list_begun(results)
    for line in begun:
        print(line, file=sys.stderr if as_json else sys.stdout, flush=True)
    if as_json:
        print(json.dumps([to_json(view) for view in views], allow_nan=False), flush=True)
    elif not folders and not begun:
        print(f"no study has a plan in {results or RESULTS}: windtunnel sweep STUDY makes one", flush=True)


def _show(view: StudyView, *, as_json: bool, live: bool) -> None:
    if as_json:
        print(json.dumps(to_json(view), allow_nan=False), flush=True)
        return
    if not live:
        print(render_board(view), flush=True)
        return
    size = shutil.get_terminal_size()
    lines = [line[: size.columns] for line in render_board(view, lines=size.lines - 1).splitlines()]
    print("\x1b[H\x1b[2J" + "\n".join(lines), flush=True)
