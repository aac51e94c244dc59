import json

from windtunnel.cli.main import main
from windtunnel.ingest.inspect import inspect_file, render_report
from windtunnel.settings.data import TextSettings

MS = 1_650_000_000_000
TEXT = f"\ufeffts,price\n{MS + 5},10\n{MS},2000\n{MS + 6},oops\n{MS + 7},nope\n{MS + 8}\n"


def test_a_file_is_told_by_source_schema_time_and_what_is_odd(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(TEXT)
    report = inspect_file(str(path))
    (part,) = report.parts
    assert (report.source, report.packing) == ("delimited", "plain")
    assert part.time == "epoch in ms"
    assert [column.name for column in part.columns] == ["time_ns", "price"]
    assert (part.rows_in, part.rows_kept) == (5, 2)
    assert part.flagged == {"out_of_order": 1, "jump": 1}
    assert [(item.reason, item.rows, item.lines) for item in part.quarantined] == [
        ("price is not a number", 2, (4, 5)),
        ("1 fields, expected 2", 1, (6,)),
    ]


def test_inspecting_writes_nothing_and_prints_text_or_json(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(TEXT)
    assert main(["ingest", "inspect", "a.csv"]) == 0
    told = capsys.readouterr().out
    assert "source: delimited" in told
    assert "  odd: starts with a byte-order mark" in told
    assert "  quarantine: 2 rows: price is not a number (line 4, 5)" in told
    assert main(["ingest", "inspect", "a.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parts"][0]["rows_kept"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_a_file_that_none_reads_says_what_to_set_and_exits_1(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("time,price\n2022-06-06 09:30:00,1\n")
    assert main(["ingest", "inspect", str(path)]) == 1
    assert "set data.text.zone" in capsys.readouterr().out
    assert main(["ingest", "inspect", str(path), "--text", "zone=UTC"]) == 0
    assert "time: iso, zone UTC" in capsys.readouterr().out


def test_a_daily_series_is_told_by_the_narrower_source(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("Date,Close\n2014-01-02,1\n")
    report = inspect_file(str(path), text=TextSettings())
    assert report.source == "daily_csv"
    assert "  from 2014-01-02 00:00:00 to 2014-01-02 00:00:00 UTC" in list(render_report(report))


def test_ingest_alone_says_what_it_needs(capsys):
    assert main(["ingest"]) == 2
    assert "ingest needs --settings and --out" in capsys.readouterr().err
    assert main(["ingest", "inspect", "x.csv", "--text", "zone"]) == 2
    assert "expected KEY=VALUE" in capsys.readouterr().err
