"""A driver that was a job, and is gone with it: its heartbeat would keep the next one away for 90 s."""

import socket
from collections.abc import Callable
from pathlib import Path

from windtunnel.launch.overview import LEASES
from windtunnel.launch.sights import read_job_sight
from windtunnel.ledger.lease import Holder, bury_holder, read_live_holder
from windtunnel.ledger.reconcile import JobSight, Phase
from windtunnel.records.trial import Verdict

Look = Callable[[str], JobSight]


def free_dead_driver(folder: Path, *, look: Look = read_job_sight) -> None:
    """Free the leases of the study in `folder` whose holder's job has ended, as `look` tells of it."""
    for name in LEASES:
        holder = read_live_holder(folder / name)
        if holder is not None and _is_gone(holder, look):
            bury_holder(folder / name, holder)


def _is_gone(holder: Holder, look: Look) -> bool:
    # A process of this host is known by its pid; and on a node that failed, processes may go on out of Slurm's sight.
    if not holder.job_id or holder.host == socket.gethostname():
        return False
    sight = look(holder.job_id)
    return sight.phase == Phase.ENDED and sight.verdict != Verdict.NODE_FAIL
