import pytest

from windtunnel.cli.main import main
from windtunnel.cli.train import choose_launcher
from windtunnel.errors import SettingsError

STUDIES = {
    "plain": "training:\n  steps: 10\n",
    "ours": "defaults:\n  - override /hydra/launcher: windtunnel\ntraining:\n  steps: 10\n",
    "placed": "defaults:\n  - override /hydra/launcher: windtunnel\nhydra:\n  launcher:\n    partition: long\n",
    "foreign": "defaults:\n  - override /hydra/launcher: elsewhere\n",
}
ELSEWHERE = "# @package hydra.launcher\n_target_: somewhere.Else\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    for name, text in STUDIES.items():
        path = tmp_path / f"conf/study/{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# @package _global_\n{text}")
    launcher = tmp_path / "conf/hydra/launcher/elsewhere.yaml"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(ELSEWHERE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("words", [["study=plain"], ["study=ours"], ["study=plain", "hydra/launcher=windtunnel"]])
def test_trials_have_our_launcher_whether_it_is_named_or_not(here, words):
    assert choose_launcher(words, here) == [words[0], "hydra/launcher=windtunnel"]


@pytest.mark.parametrize("words", [["study=foreign"], ["study=plain", "hydra/launcher=elsewhere"]])
def test_another_launcher_is_refused_in_a_study_as_on_the_command_line(here, words):
    with pytest.raises(SettingsError, match="hydra/launcher=elsewhere cannot run these trials"):
        choose_launcher(words, here)


def test_a_launchers_setting_that_trials_would_not_follow_is_refused_with_what_they_follow(here, capsys):
    assert main(["train", "-m", "study=placed", "model=tcn,transformer"]) == 2
    assert "hydra.launcher.partition=long: set cluster.partition" in capsys.readouterr().err


def test_a_launcher_that_only_some_jobs_bring_is_refused(here, capsys):
    assert main(["train", "-m", "study=plain,placed"]) == 2
    assert "brings its own hydra/launcher or hydra.launcher.*" in capsys.readouterr().err


def test_a_study_that_names_a_launcher_is_still_planned_by_the_workflow(here, capsys):
    assert main(["plan", "ours", "--dry-run"]) == 0
    assert "study ours: 1 trial" in capsys.readouterr().out


def test_hydras_own_launcher_is_refused_where_someone_typed_it(here):
    with pytest.raises(SettingsError, match="hydra/launcher=basic cannot run these trials"):
        choose_launcher(["study=plain", "hydra/launcher=basic"], here)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("seed=glob(*)", "names no value"),
        ("seed=range(1,1e18)", "expected at most 100,000"),
        ("sweep=null", "sweep=null"),
    ],
)
def test_a_grid_that_cannot_be_run_is_refused_before_it_is_listed(here, capsys, word, message):
    assert main(["train", "-m", "study=plain", word]) == 2
    assert message in capsys.readouterr().err


def test_a_sampler_may_draw_from_a_range_of_any_size(here):
    sweeper = here / "conf/hydra/sweeper/sampler.yaml"
    sweeper.parent.mkdir(parents=True)
    sweeper.write_text("# @package hydra.sweeper\n_target_: somewhere.Sampler\n")
    words = ["study=plain", "hydra/sweeper=sampler", "seed=range(1,1e18)"]
    assert choose_launcher(words, here) == [*words, "hydra/launcher=windtunnel"]
