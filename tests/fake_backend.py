"""A place to run trials that tests move along: what it shows of jobs, and what these leave in trials' folders."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from windtunnel.artifacts import write_artifact
from windtunnel.errors import CommandError
from windtunnel.launch.backend import Submitted
from windtunnel.launch.context import SweepContext
from windtunnel.launch.course import Course, begin_course
from windtunnel.ledger.layout import TrialFolder, trial_folder, write_next_attempt
from windtunnel.ledger.log import append_event
from windtunnel.ledger.reconcile import UNSEEN, JobSight, Phase
from windtunnel.ledger.story import Submission
from windtunnel.records.plan import Identity, PlannedTrial
from windtunnel.records.trial import AttemptEnd, Verdict
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.sweep import SweepSettings

QUEUED = JobSight(Phase.QUEUED)
RUNNING = JobSight(Phase.RUNNING)


@dataclass
class FakeBackend:
    """Job ids count from 1. Tests change `sights`, `refused` and `silent_s` between the driver's steps."""

    store: Path
    poll_s: float = 0.0
    survives: bool = True
    silent_s: float = 0.0
    sights: dict[str, JobSight] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """By trial id: why it is not taken."""
    submitted: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """Trial ids in order, with the nodes left out."""
    cancelled: list[str] = field(default_factory=list)
    meanwhile: Callable[[Path], object] = lambda path: None
    """What somebody else does to a trial's folder between a submission and its answer."""
    before: Callable[[Path], object] = lambda path: None
    """What somebody else does to a trial's folder between its driver's last look and the submission."""
    shut: set[str] = field(default_factory=set)
    """Ids of trials for which there is no room."""
    recovered: str = ""
    """Job of every submission whose id was never written down."""
    full: bool = False
    """Whether submissions are put off."""
    lost: bool = False
    """Whether submissions get no answer, and come to nothing."""
    alone: bool = False
    """Whether each job has a name of its own, so that others can wait behind it."""
    deaf: str = ""
    """Why neither `recover` nor `cancel` gets an answer; empty while they do."""

    def pick(self, waiting: Sequence[PlannedTrial], *, active: int) -> Sequence[PlannedTrial]:
        return [trial for trial in waiting if trial.id not in self.shut]

    def submit(
        self, trials: Sequence[PlannedTrial], *, exclude: tuple[str, ...] = (), seen: Mapping[str, int] | None = None
    ) -> Submitted:
        taken = Submitted({})
        for trial in trials:
            folder = trial_folder(self.store, trial.id)
            name = f"x-{len(self.submitted)}"
            self.before(folder.path)
            known: dict[str, object] = {"seen": seen[trial.id]} if seen is not None else {}
            known |= {"alone": True} if self.alone else {}
            append_event(folder.path, "submitting", attempt=0, submission=name, index=0, **known)
            self.meanwhile(folder.path)
            if self.full:
                append_event(folder.path, "postponed", attempt=0)
                continue
            if self.lost:
                taken.unanswered[trial.id] = "the answer was lost"
                continue
            if trial.id in self.refused:
                taken.refusals[trial.id] = self.refused[trial.id]
                continue
            self.submitted.append((trial.id, exclude))
            job_id = taken.job_ids[trial.id] = str(len(self.submitted))
            self.sights[job_id] = QUEUED
            append_event(folder.path, "submitted", attempt=0, job_id=job_id, submission=name)
        return taken

    def recover(self, trial: PlannedTrial, submission: Submission) -> str:
        self._answer()
        return self.recovered

    def look(self, job_ids: Collection[str], *, urgent: bool) -> dict[str, JobSight]:
        return {job_id: self.sights.get(job_id, UNSEEN) for job_id in job_ids}

    def explain(self, job_id: str) -> str:
        return ""

    def stop(self, job_ids: Collection[str]) -> None:
        pass

    def cancel(self, job_ids: Collection[str]) -> None:
        self._answer()
        self.cancelled += job_ids

    def close(self) -> None:
        pass

    def _answer(self) -> None:
        if self.deaf:
            raise CommandError(self.deaf)


def make_slurm_context(store: Path, *, sweep: SweepSettings | None = None, study: str = "made_up") -> SweepContext:
    """A sweep on a cluster, with everything in `store`."""
    return SweepContext(
        study=study,
        cluster=ClusterSettings(kind="slurm", partition="main"),
        sweep=sweep or SweepSettings(settle_s=0),
        identity=Identity("d", "s", "2.13.0"),
        features=store / "MANIFEST.json",
        topology=None,
        store=store,
        import_root="",
        jobs_dir=store / "jobs",
    )


def make_courses(context: SweepContext, *trials: PlannedTrial) -> list[Course]:
    """The trials' courses, which look again at every step."""
    courses = [begin_course(trial, context, number=i + 1, total=len(trials)) for i, trial in enumerate(trials)]
    for course in courses:
        course.is_quiet = lambda sight, *, watched=1: False  # type: ignore[method-assign]
    return courses


def start_attempt(folder: TrialFolder, job_id: str, *, host: str = "n3") -> int:
    """What a supervisor leaves when it starts."""
    attempt = write_next_attempt(folder)
    append_event(folder.path, "started", attempt=attempt, job_id=job_id, hosts=[host], granted=[host])
    return attempt


def end_attempt(folder: TrialFolder, attempt: int, verdict: Verdict, *, job_id: str, host: str = "n3") -> None:
    """What a supervisor leaves when it ends."""
    write_artifact(folder.end(attempt), AttemptEnd(attempt, 1, verdict, "the cause", (host,), job_id, 1.0))
    append_event(folder.path, "ended", attempt=attempt, verdict=verdict, evidence="the cause", job_id=job_id)


def ended(verdict: Verdict | None, *, hosts: tuple[str, ...] = ()) -> JobSight:
    """A job that Slurm says has ended."""
    return JobSight(Phase.ENDED, verdict, f"Slurm says {verdict or 'COMPLETED'}", hosts=hosts)
