import json
from dataclasses import asdict
from html.parser import HTMLParser

import polars as pl
import pytest

from fabricated_study import Fake, make_settings, make_sweep, write_study
from windtunnel.artifacts import write_artifact
from windtunnel.errors import ArtifactError, StudyError
from windtunnel.ledger.log import append_event
from windtunnel.records.goodput import TIMELINE, Mark, Phase
from windtunnel.records.trial import Verdict
from windtunnel.report.run import run_report

FAKES = (
    Fake("tcn ddp1", 0.80, 900.0, attempts=2),
    Fake("tcn ddp2", 0.70, 1700.0),
    Fake("too big", verdict=Verdict.OOM, evidence="rank 1: tried to allocate <3 GiB>"),
)
LOADING = {"src", "href", "data", "action", "poster", "srcset"}


class Reader(HTMLParser):
    """What a page would load, its tags, and its text."""

    def __init__(self, text):
        super().__init__()
        self.loads, self.tags, self.words, self.skip = [], [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.skip = tag in ("script", "style")
        self.loads += [value for name, value in attrs if name in LOADING and not value.startswith("#")]

    def handle_data(self, data):
        if not self.skip:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(self.words)


@pytest.fixture
def study(tmp_path):
    return write_study(tmp_path, FAKES)


def report(inputs, **settings):
    run_report(make_settings(**settings), **inputs)
    return Reader(inputs["out"].read_text())


def test_page_loads_nothing_and_holds_plotly_once(study):
    page = report(study)
    assert page.loads == []
    assert {"link", "iframe", "object", "base"}.isdisjoint(page.tags)
    text = study["out"].read_text()
    assert "@import" not in text.split("</style>")[0]
    assert text.count("plotly.js v") == 1
    assert page.tags.count("script") == 3


def test_page_has_every_part(study):
    text = report(study).text
    for words in (
        "Choose tcn ddp2: ",
        "rank 1: tried to allocate <3 GiB>",
        "7 ranks do not divide a batch of 64",
        "node n1 went down",
        "verified",
        "all_reduce",
        "matmul_fp32",
        "windtunnel.models.tcn.TCN",
        "prices.csv.gz",
        "made_up/sweep",
        "windtunnel.sweep/1",
        "d" * 64,
        "spine > leaf0",
        "Memory of the rank that held most",
        "Use of the devices while training",
        "Phases of training, measured on each rank",
    ):
        assert words in text, words
    assert "Not on this page" not in text


def test_text_from_artifacts_is_escaped(tmp_path):
    hostile = "</script><script>alert('1')</script>"
    study = write_study(tmp_path, (Fake(hostile, 0.7), Fake("b", verdict=Verdict.FAILED, evidence=hostile)))
    page = report(study, title=hostile)
    assert page.tags.count("script") == 3
    assert hostile in page.text
    assert hostile not in study["out"].read_text()


def test_terminal_shows_the_ranking_and_the_paths(study, capsys):
    report(study)
    printed = capsys.readouterr().out
    assert printed.splitlines()[2].split()[1:3] == ["tcn", "ddp2"]
    assert str(study["out"]) in printed
    assert str(study["metrics"]) in printed


def test_parquet_holds_trials_steps_and_benchmark_tables(study):
    report(study)
    frame = pl.read_parquet(study["metrics"])
    assert dict(frame["table"].value_counts().iter_rows()) == {"meta": 1, "trials": 3, "steps": 43, "stages": 1}
    trials = frame.filter(pl.col("table") == "trials").sort("name")
    assert trials["choice.model"].to_list() == ["tcn ddp1", "tcn ddp2", "too big"]
    assert trials["verdict"].to_list() == ["COMPLETED", "COMPLETED", "OOM"]
    assert trials["rank"].to_list() == [2, 1, None]
    # 900 samples/s are 14.1 steps of 1 GFLOP, on two devices of 41.5 GFLOP/s.
    assert trials["mfu_measured"].to_list()[0] == pytest.approx(900 / 64 / (2 * 41.5))
    assert trials["hfu_measured"].to_list()[0] == pytest.approx(2 * 900 / 64 / (2 * 41.5))
    assert trials["mfu_sheet"].to_list() == [None, None, None]
    assert trials["tokens_per_s"].to_list()[0] == pytest.approx(9_000)
    assert trials["memory.peak_bytes"].to_list() == [5000, 5000, None]
    assert trials["energy_j"].to_list() == [77.0, 77.0, None]
    assert trials["step_phase_s.forward"].to_list() == [pytest.approx(5 / 190), pytest.approx(5 / 190), None]
    assert trials["validation.loss"].to_list() == [0.8, 0.7, None]
    assert trials["node_hours_lost"].to_list() == [pytest.approx(260 / 3600), 0.0, pytest.approx(0.1)]
    stage = frame.filter(pl.col("table") == "stages").row(0, named=True)
    assert (stage["stage"], stage["wall_s"], stage["cpu_s"], stage["max_rss_mib"]) == (
        "made_up/sweep",
        12.5,
        11.9,
        210.5,
    )
    assert frame.filter(pl.col("table") == "meta")["schema"].item() == "windtunnel.metrics/1"


def test_parquet_of_an_empty_study_has_the_same_types(tmp_path):
    full, empty = write_study(tmp_path / "full", FAKES), write_study(tmp_path / "empty", ())
    report(full)
    assert "no trial has been run yet" in report({**empty, "benchmarks": ()}).text
    full_schema, empty_schema = (pl.read_parquet_schema(study["metrics"]) for study in (full, empty))
    assert empty_schema.items() <= full_schema.items()
    assert "wall_s" in empty_schema


def test_missing_inputs_give_a_page_that_names_them(study):
    study["topology"].unlink()
    study["latency"].write_text("{ not json")
    page = report({**study, "checkpoints": None, "device": None, "benchmarks": (study["out"].with_name("no.tsv"),)})
    assert "Not on this page" in page.text
    for words in (
        "topology.json does not exist",
        "latency.json is damaged",
        "checkpoints, device: not passed to the report",
        "time of no: ",
    ):
        assert words in page.text, words
    assert "Choose tcn ddp2: " in page.text


def test_a_missing_plan_and_sweep_give_a_page_too(study):
    study["plan"].unlink()
    study["sweep"].unlink()
    text = report(study).text
    assert "No recommendation: no trial has been run yet." in text
    assert "sweep.json does not exist" in text


def test_a_partial_sweep_is_read_in_place_of_the_finished_one(tmp_path):
    study = write_study(tmp_path, FAKES[:1], planned=(Fake("not yet"),))
    study["sweep"].unlink()
    write_artifact(study["sweep"].with_name("sweep.partial.json"), make_sweep(FAKES[:1], tmp_path / "trials"))
    text = report(study).text
    assert "Choose tcn ddp1: " in text
    assert "1 of 2 trials have no final verdict yet: the ranking may still change" in text
    assert "not yet" in text


def test_an_interrupted_trial_counts_as_open(tmp_path):
    study = write_study(tmp_path, (FAKES[1], Fake("stopped", verdict=Verdict.CANCELLED), FAKES[2]))
    assert "1 of 3 trials have no final verdict yet" in report(study).text


def test_no_completed_trial_gives_a_page_without_a_recommendation(tmp_path):
    study = write_study(tmp_path, (FAKES[2],))
    page = report(study)
    assert "No recommendation: none of 1 trials completed." in page.text
    assert "Choose " not in page.text


def test_a_choice_whose_checkpoint_is_damaged_is_cautioned(tmp_path):
    text = report(write_study(tmp_path, (Fake("a", verified=False), Fake("b", 0.95)))).text
    assert "the final checkpoint of a did not verify: shard 0 has 12 bytes, expected 16" in text


def test_a_damaged_sweep_stops_the_stage(study):
    study["sweep"].write_text("{")
    with pytest.raises(ArtifactError, match="damaged"):
        report(study)
    assert not study["out"].exists()


def test_the_sweep_of_another_study_is_refused_by_name(study):
    document = json.loads(study["sweep"].read_text())
    document["content"]["study"] = "other"
    study["sweep"].write_text(json.dumps(document))
    with pytest.raises(StudyError, match="'other', expected 'made_up'"):
        report(study)


def test_facts_past_their_age_are_warned_of(study):
    document = json.loads(study["device"].read_text())
    document["provenance"]["created"] = "2020-01-01T00:00:00+00:00"
    study["device"].write_text(json.dumps(document))
    assert "device.json is" in report(study).text
    assert "topology.json is" not in report(study).text


def test_where_the_time_of_all_attempts_went_stands_beside_their_cost(study):
    assert "Where the time went" not in report(study).text  # no ledger tells it
    trial_dir = next(study["sweep"].parent.parent.glob("trials/*/attempts/2")).parents[1]
    started = append_event(trial_dir, "started", attempt=1)
    append_event(trial_dir, "started", attempt=2)
    marks = [Mark(Phase.TRAIN, started.at + 10.0, 0), Mark(Phase.DRAIN, started.at + 60.0, 100)]
    lines = "".join(json.dumps(asdict(mark)) + "\n" for mark in marks)
    (trial_dir / "attempts/1" / TIMELINE).write_text(lines)
    words = report(study).words
    table = words[words.index("Where the time went, measured over all attempts") :]
    assert [word.strip() for word in table if word.strip()][1:8] == [
        "Trial", "Wall time", "New steps/s", "Productive", "Start-up", "Drain", "Unknown"
    ]  # fmt: skip
