import os

import pytest

from windtunnel.cli.main import main

SCONTROL = r"""
case "$2" in
config) echo 'MaxArraySize = 3' ;;
partition) echo 'PartitionName=main MaxTime=2:00:00 Nodes=n[0-1] State=UP' ;;
node) for i in 0 1; do echo "NodeName=n$i CPUTot=8 RealMemory=16000 Gres=(null) State=IDLE"; done ;;
esac
"""
SBATCH = "echo 'sbatch: Job 4 to start at 2026-11-30T15:50:09 using 1 processors on nodes n0 in partition main' >&2"


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


@pytest.fixture
def slurm(here, monkeypatch):
    """Stand-ins for Slurm's commands, first on PATH."""
    folder = here / "bin"
    folder.mkdir()
    for name, script in {"scontrol": SCONTROL, "sbatch": SBATCH}.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return here


def test_a_sweeps_preview_shows_shapes_costs_and_the_very_scripts_and_writes_nothing(slurm, capsys):
    words = ["cluster=slurm", "cluster.partition=main", "cluster.sbatch={comment:odd}", "sweep.trials_per_job=2"]
    assert main(["sweep", "quickstart", *words, "--profile", "slurm", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "study quickstart: 8 trials to submit" in out
    assert "at most 8 node-hours: each trial once, to its time limit" in out
    assert out.count("#!/bin/bash") == 4  # of each shape 4 jobs of one trial, since two trials would take 2:01
    assert "#SBATCH --array=0-2%3" in out
    assert "#SBATCH --comment=odd" in out
    assert [path.name for path in slurm.iterdir()] == ["bin"]


def test_a_sweeps_preview_refuses_with_every_mistake_after_showing_them(slurm, capsys):
    words = ["cluster=slurm", "cluster.partition=main", "cluster.time=3:00:00", "sweep.budget_node_hours=1"]
    assert main(["sweep", "quickstart", *words, "--profile", "slurm", "--dry-run"]) == 2
    out, err = capsys.readouterr()
    for text in (out, err):
        assert "cluster.time=03:00:00 is past 02:00:00, the MaxTime of partition main" in text
        assert "past sweep.budget_node_hours=1" in text


def test_a_plans_preview_shows_what_it_may_cost(here, capsys):
    assert main(["plan", "quickstart", "cluster.cost_per_node_hour=2", "--dry-run"]) == 0
    assert "at most 8 node-hours (16.00 USD): each trial once" in capsys.readouterr().out


def test_a_space_with_several_mistakes_tells_them_all(here, capsys):
    (here / "conf/study").mkdir(parents=True)
    (here / "conf/study/mine.yaml").write_text(
        "# @package _global_\nspace:\n  groups: {model: [tcn]}\n  shapes:\n"
        "    - {when: {model: tnc}, time: 2:00:00}\n    - {when: {modell: tcn}, memory: 4G}\n"
    )
    assert main(["plan", "mine", "--dry-run"]) == 2
    err = capsys.readouterr().err
    assert "space.shapes[0].when.model='tnc' is none of its choices, which are: tcn" in err
    assert "space.shapes[1].when.modell is not varied by this study" in err
