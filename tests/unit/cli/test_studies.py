import re
import zipfile

import pytest

from windtunnel.cli.checks import locate_input
from windtunnel.cli.studies import check_studies, read_studies
from windtunnel.errors import ClusterError, InputFileError, SettingsError, StudyError, UserError


def read(project, **config):
    return read_studies({"studies": ["small"], **config}, project=project)


def changed(project, *overrides):
    """Settings files whose text an override changes."""
    before, after = read(project).texts, read(project, overrides=list(overrides)).texts
    assert before.keys() == after.keys()
    return {key for key in before if before[key] != after[key]}


def test_every_stage_has_a_settings_file(small_project):
    texts = read(small_project).texts
    names = {re.sub("-[0-9a-f]{8}$", "-KEY", key) for key in texts}
    stages = {f"small/{stage}" for stage in ("trace", "plan", "sweep", "latency", "report")}
    assert names == {"data/arch_daily", "features/arch_daily-KEY", "cluster/local"} | stages


@pytest.mark.parametrize(
    ("override", "files"),
    [
        ("training.steps=60", {"small/plan"}),
        ("training.batch_size=32", {"small/plan", "small/trace"}),
        ("sweep.strict=true", {"small/sweep"}),
        ("latency.samples=500", {"small/latency"}),
        ("report.title=Mine", {"small/report"}),
        ("data.max_rows=1000", {"data/arch_daily"}),
        ("cluster.cost_per_node_hour=2", {"small/plan", "small/sweep", "small/report"}),
    ],
)
def test_a_setting_reaches_only_the_stages_that_use_it(small_project, override, files):
    assert changed(small_project, override) == files


def test_two_studies_that_give_one_dataset_different_settings_are_refused(tmp_path):
    (tmp_path / "conf/study").mkdir(parents=True)
    for name, rows in (("one", 10), ("two", 20)):
        path = tmp_path / "conf/study" / f"{name}.yaml"
        path.write_text(f"# @package _global_\ndata:\n  max_rows: {rows}\n")
    with pytest.raises(StudyError, match=r"studies 'one' and 'two' give data/arch_daily different settings"):
        read_studies({"studies": ["one", "two"]}, project=tmp_path)


def test_a_study_on_the_command_line_takes_the_place_of_the_listed_ones(small_project):
    assert list(read(small_project, study="ticks").by_name) == ["ticks"]


def test_an_unknown_workflow_setting_is_refused(small_project):
    with pytest.raises(SettingsError, match=r"unknown workflow setting 'stduy' \(known: studies, study"):
        read(small_project, stduy="ticks")


def test_no_study_at_all_is_refused(small_project):
    with pytest.raises(StudyError, match=r"name one in conf/workflow.yaml"):
        read_studies({"studies": []}, project=small_project)


def test_an_illegal_layout_is_refused_before_anything_runs(small_project):
    studies = read(small_project, overrides="parallelism.data=3")
    with pytest.raises(StudyError, match=r"no legal trial of 1:\n  a batch of 64 does not divide over 3 .* set "):
        check_studies(studies, project=small_project)


def test_quickstart_passes_the_check(project_dir):
    check_studies(read_studies({"study": "quickstart"}, project=project_dir), project=project_dir)


def test_a_missing_raw_file_is_refused_before_anything_runs(small_project):
    studies = read(small_project, overrides="data.files=[nope.csv]")
    with pytest.raises(InputFileError, match=r"'nope.csv' does not exist \(looked for .*correct data.files"):
        check_studies(studies, project=small_project)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ("data.source=nope", "'data.source' = 'nope': Input should be 'daily_csv', 'lean_tick' or 'delimited'"),
        ("task.name=nope", "'task.name' = 'nope': Input should be 'direction_volatility'"),
        (
            "task.train_fraction=0.9",
            "task.train_fraction=0.9 and task.validation_fraction=0.15 leave nothing to test",
        ),
        (
            "features.min_periods=9",
            r"features.min_periods=9 is more than the shortest of .*=\[5, 20, 60\]: lower it to 5",
        ),
        (
            "features.reference=dax",
            "='dax' is no instrument of dataset 'arch_daily': set it to one of nasdaq, sp500, ",
        ),
        ("model._target_=no_module.Net", "_target_ 'no_module.Net': no module 'no_module' in .* check its spelling"),
        ("model._target_=windtunnel.models.tnc.TCN", "no module 'windtunnel.models.tnc' in .* check its spelling"),
    ],
)
def test_a_value_that_a_job_would_choke_on_is_refused_before_anything_runs(small_project, overrides, message):
    with pytest.raises(SettingsError, match=message):
        check_studies(read(small_project, overrides=overrides), project=small_project)


@pytest.mark.parametrize("overrides", ["kernels.backend=cuda", "+space.values={kernels.backend:[reference,cuda]}"])
def test_kernels_that_are_not_there_are_refused_before_anything_runs(small_project, overrides):
    with pytest.raises(ClusterError, match=r"kernels.backend=cuda: no operator has it yet: choose cpp, reference or"):
        check_studies(read(small_project, overrides=overrides), project=small_project)


def test_other_kernels_have_feature_shards_of_their_own(small_project):
    auto, plain = (
        next(iter(read(small_project, overrides=f"kernels.backend={backend}").by_name.values())).features_key
        for backend in ("auto", "reference")
    )
    assert auto != plain


