"""One submission: packs of trials of one shape as a job array, told in their ledgers before and after.

So that whoever finds a submission without an answer can tell by its name whether Slurm took it.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from windtunnel.artifacts import write_atomic
from windtunnel.errors import ClusterError, CommandError, FullQueueError
from windtunnel.launch.backend import Submitted
from windtunnel.launch.context import SweepContext
from windtunnel.launch.jobs import submit_array, supply_call
from windtunnel.launch.shapes import Pack, render_parameters
from windtunnel.ledger.batch import append_events
from windtunnel.records.plan import PlannedTrial
from windtunnel.slurm.queue import QueuedJob, read_queue_by_name


def submit_packs(packs: Sequence[Pack], context: SweepContext, *, exclude: Sequence[str] = ()) -> Submitted:
    """Submit packs of one shape, and of one number of trials, as one array.

    Raises FullQueueError when Slurm takes no more jobs now: then it took none of these.
    """
    name = name_submission(context.study, uuid.uuid4().hex[:8])
    commands = [context.command_of(*pack) for pack in packs]
    if len(packs[0]) > 1:
        _write_commands(context, name, commands)
    append_events(
        (
            (context.folder_of(trial).path, {"submission": name, "index": index})
            for index, pack in enumerate(packs)
            for trial in pack
        ),
        "submitting",
        attempt=0,
    )
    shape, trials = packs[0][0].shape, len(packs[0])
    parameters = render_parameters(shape, context.cluster, name=name, trials=trials, exclude=exclude)
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


def find_task(jobs: Iterable[str], index: int) -> str:
    """The job id of an array's task, or of a job that is alone; empty when there is none."""
    wanted = {job_id for job_id in jobs if job_id.endswith(f"_{index}") or ("_" not in job_id and index == 0)}
    return next(iter(sorted(wanted)), "")


def supply_command(trial: PlannedTrial, context: SweepContext, *, name: str, index: int, job_id: str) -> None:
    """Give a job of a submission without an answer the command that it waits for."""
    try:
        command = tuple(json.loads(_commands_file(context, name).read_text())[index])
    except FileNotFoundError:
        command = context.command_of(trial)
    supply_call(command, trial.shape, folder=context.jobs_dir, job_id=job_id)


def read_packs(jobs_dir: Path, name: str) -> tuple[tuple[str, ...], ...]:
    """Of each job of a submission the ids of the trials that it runs in turn; empty where each runs one."""
    try:
        commands = json.loads((jobs_dir / f"{name}.json").read_text())
    except FileNotFoundError:
        return ()
    return tuple(
        tuple(Path(word).name for word in command if Path(word).parent.name == "trials") for command in commands
    )


def _write_commands(context: SweepContext, name: str, commands: Sequence[Sequence[str]]) -> None:
    write_atomic(_commands_file(context, name), (json.dumps(commands) + "\n").encode())


def _commands_file(context: SweepContext, name: str) -> Path:
    return context.jobs_dir / f"{name}.json"


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
        supply_command(pack[0], context, name=name, index=index, job_id=job_id)
    ids = _write_ids(((pack, job_id) for _, pack, job_id in found), context, name)
    rest = {trial.id: str(error) for pack in packs for trial in pack if trial.id not in ids}
    refused = isinstance(error, ClusterError)
    return Submitted(ids, rest if refused else {}, {} if refused else rest)


def _write_ids(jobs: Iterable[tuple[Pack, str]], context: SweepContext, name: str) -> dict[str, str]:
    given = [(trial, job_id) for pack, job_id in jobs for trial in pack]
    told = ((context.folder_of(trial).path, {"job_id": job_id, "submission": name}) for trial, job_id in given)
    append_events(told, "submitted", attempt=0)
    return {trial.id: job_id for trial, job_id in given}
