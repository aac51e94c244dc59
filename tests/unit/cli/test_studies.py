import re

import pytest

from windtunnel.cli.studies import check_studies, locate_input, read_studies
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


def test_all_these_are_users_mistakes():
    assert all(issubclass(kind, UserError) for kind in (ClusterError, InputFileError, SettingsError, StudyError))
