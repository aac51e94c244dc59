"""What one `snakemake` process does first: read the studies, refuse what cannot run, keep a second driver away."""

import atexit
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from snakemake.exceptions import WorkflowError

from windtunnel.cli.dead_driver import free_dead_driver
from windtunnel.cli.stage_jobs import mend_plugin
from windtunnel.cli.studies import Studies, check_studies, read_studies
from windtunnel.errors import BusyError, WindtunnelError
from windtunnel.launch.detach import JOB_ENV
from windtunnel.ledger.lease import start_beating, take_lease
from windtunnel.modes import open_store

DRIVER_FOLDER = ".driver"
"""Folder of a study's results that holds the lease of the process that drives its workflow."""


@contextmanager
def _as_workflow_error() -> Iterator[None]:
    # Snakemake prints this error as its message alone.
    try:
        yield
    except WindtunnelError as error:
        raise WorkflowError(str(error)) from None
    except OSError as error:  # results that cannot be written
        raise WorkflowError(str(error)) from None


@_as_workflow_error()
def open_studies(config: Mapping[str, Any], *, check: bool) -> Studies:
    """The studies of this run, seen from the working directory.

    With `check` (jobs on nodes do without), raises a WorkflowError for what cannot run, before anything is submitted.
    """
    project = Path.cwd()
    studies = read_studies(config, project=project)
    if check:
        check_studies(studies, project=project)
        mend_plugin()
    open_store(Path(studies.store), studies.mode)  # Snakemake makes outputs' folders, and its jobs inherit the umask
    return studies


@_as_workflow_error()
def hold_studies(studies: Studies) -> None:
    """Take each study's lease until this process ends; raises WorkflowError, naming the holder, if another has it.

    A process that loses a lease later ends by SIGTERM.
    """
    leases = []
    for name in studies.by_name:
        folder = Path(studies.results) / name
        free_dead_driver(folder)
        leases.append(take_lease(folder / DRIVER_FOLDER, f"study {name}", job_id=os.environ.get(JOB_ENV, "")))
        atexit.register(leases[-1].release)
    start_beating(leases, tell=_end_process)


def _end_process(error: BusyError) -> None:
    print(f"windtunnel: {error}", file=sys.stderr, flush=True)
    # Two drivers of one study undo each other's files. No exception of the beating thread reaches Snakemake's own,
    # but SIGTERM does: it starts no further job and ends.
    os.kill(os.getpid(), signal.SIGTERM)
