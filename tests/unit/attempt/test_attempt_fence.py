from pathlib import Path

import pytest

from fake_trials import make_trial, write_trial
from windtunnel.attempt.run import run_attempt
from windtunnel.errors import BusyError
from windtunnel.ledger import lease
from windtunnel.ledger.layout import TrialFolder
from windtunnel.ledger.log import read_events

TAKES_THE_LEASE = 'echo "$$" > {pid}; touch {lease}/2; exec sleep 600'


@pytest.fixture
def fenced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrialFolder:
    """A trial whose supervisor lost its lease to another while its rank ran."""
    monkeypatch.setattr(lease, "BEAT_EVERY_S", 0.05)
    folder = write_trial(tmp_path, make_trial())
    command = TAKES_THE_LEASE.format(pid=tmp_path / "pid", lease=folder.lease)
    with pytest.raises(BusyError, match="was taken over by another process"):
        run_attempt(folder.path, rank_command=("sh", "-c", command, "rank"))
    return folder


def test_a_supervisor_that_lost_its_trial_writes_nothing_more_of_it(fenced: TrialFolder) -> None:
    assert [event.kind for event in read_events(fenced.path)] == ["started"]
    assert not fenced.end(1).exists()


def test_ranks_of_a_supervisor_that_lost_its_trial_are_gone(fenced: TrialFolder, tmp_path: Path) -> None:
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()
