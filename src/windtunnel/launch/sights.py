"""What Slurm says of a study's jobs, for those who only look: asked once an interval, however many look.

The answer is kept in a file beside the study's others. Nothing here cancels a job or changes a trial.
"""

import json
import os
import shutil
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from windtunnel.errors import CommandError
from windtunnel.launch.pace import URGENT_S
from windtunnel.ledger.reconcile import UNSEEN, JobSight, Phase
from windtunnel.ledger.story import Submission
from windtunnel.records.trial import Verdict
from windtunnel.slurm.accounting import AccountedJob, read_accounting, read_accounting_by_name
from windtunnel.slurm.queue import QueuedJob, base_of, find_task, read_queue, read_queue_by_name
from windtunnel.slurm.states import sight_of_state

CACHE = ".squeue.json"


@dataclass(frozen=True)
class Sights:
    """The sights of jobs by id, when they were asked for (seconds since 1970), and why they may be missing."""

    jobs: dict[str, JobSight] = field(default_factory=dict)
    asked_at: float = 0.0
    problem: str = ""
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Jobs by the name of their submission, of those that were asked for by name."""

    def find(self, submission: Submission) -> str:
        """The job of a submission whose id was never written down; empty when Slurm does not know one."""
        return find_task(self.names.get(submission.name, ()), submission.index)

    def of(self, job_id: str) -> JobSight:
        """A job's sight; UNSURE when Slurm does not know it, or was not asked."""
        return self.jobs.get(job_id, UNSEEN)


def read_sights(job_ids: Collection[str], *, cache: Path, poll_s: float, names: Collection[str] = ()) -> Sights:
    """The sights of jobs, at most `poll_s` old, or a few seconds where one is new to whoever asked last.

    `names` are of submissions whose jobs' ids nobody wrote down.
    """
    # A store may hold trials that ran without Slurm; their ids are no job's.
    wanted = {job_id for job_id in job_ids if base_of(job_id).isdecimal()}
    if not wanted and not names:
        return Sights()
    if shutil.which("squeue") is None:
        return Sights(problem="this host has no squeue on PATH: look from a login node")
    known = _read_cache(cache)
    age_s = abs(time.time() - known.asked_at)
    all_known = wanted <= known.jobs.keys() and set(names) <= known.names.keys()
    if age_s < (poll_s if all_known else min(URGENT_S, poll_s)):
        return known
    # The answer is everybody's: who asks for one job leaves out none that others watch.
    alive = {job_id for job_id, sight in known.jobs.items() if sight.phase in (Phase.QUEUED, Phase.RUNNING)}
    try:
        named, ids = _ask_by_name(names)
        sights = Sights(named | _ask((wanted | alive) - named.keys()), time.time(), names=ids)
    except CommandError as error:
        problem = f"Slurm does not answer: {str(error).splitlines()[-1].strip()}"
        return Sights(known.jobs, known.asked_at, problem, known.names)
    _write_cache(cache, sights)
    return sights


def read_job_sight(job_id: str) -> JobSight:
    """The sight of one job, asked for now; UNSURE also where Slurm does not answer, or is not here."""
    if shutil.which("squeue") is None:
        return UNSEEN
    try:
        return _ask({job_id})[job_id]
    except CommandError:
        return UNSEEN


def _ask(job_ids: Collection[str]) -> dict[str, JobSight]:
    queue = read_queue(job_ids)
    missing = [job_id for job_id in job_ids if job_id not in queue]
    return dict.fromkeys(job_ids, UNSEEN) | _sight_all(queue, read_accounting(missing) or {})


def _ask_by_name(names: Collection[str]) -> tuple[dict[str, JobSight], dict[str, tuple[str, ...]]]:
    """The jobs of submissions, and their ids by name: one squeue for all; sacct for names that it does not show."""
    if not names:
        return {}, {}
    queue = read_queue_by_name(*sorted(names))
    ids = {name: tuple(job_id for job_id, job in queue.items() if job.name == name) for name in names}
    accounted = read_accounting_by_name([name for name in names if not ids[name]]) or {}
    ids |= {name: tuple(jobs) for name, jobs in accounted.items()}
    return _sight_all(queue, {job_id: job for jobs in accounted.values() for job_id, job in jobs.items()}), ids


def _sight_all(queue: Mapping[str, QueuedJob], accounted: Mapping[str, AccountedJob]) -> dict[str, JobSight]:
    # Accounting alone shows no life: its record may be of an earlier run.
    told = {job_id: sight_of_state(job.state, job_id=job_id) for job_id, job in accounted.items()}
    sights = {job_id: sight if sight.phase == Phase.ENDED else UNSEEN for job_id, sight in told.items()}
    for job_id, job in queue.items():
        sights[job_id] = sight_of_state(job.state, job_id=job_id, detail=_clean(job.reason))
    return sights


def _clean(reason: str) -> str:
    return "" if reason in ("None", "(null)") else reason


def _read_cache(path: Path) -> Sights:
    try:
        plain = json.loads(path.read_text())
        jobs = {job_id: _parse_sight(sight) for job_id, sight in plain["jobs"].items()}
        names = {name: tuple(ids) for name, ids in plain.get("names", {}).items()}
        return Sights(jobs, float(plain["asked_at"]), names=names)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Sights()


def _parse_sight(plain: dict[str, Any]) -> JobSight:
    verdict = Verdict(plain["verdict"]) if plain["verdict"] else None
    return JobSight(Phase(plain["phase"]), verdict, plain["evidence"])


def _write_cache(path: Path, sights: Sights) -> None:
    # Who may look need not be who may write, and a lost answer is asked for again.
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(json.dumps(asdict(sights)))
        temporary.rename(path)
    except OSError:
        temporary.unlink(missing_ok=True)
