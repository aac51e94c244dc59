import pytest

from windtunnel.artifacts import write_artifact
from windtunnel.cli.batches import Batches
from windtunnel.cli.compose import compose_study
from windtunnel.cli.jobs import Inputs, Job, check_shared, make_inputs, plan_jobs, read_job
from windtunnel.cli.main import main
from windtunnel.cli.train import default_study
from windtunnel.errors import ClusterError, LayoutError, SettingsError, StudyError
from windtunnel.records.data import Column, ShardManifest


@pytest.fixture
def inputs(tmp_path):
    manifest = ShardManifest("features", "d", "daily", (Column("time_ns", "int64"),), (), (), "")
    return Inputs(write_artifact(tmp_path / "MANIFEST.json", manifest), None, tmp_path)


def job(project, *overrides):
    choices = dict(override.split("=") for override in overrides)
    return Job(compose_study("small", overrides, project=project), choices)


def test_a_job_is_told_apart_by_its_overrides_less_the_studys_name(small_project):
    settings = compose_study("small", project=small_project)
    read = read_job(settings.model_dump(mode="json"), "small", ["study=small", "+debug=fast", "model=tcn"])
    assert read.choices == {"debug": "fast", "model": "tcn"}
    assert read.settings == settings


def test_trials_are_named_by_what_varies_among_the_jobs(small_project, inputs):
    common = "training.steps=5"
    jobs = [job(small_project, common, f"training.learning_rate={rate}") for rate in ("0.1", "0.2")]
    names = [trial.name for trial in plan_jobs(jobs, inputs)]
    assert names == ["tcn single fp32 learning_rate=0.1", "tcn single fp32 learning_rate=0.2"]


def test_an_illegal_job_is_known_with_its_reason_before_any_is_submitted(small_project, inputs):
    legal, illegal = plan_jobs([job(small_project), job(small_project, "parallelism.data=3")], inputs)
    assert legal.name == "tcn single fp32"
    assert isinstance(illegal, LayoutError)
    assert "does not divide over 3" in str(illegal)


def test_a_multirun_cannot_vary_what_its_trials_share(small_project):
    jobs = [job(small_project), job(small_project, "features.min_periods=3")]
    with pytest.raises(StudyError, match=r"cannot vary features.\*: .* start one for each"):
        check_shared([each.settings for each in jobs])


def test_the_study_is_the_projects_first_or_quickstart(tmp_path):
    assert default_study(tmp_path) == "quickstart"
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/workflow.yaml").write_text("studies: [mine, other]\n")
    assert default_study(tmp_path) == "mine"


@pytest.mark.parametrize("data", [b"studies: [mine\n", "studies: [caf\u00e9]\n".encode("latin-1")])
def test_a_broken_workflow_file_is_the_users_mistake(tmp_path, data):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/workflow.yaml").write_bytes(data)
    with pytest.raises(SettingsError, match=r"workflow.yaml is not YAML in UTF-8: (?s:.*) mend it"):
        default_study(tmp_path)


def test_one_study_may_stand_alone_in_the_workflow_file(tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/workflow.yaml").write_text("studies: mine\n")
    assert default_study(tmp_path) == "mine"


def test_training_on_slurm_without_any_is_refused_before_the_workflow_starts(small_project, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(small_project)
    with pytest.raises(ClusterError, match="set cluster=local"):
        make_inputs(compose_study("small", ["cluster=slurm"], project=small_project))


def test_cfg_prints_the_composed_settings_and_trains_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--cfg", "job", "study=quickstart", "training.steps=7"]) == 0
    assert "steps: 7" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_a_batch_without_a_job_is_the_users_mistake(tmp_path):
    with pytest.raises(SettingsError, match="the multirun has no job"):
        Batches(tmp_path, command="").run([], number=0)
