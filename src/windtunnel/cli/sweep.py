"""`windtunnel sweep STUDY`: the workflow's own sweep stage, with what it needs, here, detached, or as a small job."""

import argparse
import os
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from windtunnel.cli.dead_driver import free_dead_driver
from windtunnel.cli.seconds import read_seconds
from windtunnel.cli.studies import check_studies
from windtunnel.cli.workflow import Request, read_request, render_workflow
from windtunnel.errors import BusyError, CommandError, SettingsError
from windtunnel.launch.board import render_holder
from windtunnel.launch.detach import (
    JOB_ENV,
    DriverJob,
    Start,
    await_driver,
    read_driver_job,
    render_driver_script,
    start_detached,
    submit_driver,
    write_driver_job,
)
from windtunnel.launch.overview import SWEEP, read_driver
from windtunnel.launch.place import COMMAND_ENV, LOG
from windtunnel.launch.sights import read_job_sight
from windtunnel.ledger.lease import STALE_AFTER_S, Holder
from windtunnel.ledger.reconcile import Phase
from windtunnel.ledger.tail import read_last_line
from windtunnel.modes import open_store

_START_S = 60.0
_POLL_S = 1.0
_PATIENCE_S = int(STALE_AFTER_S) + 60


def run_sweep_command(words: Sequence[str]) -> int:
    """Run, detach, submit or only show the sweep that the command line asks for. Returns the exit code."""
    args = parse_sweep_words(words)
    project = Path.cwd()
    if args.detach and args.driver == "sbatch":
        raise SettingsError("--detach and --driver=sbatch are two ways to the same end: give one of them")
    if args.dry_run:
        from windtunnel.cli.preview import run_sweep_preview

        run_sweep_preview(args.study, args.overrides, profile=args.profile, project=project)
        return 0
    request = read_request(args.study, args.overrides, profile=args.profile, project=project)
    check_studies(request.studies, project=project)
    open_store(Path(request.studies.store), request.studies.mode)
    wait_for_driver(request, patience_s=args.wait_driver)
    if args.driver == "sbatch":
        return _submit(request, project)
    if args.detach:
        return _detach(request, project)
    return _become_workflow(request, project)


def parse_sweep_words(words: Sequence[str]) -> argparse.Namespace:
    """The command line of `sweep STUDY`; options and settings may stand in any order."""
    parser = argparse.ArgumentParser(
        prog="windtunnel sweep",
        description="Run a study's trials to their verdicts. The same command again goes on where it ended.",
        usage="%(prog)s STUDY [SETTING=VALUE ...] [options]",
    )
    add_sweep_options(parser)
    if not {"-h", "--help"} & set(words) and all(word.startswith("-") for word in words):
        parser.error("name a study, such as: windtunnel sweep quickstart")
    return parser.parse_intermixed_args(words)


def add_sweep_options(parser: argparse.ArgumentParser) -> None:
    """What `sweep STUDY` takes."""
    parser.add_argument("study", help="study to run, from conf/")
    parser.add_argument("overrides", nargs="*", help="settings to change, such as training.batch_size=128")
    parser.add_argument("--profile", default="", help="Snakemake profile: a name or a folder (what fits the cluster)")
    parser.add_argument("--dry-run", action="store_true", help="print the pre-flight and the scripts, submit nothing")
    parser.add_argument("--detach", action="store_true", help="return at once; the driver outlives this login")
    parser.add_argument(
        "--driver", choices=("here", "sbatch"), default="here", help="sbatch: the driver is a small job"
    )
    parser.add_argument(
        "--wait-driver",
        type=read_seconds,
        default=0.0,
        metavar="SECONDS",
        help="wait so long for another driver to end (0)",
    )


