from pathlib import Path

from fake_trials import make_trial, write_trial
from windtunnel.artifacts import read_artifact, write_artifact
from windtunnel.attempt.execute import Execution, keep_cause
from windtunnel.attempt.plan import LaunchPlan
from windtunnel.attempt.program import AttemptFiles
from windtunnel.ledger.facts import read_end
from windtunnel.ledger.layout import TrialFolder, write_next_attempt
from windtunnel.records.trial import AttemptEnd, TrialConfig, Verdict
from windtunnel.slurm.cause import Cause


def keep(store: Path, cause: Cause) -> TrialFolder:
    """A trial whose supervisor was killed after it had learnt `cause`."""
    folder = write_trial(store, make_trial())
    files = AttemptFiles(folder, write_next_attempt(folder))
    plan = LaunchPlan((), ("n0", "n1"), None, None)
    keep_cause(Execution(plan, read_artifact(folder.config, TrialConfig), files, slurm=True), started=0.0)(cause)
    return folder


def test_a_killed_supervisor_leaves_the_cause_of_its_signal(tmp_path: Path) -> None:
    end = read_end(keep(tmp_path, Cause.TIME_LIMIT).end(1))
    assert end is not None
    assert (end.verdict, end.hosts) == (Verdict.TIMEOUT, ("n0", "n1"))
    assert end.evidence == "stopped at its time limit; its supervisor told no more"


def test_a_cause_that_nobody_knows_is_left_to_slurm(tmp_path: Path) -> None:
    assert read_end(keep(tmp_path, Cause.UNKNOWN).end(1)) is None


def test_the_supervisors_own_last_word_is_what_counts(tmp_path: Path) -> None:
    folder = keep(tmp_path, Cause.PREEMPTION)
    write_artifact(folder.end(1), AttemptEnd(1, 0, Verdict.COMPLETED, "DONE.json is valid", ("n0",), "7", 1.0))
    end = read_end(folder.end(1))
    assert end is not None
    assert end.verdict is Verdict.COMPLETED
