import os
import shutil
import sys

import pytest
from snakemake.cli import get_argument_parser, parse_config

from windtunnel.cli.main import main
from windtunnel.cli.sweep import parse_sweep_words, render_command, tell_start, wait_for_driver
from windtunnel.cli.typed import read_typed_command, render_typed
from windtunnel.cli.workflow import find_profile, find_snakefile, read_request, render_workflow
from windtunnel.errors import BusyError, CommandError, SettingsError
from windtunnel.launch.detach import JOB_ENV, DriverJob, Start, write_driver_job
from windtunnel.launch.place import COMMAND_ENV
from windtunnel.ledger.lease import take_lease


@pytest.fixture
def here(small_project, tmp_path, monkeypatch):
    monkeypatch.chdir(small_project)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("SNAKEMAKE_PROFILE", raising=False)
    return small_project


def request(project, *overrides, profile="", results="results"):
    return read_request("small", [*overrides, f"paths.results={results}"], profile=profile, project=project)


def test_options_and_settings_stand_in_any_order():
    args = parse_sweep_words(["mine", "training.steps=5", "--detach", "model=tcn"])
    assert (args.study, args.overrides, args.detach) == ("mine", ["training.steps=5", "model=tcn"], True)


@pytest.mark.parametrize("typed", ["nan", "inf", "-1", "1e12", "soon"])
def test_a_wait_that_would_never_end_is_refused(typed, capsys):
    with pytest.raises(SystemExit, match="2"):
        parse_sweep_words(["mine", f"--wait-driver={typed}"])
    assert f"'{typed}' is no time to wait: give seconds from 0 to 31536000" in capsys.readouterr().err
    assert parse_sweep_words(["mine", "--wait-driver=2.5"]).wait_driver == 2.5


def test_the_profile_is_what_fits_the_studys_cluster_or_what_is_typed(here, tmp_path, monkeypatch):
    assert request(here).profile.name == "local"
    assert request(here, "cluster=slurm").profile.name == "slurm"
    typed = request(here, profile="testbed")
    assert typed.composed.settings.cluster.network_interface == "eth0"
    monkeypatch.setenv("SNAKEMAKE_PROFILE", "testbed")
    assert request(here).profile.name == "testbed"
    main(["profile", "install", "slurm"])
    assert find_profile("slurm", here) == tmp_path / "snakemake/slurm"
    with pytest.raises(SettingsError, match=r"profile 'pbs' is not known, expected a folder with"):
        request(here, profile="pbs")


def test_the_workflow_is_asked_for_the_sweep_with_the_same_settings(here):
    asked = request(here, "training.steps=5")
    argv = render_workflow(asked, ["results/small/sweep.json"], project=here)
    assert argv[:3] == [sys.executable, "-m", "snakemake"]
    assert argv[-2:] == ["--", "results/small/sweep.json"]
    assert "study=small" in argv
    assert 'overrides=["training.steps=5", "paths.results=results"]' in argv
    assert render_command(asked) == "windtunnel sweep small training.steps=5 paths.results=results"


@pytest.mark.parametrize("own", [True, False])
def test_snakemake_takes_the_settings_for_settings_whoevers_workflow_file_it_is(here, tmp_path, own):
    project = shutil.copytree(here, tmp_path / "project")
    if own:
        (project / "conf/workflow.yaml").write_text("studies: [small]\n")
    argv = render_workflow(request(project, "training.steps=5"), ["results/small/sweep.json"], project=project)
    args = get_argument_parser().parse_args(argv[3:])
    config = parse_config(args.config)
    assert config == {"study": "small", "overrides": ["training.steps=5", "paths.results=results"]}
    assert [path.name for path in args.configfile or ()] == ([] if own else ["workflow.yaml"])
    assert list(args.targets) == ["results/small/sweep.json"]


