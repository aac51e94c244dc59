import json

import pytest

from windtunnel.ledger.tail import read_last_line, read_last_record

_TORN = {"whole": "", "torn": '{"step": 8, "lo', "no object": "[1, 2]\n", "blank": "\n\n", "zeros": "\x00\x00"}


@pytest.mark.parametrize("torn", _TORN.values(), ids=_TORN)
def test_the_newest_whole_record_is_read_whatever_a_cut_off_writer_left_behind_it(tmp_path, torn):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 6}\n{"step": 7}\n' + torn)
    assert read_last_record(path) == {"step": 7}


def test_a_record_may_be_longer_than_a_line_for_people(tmp_path):
    path = tmp_path / "metrics.jsonl"
    record = {"step": 7, "gradients": [0.5] * 3000}
    path.write_text('{"step": 6}\n' * 9000 + json.dumps(record) + "\n")
    assert read_last_record(path) == record
    assert len(read_last_line(path)) == 600


def test_no_record_is_no_fields(tmp_path):
    (tmp_path / "empty").touch()
    assert read_last_record(tmp_path / "empty") == read_last_record(tmp_path / "none") == {}
