"""One submission: packs of trials of one shape as a job array, told in their ledgers before and after.

So that whoever finds a submission without an answer can tell by its name whether Slurm took it, and what it runs.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from windtunnel.errors import ClusterError, CommandError, FullQueueError
from windtunnel.launch.backend import Submitted
from windtunnel.launch.context import SweepContext
from windtunnel.launch.jobs import submit_array, supply_call
from windtunnel.launch.mates import list_mates
from windtunnel.launch.shapes import ENDS_AT_ONCE, Pack, render_parameters
from windtunnel.ledger.batch import append_events
from windtunnel.ledger.layout import trial_folder
from windtunnel.ledger.story import Submission
from windtunnel.records.plan import PlannedTrial
from windtunnel.slurm.queue import QueuedJob, find_task, read_queue_by_name


def submit_packs(
    packs: Sequence[Pack],
    context: SweepContext,
    *,
    exclude: Sequence[str] = (),
    seen: Mapping[str, int] | None = None,
) -> Submitted:
    """Submit packs of one shape, and of one number of trials, as one array.

    `seen` says, by trial id, how many events its ledger had when it was decided to submit it. Raises FullQueueError
    when Slurm takes no more jobs now: then it took none of these.
    """
    name = name_submission(context.study, uuid.uuid4().hex[:8])
    commands = [context.command_of(*pack) for pack in packs]
    told = (
        (
            context.folder_of(trial).path,
            {"submission": name, "index": index, **_tell(trial, pack, context, seen or {})},
        )
        for index, pack in enumerate(packs)
        for trial in pack
    )
    append_events(told, "submitting", attempt=0)
    shape, trials = packs[0][0].shape, len(packs[0])
    options = ENDS_AT_ONCE if context.sweep.successor else {}
    parameters = render_parameters(shape, context.cluster, name=name, trials=trials, exclude=exclude, options=options)
    try:
        job_ids = submit_array(commands, parameters, folder=context.jobs_dir)
    except FullQueueError as error:
        _postpone(packs, context, str(error))
        raise
    except (ClusterError, CommandError) as error:
        return _settle_failure(packs, context, name, error)
    return Submitted(_write_ids(zip(packs, job_ids, strict=True), context, name))


def name_submission(study: str, mark: str) -> str:
    """The name of a submission's jobs; `mark` tells it from others."""
    return f"windtunnel-{study}-{mark}"


def supply_command(trial: PlannedTrial, context: SweepContext, submission: Submission, *, job_id: str) -> None:
    """Give a job of a submission without an answer, also of another study's, the command that it waits for."""
    jobs_dir = Path(submission.jobs_dir) if submission.jobs_dir else context.jobs_dir
    ids = list_mates(submission, jobs_dir) or (trial.id,)
    command = (*context.supervisor, *(str(trial_folder(context.store, trial_id).path) for trial_id in ids))
    # Another user's folder may be closed to this one: then that user's driver supplies it, or the job ends without.
    with suppress(PermissionError):
        supply_call(command, trial.shape, folder=jobs_dir, job_id=job_id)


def _tell(trial: PlannedTrial, pack: Pack, context: SweepContext, seen: Mapping[str, int]) -> dict[str, Any]:
    """What others must know of a job to find it, to end it, and to give it its command."""
    told: dict[str, Any] = {"jobs_dir": str(context.jobs_dir)}
    if len(pack) > 1:
        told["pack"] = [mate.id for mate in pack]
    if context.sweep.successor:
        told["alone"] = True
    if trial.id in seen:
        told["seen"] = seen[trial.id]
    return told


def _postpone(packs: Sequence[Pack], context: SweepContext, why: str) -> None:
    folders = (context.folder_of(trial).path for pack in packs for trial in pack)
    append_events(((folder, {"evidence": why}) for folder in folders), "postponed", attempt=0)


def _settle_failure(
    packs: Sequence[Pack], context: SweepContext, name: str, error: ClusterError | CommandError
) -> Submitted:
    # Only the answer may have been lost: Slurm is asked before the error is believed.
    queue: Mapping[str, QueuedJob] = {}
    try:
        queue = read_queue_by_name(name)
    except CommandError:
        pass
    found = [(index, pack, job_id) for index, pack in enumerate(packs) if (job_id := find_task(queue, index))]
    for index, pack, job_id in found:
        submission = Submission(name, index, str(context.jobs_dir), tuple(trial.id for trial in pack))
        supply_command(pack[0], context, submission, job_id=job_id)
    ids = _write_ids(((pack, job_id) for _, pack, job_id in found), context, name)
    rest = {trial.id: str(error) for pack in packs for trial in pack if trial.id not in ids}
    refused = isinstance(error, ClusterError)
    return Submitted(ids, rest if refused else {}, {} if refused else rest)


def _write_ids(jobs: Iterable[tuple[Pack, str]], context: SweepContext, name: str) -> dict[str, str]:
    given = [(trial, job_id) for pack, job_id in jobs for trial in pack]
    told = ((context.folder_of(trial).path, {"job_id": job_id, "submission": name}) for trial, job_id in given)
    append_events(told, "submitted", attempt=0)
    return {trial.id: job_id for trial, job_id in given}
