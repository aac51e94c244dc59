from pathlib import Path

import pytest

from windtunnel.ledger.batch import append_events
from windtunnel.ledger.log import read_events


def test_every_trial_gets_the_event_with_its_own_details(tmp_path: Path) -> None:
    folders = [tmp_path / str(index) for index in range(40)]
    for folder in folders:
        folder.mkdir()
    told = ((folder, {"index": index}) for index, folder in enumerate(folders))
    append_events(told, "submitting", attempt=0)
    written = [event for folder in folders for event in read_events(folder)]
    assert [(event.kind, event.details) for event in written] == [
        ("submitting", {"index": index}) for index in range(40)
    ]


def test_a_ledger_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        append_events([(tmp_path / "nowhere", {})], "submitting", attempt=0)