def test_a_reference_named_as_ingest_names_it_is_taken(small_project):
    check_studies(read(small_project, overrides="features.reference=vix"), project=small_project)


def test_a_tick_files_instrument_is_known_from_its_name_alone(tmp_path):
    (tmp_path / "conf/study").mkdir(parents=True)
    study = "# @package _global_\ndefaults:\n  - override /data: lean_aig\n  - override /features: quotes\n"
    (tmp_path / "conf/study/own.yaml").write_text(study + "data:\n  files: [a.zip]\n")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("20131009_aig_Quote_Tick.csv", "")
    check_studies(read_studies({"study": "own"}, project=tmp_path), project=tmp_path)
    other = read_studies({"study": "own", "overrides": "features.reference=aig_trade"}, project=tmp_path)
    with pytest.raises(SettingsError, match=r"'aig_trade' is no instrument .* set it to one of aig_quote, or"):
        check_studies(other, project=tmp_path)


def test_one_study_may_stand_alone_on_the_command_line(small_project):
    assert list(read(small_project, studies="ticks").by_name) == ["ticks"]


def test_a_file_of_a_package_inside_a_package_is_refused(tmp_path):
    with pytest.raises(
        InputFileError, match=r"'package:a.b/c': 'a.b' is no top-level package, expected package:<name>/"
    ):
        locate_input("package:a.b/c", tmp_path)


def test_a_partition_without_any_slurm_is_refused_with_the_fix(small_project, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    studies = read(small_project, cluster="slurm")
    with pytest.raises(
        ClusterError, match=r"partition main is Slurm's, .* no scontrol on PATH: .* or set cluster=local"
    ):
        check_studies(studies, project=small_project)


def test_an_empty_raw_file_is_refused(tmp_path):
    (tmp_path / "a.csv").touch()
    with pytest.raises(InputFileError, match="is empty"):
        locate_input("a.csv", tmp_path)


def test_a_file_of_a_package_that_is_not_installed_is_refused(tmp_path):
    with pytest.raises(InputFileError, match=r"'nopackage' is not installed: pip install nopackage"):
        locate_input("package:nopackage/a.csv", tmp_path)


def test_a_partition_that_does_not_exist_is_refused(small_project, tmp_path, monkeypatch):
    scontrol = tmp_path / "scontrol"
    scontrol.write_text("#!/bin/sh\necho 'PartitionName=main State=UP Nodes=n[0-1] MaxTime=UNLIMITED TotalNodes=2'\n")
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    studies = read(small_project, cluster="slurm", overrides="cluster.partition=gpu")
    with pytest.raises(ClusterError, match=r"partition 'gpu' does not exist on this cluster \(known: main\)"):
        check_studies(studies, project=small_project)


def test_jobs_ask_slurm_for_what_the_site_sets_and_nothing_here(small_project):
    job = type("Wildcards", (), {"study": "small"})()
    on_slurm = read(small_project, cluster="slurm", overrides="cluster.account=desk")
    assert [on_slurm.job_setting(job, name) for name in ("partition", "account", "qos")] == ["main", "desk", None]
    assert read(small_project).job_setting(job, "partition") is None


def test_a_store_elsewhere_holds_what_studies_share(small_project):
    studies = read(small_project, overrides="paths.store=/srv/store")
    job = type("Wildcards", (), {"study": "small"})()
    assert studies.features_of(job).startswith("/srv/store/features/arch_daily-")
    assert studies.results == "results"


def test_a_studys_sources_follow_the_users_model_and_torch(tmp_path, monkeypatch):
    (tmp_path / "conf/study").mkdir(parents=True)
    model = "model:\n  name: mine\n  _target_: my_model.Net\n  args: {}\n"
    (tmp_path / "conf/study/own.yaml").write_text(f"# @package _global_\n{model}")
    monkeypatch.chdir(tmp_path)
    studies = read_studies({"study": "own"}, project=tmp_path)
    job = type("Wildcards", (), {"study": "own"})()
    found = []
    for text in ("class Net: ...\n", "class Net:\n    size = 1\n"):
        (tmp_path / "my_model.py").write_text(text)
        found.append(studies.sources_of(job))
    monkeypatch.setattr("importlib.metadata.version", lambda name: "9.9")
    found.append(studies.sources_of(job))
    assert len(set(found)) == 3


def test_all_these_are_users_mistakes():
    assert all(issubclass(kind, UserError) for kind in (ClusterError, InputFileError, SettingsError, StudyError))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (5, r"overrides=5 is no list of settings"),
        ("report.title=it's", r"cannot be split into words \(No closing quotation\): close its quotes"),
        ("+space.groups.model=[tcn,tcn]", "model names 'tcn' twice, which would be one trial: name it once"),
        ("+space.values.seed=[1,2,1]", "seed names 1 twice"),
    ],
)
def test_overrides_that_cannot_be_meant_are_refused(small_project, overrides, message):
    with pytest.raises(UserError, match=message):
        read(small_project, overrides=overrides)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("paths.results=/etc/passwd", "paths.results='/etc/passwd': /etc/passwd is no folder: name another one"),
        ("paths.store=/etc/passwd/deep", "paths.store='/etc/passwd/deep': /etc/passwd is no folder"),
        ("paths.results=", "paths.results is empty, expected a folder"),
    ],
)
def test_a_place_for_results_that_cannot_be_one_is_refused(small_project, override, message):
    with pytest.raises(SettingsError, match=message):
        check_studies(read(small_project, overrides=[override]), project=small_project)