def test_a_projects_own_workflow_comes_before_ours(tmp_path):
    assert find_snakefile(tmp_path).parent != tmp_path
    (tmp_path / "Snakefile").touch()
    assert find_snakefile(tmp_path) == tmp_path / "Snakefile"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sweep", "nosuch"], "study 'nosuch' is not known"),
        (["sweep", "small", "training.stepz=4"], "unknown setting 'training.stepz'"),
        (["sweep", "small", "--detach", "--driver=sbatch"], "two ways to the same end"),
        (
            ["sweep", "small", "--driver=sbatch"],
            "--driver=sbatch needs Slurm, but study small has",
        ),
        (["sweep", "small", "parallelism.data=3"], "does not divide over 3"),
        (["sweep", "small", "sweep.objective=test_loss"], "'test_loss' is not known, expected one of validation_"),
    ],
)
def test_what_cannot_be_swept_is_one_message_before_anything_starts(here, capsys, words, message):
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert (out, "Traceback" in err) == ("", False)
    assert not (here / "results").exists()


def test_help_is_of_what_people_type(capsys):
    for words in (["sweep", "-h"], ["sweep", "small", "--help"]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
        assert "--detach" in capsys.readouterr().out


def test_a_sweep_of_nothing_asks_for_a_study(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["sweep", "--detach"])
    assert ended.value.code == 2
    assert "name a study" in capsys.readouterr().err


def test_a_program_that_this_machine_lacks_is_refused(here, capsys):
    words = ["workload=command", "workload.name=prog", "workload.argv=[nosuchprog]"]
    assert main(["sweep", "small", *words]) == 2
    assert "there is no program 'nosuchprog' on PATH" in capsys.readouterr().err


def test_a_driver_that_lives_or_waits_is_named(here, tmp_path, monkeypatch):
    asked = request(here, results=tmp_path)
    wait_for_driver(asked, patience_s=0)
    lease = take_lease(asked.folder / ".lease", "study small")
    with pytest.raises(BusyError, match=f"study small is driven by pid {os.getpid()} on host"):
        wait_for_driver(asked, patience_s=0)
    lease.release()
    squeue = tmp_path / "squeue"
    squeue.write_text("#!/bin/sh\necho '77|PENDING||Priority|windtunnel-driver-small'\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    write_driver_job(asked.folder, DriverJob("77", "log", "again"))
    with pytest.raises(BusyError, match="already has a driver's job, 77"):
        wait_for_driver(asked, patience_s=0)
    monkeypatch.setenv(JOB_ENV, "77")
    wait_for_driver(asked, patience_s=0)


@pytest.mark.parametrize(
    ("start", "told"),
    [
        (Start(drives=True), "study small is driven by pid 12, and this login may end"),
        (Start(drives=False), "pid 12 has not begun to drive study small within 60 s; its log is "),
        (Start(drives=False, code=0), "study small had nothing left to run"),
    ],
)
def test_whether_a_detached_driver_drives_is_told_as_it_is(here, capsys, start, told):
    assert tell_start(request(here), 12, start) == 0
    out = capsys.readouterr().out
    assert told in out
    assert ("is driven by" in out) == start.drives


def test_a_detached_driver_that_failed_is_told_with_its_last_words(here):
    asked = request(here)
    asked.folder.mkdir(parents=True)
    (asked.folder / "driver.log").write_text("first\nno such node\n")
    with pytest.raises(CommandError, match="ended at once with 3: no such node"):
        tell_start(asked, 12, Start(drives=False, code=3))


@pytest.mark.parametrize(
    ("words", "typed"),
    [
        (["/opt/python", "/opt/bin/snakemake", "--profile", "slurm"], "snakemake --profile slurm"),
        (["/opt/python", "-m", "snakemake", "--config", "study=a b"], "snakemake --config 'study=a b'"),
        (["/opt/python", "-m", "pytest"], ""),
        ([], ""),
    ],
)
def test_a_driver_is_started_again_as_it_was_typed(words, typed):
    assert render_typed(words) == typed


def test_what_was_typed_is_handed_down_and_otherwise_guessed(tmp_path, monkeypatch):
    monkeypatch.delenv(COMMAND_ENV, raising=False)
    assert read_typed_command(tmp_path / "mine") == "windtunnel sweep mine"
    monkeypatch.setenv(COMMAND_ENV, "windtunnel sweep mine --detach")
    assert read_typed_command(tmp_path / "mine") == "windtunnel sweep mine --detach"
