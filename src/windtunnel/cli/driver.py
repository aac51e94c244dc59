"""What one `snakemake` process does first: read the studies, refuse what cannot run, keep a second driver away."""

import atexit
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from windtunnel.cli.studies import Studies, check_studies, read_studies
from windtunnel.errors import BusyError
from windtunnel.ledger.lease import BEAT_EVERY_S, Lease, take_lease

DRIVER_FOLDER = ".driver"
"""Folder of a study's results that holds the lease of the process that drives its workflow."""


def open_studies(config: Mapping[str, Any], *, check: bool) -> Studies:
    """The studies of this run, seen from the working directory.

    With `check` (jobs on nodes do without), raises a UserError for what cannot run, before anything is submitted.
    """
    project = Path.cwd()
    studies = read_studies(config, project=project)
    if check:
        check_studies(studies, project=project)
    return studies


def hold_studies(studies: Studies) -> None:
    """Take each study's lease until this process ends; raises BusyError, naming the holder, if another has it."""
    leases = []
    for name in studies.by_name:
        leases.append(take_lease(Path(studies.results) / name / DRIVER_FOLDER, f"study {name}"))
        atexit.register(leases[-1].release)
    threading.Thread(target=_beat, args=(leases,), daemon=True).start()


def _beat(leases: list[Lease]) -> None:
    pause = threading.Event()
    try:
        while not pause.wait(BEAT_EVERY_S):
            for lease in leases:
                lease.beat()
    except BusyError as error:
        print(f"windtunnel: {error}", flush=True)
