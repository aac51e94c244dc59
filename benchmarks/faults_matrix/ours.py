"""`python -m benchmarks.faults_matrix.ours ORDER`: a rank of a small trial of ours, as its supervisor starts it."""

import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.faults_kills import read_tensors
from benchmarks.faults_matrix.journal import DONE, RESUMED, STEP, Event, Journal, Order, read_order
from benchmarks.faults_matrix.model import digest_tensors
from benchmarks.harness import ROOT
from toy_trial import trial_settings, write_features, write_trial
from windtunnel.artifacts import read_artifact, write_artifact
from windtunnel.attempt.run import run_attempt
from windtunnel.identity import read_identity
from windtunnel.ledger.layout import TrialFolder
from windtunnel.records.trial import TrialOutcome, Verdict
from windtunnel.training.__main__ import main as train

EPOCH_STEPS = 22
_RESUMED = re.compile(r"resumed from step-(\d+)")


def main() -> None:
    order = read_order()
    if order.supervised:
        sys.exit(supervise(order))
    folder, attempt_dir = Path(order.folder), Path(order.folder) / "attempts" / str(order.attempt)
    attempt_dir.mkdir(parents=True, exist_ok=True)
    code = train(["--trial-dir", str(folder), "--attempt", str(order.attempt), "--generation", str(order.generation)])
    if code == 0 and int(os.environ.get("RANK", "0")) == 0:
        report_end(order)
    sys.exit(code)


def supervise(order: Order) -> int:
    """The attempt under its supervisor, which keeps the ledger; its exit code, after the rank's log."""
    end = run_attempt(Path(order.folder))
    log = TrialFolder(Path(order.folder)).rank_log(order.attempt, 0)
    print(log.read_text() if log.exists() else "", f"windtunnel: {end.evidence}", sep="\n", flush=True)
    if end.verdict == Verdict.COMPLETED:
        report_end(order)
    return end.exit_code


def prepare(order: Order) -> None:
    """What a supervisor leaves for the ranks; for the matrix to call."""
    model = {"name": "net", "_target_": "benchmarks.faults_matrix.model.Net", "args": {"dropout": order.dropout}}
    settings = trial_settings(
        ranks=order.ranks,
        model=model,
        steps=order.steps,
        checkpoint_every=order.save_every,
        log_every=1,
        async_checkpoints=False,  # a kill a few steps later then always finds the save done
    )
    features = write_features(Path(order.folder) / "features")
    config = write_trial(Path(order.folder), features, settings, import_root=str(ROOT))
    # A supervisor would begin the next attempt at once, with the same fault in it.
    supervised = replace(config, identity=read_identity(features), lost_retries=0)
    write_artifact(TrialFolder(Path(order.folder)).config, supervised)


def report_end(order: Order) -> None:
    """Journal the last checkpoint's weights and optimizer."""
    outcome = read_artifact(Path(order.folder) / "DONE.json", TrialOutcome)
    tensors = read_tensors(Path(order.folder) / outcome.checkpoint)
    kept = {name: tensor for name, tensor in tensors.items() if not name.startswith("rank")}
    finite = all(bool(tensor.isfinite().all()) for tensor in kept.values() if tensor.is_floating_point())
    Journal(order).add(DONE, outcome.steps, digest=digest_tensors(kept), finite=finite)


def read_events(folder: Path, attempt: int, log: str) -> list[Event]:
    """What an attempt says of itself: where it resumed, by its log, and the steps of its metrics."""
    path = folder / "metrics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    steps = [Event(attempt, STEP, line["step"]) for line in lines if line["attempt"] == attempt]
    found = _RESUMED.search(log)
    if found:
        return [Event(attempt, RESUMED, int(found[1])), *steps]
    return [Event(attempt, RESUMED, 0), *steps] if steps else []


if __name__ == "__main__":
    main()
