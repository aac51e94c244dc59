import pytest

from fabricated_study import STUDY, Fake, make_settings, write_study
from windtunnel.artifacts import read_artifact, write_artifact
from windtunnel.cli.main import build_parser
from windtunnel.cli.stages import report_partly
from windtunnel.records.trial import Sweep, Verdict
from windtunnel.settings.study import SweepStageSettings
from windtunnel.settings.sweep import SweepSettings

# The one with the lower loss is the slower.
FAKES = (Fake("tcn slow", 0.70, 900.0), Fake("tcn fast", 0.80, 1700.0), Fake("lost", verdict=Verdict.LOST))


@pytest.mark.parametrize(
    ("given", "title", "first"), [(True, "My own title", "tcn fast"), (False, STUDY, "tcn slow")]
)
def test_an_unfinished_sweeps_report_follows_the_studys_report_settings(tmp_path, capsys, given, title, first):
    study = write_study(tmp_path, FAKES)
    wanted = make_settings(title="My own title", rank_by="samples_per_s")
    (tmp_path / "report.yaml").write_text(wanted.model_dump_json())
    write_artifact(tmp_path / "run/sweep.partial.json", read_artifact(study["sweep"], Sweep))
    words = ["sweep", "--settings", "s.yaml", "--plan", str(study["plan"]), "--features", "m.json"]
    words += ["--out", str(tmp_path / "run/sweep.json"), *(["--report", str(tmp_path / "report.yaml")] * given)]
    settings = SweepStageSettings(study=STUDY, cluster=wanted.cluster, sweep=SweepSettings())
    report_partly(settings, build_parser().parse_args(words))
    printed = capsys.readouterr().out
    assert min(("tcn slow", "tcn fast"), key=printed.index) == first
    assert f"<title>{title}" in (tmp_path / "run/report.partial.html").read_text()
