import pytest

from windtunnel.cli.main import main


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_preview_lists_the_trials_of_a_study_and_writes_nothing(here, capsys):
    assert main(["plan", "quickstart", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "study quickstart: 8 trials in 2 shapes, 0 pruned" in out
    assert "transformer ddp2 bf16" in out
    assert list(here.iterdir()) == []


def test_a_preview_takes_settings_and_says_what_is_pruned_and_why(here, capsys):
    assert main(["plan", "quickstart", "training.batch_size=33", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "a batch of 33 does not divide over 2 data-parallel ranks: set training.batch_size=32" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plan", "quickstart", "parallelism.data=3", "--dry-run"], "no legal trial of 8"),
        (["plan", "nosuch", "--dry-run"], "study 'nosuch' is not known; known: "),
        (["plan", "quickstart", "training.stepz=4", "--dry-run"], "unknown setting 'training.stepz'"),
        (["plan", "quickstart"], "add --dry-run"),
        (["plan"], "needs a STUDY with --dry-run"),
    ],
)
def test_what_cannot_be_planned_is_one_message_and_exit_code_2(here, capsys, words, message):
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert out == ""
    assert "Traceback" not in err
