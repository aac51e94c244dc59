from dataclasses import replace
from pathlib import Path

from fabricated_study import Fake, make_ranking, make_settings, make_sweep, write_study
from windtunnel.artifacts import write_artifact
from windtunnel.records.trial import Sweep, SweepEntry
from windtunnel.report.compare import rank_rows
from windtunnel.report.run import run_report

FAKES = (Fake("slow", loss=0.9), Fake("bare", loss=0.5))


def strip(entry: SweepEntry, *, bare: bool) -> SweepEntry:
    """The entry of a program that told no validation, and if `bare` no number at all but its loss."""
    assert entry.outcome is not None
    outcome = replace(entry.outcome, evaluations=(), checkpoint="", notes=("1 line of its metrics passed over",))
    nothing = {"samples_per_s": None, "step_s_median": None, "step_s_p90": None, "params": None, "peak_rss_mib": None}
    return replace(entry, outcome=replace(outcome, **nothing) if bare else outcome)


def strip_sweep(sweep: Sweep) -> Sweep:
    return replace(sweep, entries=tuple(strip(entry, bare=entry.name == "bare") for entry in sweep.entries))


def test_without_any_validation_programs_are_ranked_by_the_loss_that_they_told(tmp_path: Path, capsys) -> None:
    inputs = write_study(tmp_path, FAKES)
    inputs["sweep"] = write_artifact(inputs["sweep"], strip_sweep(make_sweep(FAKES, tmp_path / "trials")))
    run_report(make_settings(), **inputs)
    page, said = inputs["out"].read_text(), capsys.readouterr().out
    assert "Choose bare: its training loss of 0.5000 is the lowest of 2 configurations" in said
    assert "ranked by the last training loss that each told" in page
    assert "slow: 1 line of its metrics passed over" in page


def test_one_validation_in_a_study_keeps_the_criterion() -> None:
    rows = make_ranking(*FAKES).rows
    told = [replace(row, validation=None) if row.name == "bare" else row for row in rows]
    ranking = rank_rows(told, "validation_loss")
    assert (ranking.criterion, [candidate.name for candidate in ranking.candidates]) == ("validation_loss", ["slow"])


def test_a_leader_of_unknown_speed_is_not_left_for_a_faster_one() -> None:
    rows = make_ranking(*FAKES).rows
    bare = [
        replace(row, validation=None, outcome=replace(row.outcome, samples_per_s=None)) for row in rows if row.outcome
    ]
    ranking = rank_rows([bare[0], replace(rows[1], validation=None)], "validation_loss")
    assert ranking.recommendation is not None
    assert ranking.recommendation.chosen is ranking.recommendation.leader
