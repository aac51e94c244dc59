import os
import subprocess
import sys
from pathlib import Path

import pytest

from windtunnel.artifacts import write_artifact
from windtunnel.cli.main import _parse, main
from windtunnel.records.trial import Sweep


def test_a_users_mistake_is_one_message_and_exit_code_2(tmp_path, capsys):
    settings = tmp_path / "data.yaml"
    settings.write_text("dataset: a\nsource: daily_csv\nfiles: [a.csv]\nrowz: 3\n")
    assert main(["ingest", "--settings", str(settings), "--out", str(tmp_path / "MANIFEST.json")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"windtunnel: {settings}: unknown setting 'rowz' (known here: chunk_rows, ")
    assert "Traceback" not in err


def test_a_damaged_artifact_is_one_message_and_exit_code_1(tmp_path, capsys):
    sweep = tmp_path / "sweep.json"
    sweep.write_text("{")
    out = str(tmp_path / "checkpoints.json")
    assert main(["verify-checkpoints", "--study", "a", "--sweep", str(sweep), "--out", out]) == 1
    assert capsys.readouterr().err.startswith(f"windtunnel: {sweep} is damaged")


def test_a_place_that_cannot_be_written_is_one_message_and_exit_code_1(tmp_path, capsys):
    sweep = write_artifact(tmp_path / "sweep.json", Sweep("a", str(tmp_path), (), {}))
    words = ["verify-checkpoints", "--study", "a", "--sweep", str(sweep)]
    (tmp_path / "file").touch()
    assert main([*words, "--out", str(tmp_path / "file/checkpoints.json")]) == 1
    err = capsys.readouterr().err
    assert err.startswith(("windtunnel: File exists: ", "windtunnel: Not a directory: "))
    assert err.count("\n") == 1
    assert str(tmp_path / "file") in err


def test_overrides_may_stand_behind_an_option():
    args = _parse(["plan", "quickstart", "--dry-run", "training.steps=5"])
    assert args.study == "quickstart"
    assert args.overrides == ["training.steps=5"]


@pytest.mark.parametrize("words", [["plan", "quickstart", "--dryrun"], ["init", "a", "b"]])
def test_words_that_no_subcommand_knows_are_refused(words, capsys):
    with pytest.raises(SystemExit, match="2"):
        _parse(words)
    assert "unrecognized arguments" in capsys.readouterr().err


def test_the_command_runs_as_a_module_too():
    argv = [sys.executable, "-m", "windtunnel", "--version"]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout.startswith("windtunnel ")


def test_the_command_line_itself_loads_no_torch_no_mpi_and_no_hydra():
    code = (
        "import sys; from windtunnel.cli.main import build_parser; build_parser();"
        "print([name for name in ('torch', 'mpi4py', 'hydra', 'polars', 'submitit') if name in sys.modules])"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "[]"


def test_init_writes_a_project_and_refuses_a_folder_with_files(tmp_path, capsys):
    folder = tmp_path / "mine"
    assert main(["init", str(folder)]) == 0
    written = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {"Snakefile", "my_model.py", "conf/study/mine.yaml", "conf/model/mine.yaml", "README.md"} <= written
    assert main(["init", str(folder)]) == 2
    assert "not an empty folder: name a new one" in capsys.readouterr().err


def test_installing_a_profile_keeps_a_site_file_that_is_filled_in(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    site = tmp_path / "snakemake/slurm/site.yaml"
    assert main(["profile", "install", "slurm"]) == 0
    site.write_text("partition: long\n")
    assert main(["profile", "install", "slurm"]) == 0
    assert site.read_text() == "partition: long\n"
    assert (tmp_path / "snakemake/slurm/config.yaml").is_file()


def test_an_unknown_profile_is_named_with_the_known_ones(capsys):
    assert main(["profile", "install", "pbs"]) == 2
    assert "'pbs' is not known, expected one of: local, slurm, testbed" in capsys.readouterr().err


@pytest.mark.parametrize("override", ["training.stepz=3", "model=mlp"])
def test_train_refuses_a_wrong_override_in_one_message(project_dir, monkeypatch, capsys, override):
    monkeypatch.chdir(project_dir)
    assert main(["train", override]) == 2
    err = capsys.readouterr().err
    assert "known" in err
    assert "Traceback" not in err


def test_the_installed_profiles_explain_each_entry():
    for path in Path(__file__).parents[3].glob("cluster_profiles/*/config.yaml"):
        lines = [line for line in path.read_text().splitlines() if line and not line.startswith((" ", "#"))]
        assert all("#" in line for line in lines), path


@pytest.mark.parametrize("words", [["status"], ["--help"], ["plan", "nope", "--dry-run"]])
def test_a_reader_that_went_away_ends_every_subcommand_quietly(tmp_path, words):
    read_end, write_end = os.pipe()
    os.close(read_end)
    argv = [sys.executable, "-m", "windtunnel.cli.main", *words]
    # Both streams: the message of a mistake may have no reader either.
    errors = write_end if "nope" in words else subprocess.PIPE
    finished = subprocess.run(argv, stdout=write_end, stderr=errors, text=True, cwd=tmp_path, check=False)
    os.close(write_end)
    assert finished.returncode in (0, 141)  # argparse itself may have ignored it
    assert not finished.stderr
