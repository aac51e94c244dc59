"""How the stages' own jobs stand, as Snakemake's Slurm plugin (2.8) is told.

By itself it waits for ever for a job that sacct calls `CANCELLED by` someone, one that a preemption cancelled,
for one whose record is gone, and where sacct is installed but accounting is off; and it takes UNKNOWN for a success.
"""

import shlex
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from windtunnel.slurm.states import read_state_name

_PLUGIN = "snakemake_executor_plugin_slurm"
SETTLE_S = 60.0
"""A preemption, or a state that says nothing, is an end once seen for so long: Slurm may start the job again."""
GONE_AFTER_S = 600.0
"""A job that was seen once is given up when neither squeue nor sacct has shown it for so long."""
_UNSETTLED = {"PREEMPTED": "CANCELLED", "UNKNOWN": "ERROR", "REVOKED": "ERROR"}

Answer = tuple[dict[str, str] | None, float | None]
Ask = Callable[[str, Any], Awaitable[Answer]]


class StageStates:
    """Mutable: since when jobs have been in a state that may not last, and when they were last seen."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str], float] = {}
        self._seen: dict[str, float] = {}

    def settle(self, states: Mapping[str, str], *, now: float) -> dict[str, str]:
        """Each job's state in the plugin's own words; `now` is in seconds, of any clock that goes forward."""
        settled = {job_id: self._settle_one(job_id, read_state_name(state), now) for job_id, state in states.items()}
        self._seen.update(dict.fromkeys(states, now))
        gone = [job_id for job_id, seen_at in self._seen.items() if now - seen_at > GONE_AFTER_S]
        return {**settled, **dict.fromkeys(gone, "ERROR")}

    def _settle_one(self, job_id: str, state: str, now: float) -> str:
        if state not in _UNSETTLED:
            self._since = {key: since for key, since in self._since.items() if key[0] != job_id}
            return state
        since = self._since.setdefault((job_id, state), now)
        return _UNSETTLED[state] if now - since >= SETTLE_S else "RUNNING"


def mend_plugin() -> None:
    """Have the plugin ask through us, where this process has loaded it."""
    plugin = sys.modules.get(_PLUGIN)
    ask = getattr(plugin, "query_job_status", None)
    if plugin is not None and ask is not None and getattr(ask, "__module__", "") != __name__:
        squeue = getattr(plugin, "query_job_status_squeue", None)
        plugin.query_job_status = settle_answers(ask, squeue)  # type: ignore[attr-defined]  # the module's own name


def settle_answers(
    ask: Ask, squeue: Callable[[str], str] | None, *, clock: Callable[[], float] = time.monotonic
) -> Ask:
    """The plugin's `ask`, which runs a command and reads its lines; `squeue` is its command for a run's name."""
    jobs = StageStates()

    async def ask_settled(command: str, logger: Any) -> Answer:
        states, took_s = await ask(command, logger)
        words = shlex.split(command)
        if states is None and words[0] == "sacct" and squeue is not None:
            states, took_s = await ask(squeue(words[-1]), logger)
        return (None if states is None else jobs.settle(states, now=clock())), took_s

    return ask_settled
