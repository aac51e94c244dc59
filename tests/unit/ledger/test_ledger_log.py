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


@pytest.mark.parametrize(
    "line",
    [
        '{"kind":"ended","attempt":1,"at":1.0,"host":"h","pid":1,"details":null}',
        '{"kind":"ended","attempt":null,"at":1.0,"host":"h","pid":1,"details":{}}',
        '{"kind":"ended","attempt":1,"at":"x","host":"h","pid":1,"details":{}}',
        '{"kind":"ended","attempt":1,"at":1e30,"host":"h","pid":1,"details":{}}',
        '{"kind":"verdict","attempt":1,"at":1.0,"host":"h","pid":1,"details":{"verdict":"OF_NEXT_YEAR"}}',
        '{"kind":"verdict","attempt":1,"at":1.0,"host":"h","pid":1,"details":{}}',
        "[" * 200_000,
        "9" * 5000,
        "\x00" * 4096,
    ],
    ids=["no details", "no attempt", "no time", "far", "verdict", "no verdict", "deep", "long", "zeros"],
)
def test_a_line_that_nobody_of_ours_wrote_is_passed_over(tmp_path: Path, line: str) -> None:
    append_event(tmp_path, "started", attempt=1)
    with (tmp_path / LEDGER).open("a") as file:
        file.write(line + "\n")
    append_event(tmp_path, "ended", attempt=1)
    assert [event.kind for event in read_events(tmp_path)] == ["started", "ended"]
