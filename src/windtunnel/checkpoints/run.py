"""The stage verify_checkpoints: every kept checkpoint of a study's completed trials, read byte by byte."""

from pathlib import Path

from windtunnel.artifacts import hash_json, read_artifact, write_artifact
from windtunnel.checkpoints.manifest import list_checkpoints, read_manifest
from windtunnel.checkpoints.verify import verify_checkpoint
from windtunnel.errors import CheckpointError
from windtunnel.records.checks import CheckpointCheck, CheckpointReport
from windtunnel.records.trial import Sweep, SweepEntry
from windtunnel.units import format_bytes


def run_verify_checkpoints(*, study: str, sweep: Path, out: Path) -> CheckpointReport:
    """Check the checkpoints of every trial in `sweep` that has an outcome, and publish what was found at `out`.

    A checkpoint that does not verify is a finding of the report, not an error.
    """
    found = read_artifact(sweep, Sweep)
    trained = [entry for entry in found.entries if entry.outcome is not None and entry.outcome.checkpoint]
    for entry in found.entries:
        if entry.outcome is not None and not entry.outcome.checkpoint:
            print(f"verify skipped {entry.name}: its program keeps its own checkpoints", flush=True)
    checks: list[CheckpointCheck] = []
    for number, entry in enumerate(trained, 1):
        mine = check_trial(Path(found.trials_dir) / entry.trial_id, entry)
        checks += mine
        print(f"verify {number} of {len(trained)}: {entry.name}: {summarise(mine)}", flush=True)
    report = CheckpointReport(study=study, checks=tuple(checks))
    write_artifact(out, report, settings_hash=hash_json({"study": study}))
    return report


def check_trial(trial_dir: Path, entry: SweepEntry) -> list[CheckpointCheck]:
    """A check of each kept checkpoint, newest first; the final one is listed even when it is gone."""
    assert entry.outcome is not None
    final = trial_dir / entry.outcome.checkpoint
    paths = list_checkpoints(trial_dir / "checkpoints")
    if final not in paths:
        paths.insert(0, final)
    return [check_checkpoint(entry.trial_id, path, step_if_lost=entry.outcome.steps) for path in paths]


def check_checkpoint(trial_id: str, path: Path, *, step_if_lost: int = 0) -> CheckpointCheck:
    """Whether the checkpoint at `path` verifies, and belongs to the trial."""
    reasons = verify_checkpoint(path)
    try:
        manifest = read_manifest(path)
    except CheckpointError:
        return CheckpointCheck(trial_id, str(path.absolute()), step_if_lost, 0, False, "; ".join(reasons))
    if manifest.trial_id != trial_id:
        reasons.append(f"{path.name} belongs to trial {manifest.trial_id}")
    return CheckpointCheck(
        trial_id=trial_id,
        path=str(path.absolute()),
        step=manifest.step,
        bytes=manifest.bytes,
        verified=not reasons,
        reason="; ".join(reasons),
    )


def summarise(checks: list[CheckpointCheck]) -> str:
    """`2 checkpoints, 1.2 MiB, all whole`, or the first reason against one."""
    bad = [check.reason for check in checks if not check.verified]
    size = format_bytes(sum(check.bytes for check in checks))
    state = f"{len(bad)} damaged: {bad[0]}" if bad else "all whole"
    return f"{len(checks)} checkpoints, {size}, {state}"