def wait_for_driver(request: Request, *, patience_s: float) -> None:
    """Raise BusyError, naming it, while another driver of the study lives, or waits in the queue."""
    deadline = time.monotonic() + patience_s
    while (holder := _find_driver(request.folder)) is not None:
        if time.monotonic() >= deadline:
            raise BusyError(
                f"study {request.study} is driven by {render_holder(holder)}: see `windtunnel status {request.study}`"
            )
        time.sleep(_POLL_S)
    job = read_driver_job(request.folder)
    if job is None or job.job_id == os.environ.get(JOB_ENV):
        return
    if read_job_sight(job.job_id).phase in (Phase.QUEUED, Phase.RUNNING):
        raise BusyError(
            f"study {request.study} already has a driver's job, {job.job_id}, in the queue: wait for it, or"
            f" scancel {job.job_id}"
        )


def _find_driver(folder: Path) -> Holder | None:
    if read_driver(folder) is not None:
        free_dead_driver(folder)
    return read_driver(folder)


def render_command(request: Request, *options: str) -> str:
    """The command that goes on with the study, as one types it."""
    profile = ["--profile", request.typed_profile] if request.typed_profile else []
    return shlex.join(["windtunnel", "sweep", request.study, *request.overrides, *profile, *options])


def _become_workflow(request: Request, project: Path) -> int:
    argv = render_workflow(request, [str(request.folder / SWEEP)], project=project)
    os.environ.setdefault(COMMAND_ENV, render_command(request))
    sys.stdout.flush()
    sys.stderr.flush()
    # In this process's place: signals reach it as they would any snakemake, and nothing idle stays in memory.
    os.execv(argv[0], argv)


def _detach(request: Request, project: Path) -> int:
    log = request.folder / LOG
    env = {COMMAND_ENV: render_command(request, "--detach")}
    child = start_detached(_child_words(request), log, env=env)
    start = await_driver(child, lambda: _drives(request, child.pid), deadline_s=_START_S)
    return tell_start(request, child.pid, start)


def tell_start(request: Request, pid: int, start: Start) -> int:
    """Print how a detached driver began; the exit code. Raises CommandError, with its last words, if it failed."""
    study, log = request.study, request.folder / LOG
    if start.code:
        last = read_last_line(log)
        raise CommandError(f"the driver ended at once with {start.code}: {last}\n  all that it said: {log}")
    if start.code == 0:
        print(f"study {study} had nothing left to run; what the workflow said: {log}")
        return 0
    if start.drives:
        print(f"study {study} is driven by pid {pid}, and this login may end.\n  its log: {log}")
    else:
        print(f"pid {pid} has not begun to drive study {study} within {_START_S:.0f} s; its log is {log}")
    _print_hints(request)
    return 0


def _submit(request: Request, project: Path) -> int:
    settings = request.composed.settings
    if settings.cluster.kind != "slurm":
        raise SettingsError(
            f"--driver=sbatch needs Slurm, but study {request.study} has cluster.kind={settings.cluster.kind} here:"
            " give --profile slurm, or --detach"
        )
    log = (request.folder / LOG).resolve()
    log.parent.mkdir(parents=True, exist_ok=True)
    script = render_driver_script(
        _child_words(request, f"--wait-driver={_PATIENCE_S}"),
        study=request.study,
        log=log,
        cwd=project.resolve(),
        command=render_command(request, "--driver=sbatch"),
        driver=settings.sweep.driver,
        cluster=settings.cluster,
    )
    job_id = submit_driver(script, environ=os.environ)
    write_driver_job(request.folder, DriverJob(job_id, str(log), render_command(request, "--driver=sbatch")))
    print(f"study {request.study} is driven by job {job_id}.\n  its log: {log}")
    _print_hints(request)
    return 0


def _child_words(request: Request, *options: str) -> list[str]:
    words = [sys.executable, "-m", "windtunnel.cli.main", "sweep", request.study, *request.overrides]
    return [*words, "--profile", str(request.profile), *options]


def _drives(request: Request, pid: int) -> bool:
    holder = read_driver(request.folder)
    return holder is not None and holder.pid == pid


def _print_hints(request: Request) -> None:
    print(f"  its state: windtunnel status {request.study} --watch")
    print(f"  to stop it: windtunnel cancel {request.study}", flush=True)
