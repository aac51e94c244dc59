from pathlib import Path

import pytest

from fake_disk import at_most_bytes
from windtunnel.ledger.log import LEDGER, append_event, read_events


def test_events_are_read_back_in_order(tmp_path: Path) -> None:
    written = [append_event(tmp_path, "started", attempt=1, job_id="7"), append_event(tmp_path, "ended", attempt=1)]
    assert read_events(tmp_path) == written


def test_a_torn_line_costs_only_itself(tmp_path: Path) -> None:
    first = append_event(tmp_path, "started", attempt=1)
    with (tmp_path / LEDGER).open("a") as file:
        file.write('{"kind": "end')
    last = append_event(tmp_path, "started", attempt=2)
    assert read_events(tmp_path) == [first, last]


def test_no_ledger_is_no_events(tmp_path: Path) -> None:
    assert read_events(tmp_path) == []


def test_a_full_disk_is_told_and_costs_no_earlier_or_later_event(tmp_path: Path) -> None:
    first = append_event(tmp_path, "started", attempt=1)
    with at_most_bytes((tmp_path / LEDGER).stat().st_size + 20), pytest.raises(OSError, match=r"space|large"):
        append_event(tmp_path, "ended", attempt=1)
    last = append_event(tmp_path, "started", attempt=2)
    assert read_events(tmp_path) == [first, last]
