import pytest

from windtunnel.cli.compose import (
    VARIED_VALUES,
    check_study_name,
    compose_candidates,
    compose_study,
    cut_trial,
    cut_values,
)
from windtunnel.errors import SettingsError, StudyError
from windtunnel.identity import trial_id
from windtunnel.records.plan import Identity

IDENTITY = Identity("d" * 64, "s" * 64, "2.13.0")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_quickstart_is_two_models_by_two_layouts(project_dir):
    candidates = compose_candidates("quickstart", project=project_dir)
    assert [candidate.choices for candidate in candidates] == [
        {"model": model, "parallelism": layout} for model in ("tcn", "transformer") for layout in ("single", "ddp")
    ]
    assert [candidate.settings.parallelism.data for candidate in candidates] == [1, 2, 1, 2]


def test_an_override_of_what_a_study_varies_fixes_it(project_dir):
    overrides = ["model=tcn", "training.precision=bf16"]
    candidates = compose_candidates("quickstart", overrides, project=project_dir)
    assert {candidate.choices["model"] for candidate in candidates} == {"tcn"}
    assert {candidate.settings.training.precision for candidate in candidates} == {"bf16"}
    assert cut_values(compose_study("quickstart", overrides, project=project_dir), overrides) == {}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["training.stepz=3"], r"unknown setting 'training.stepz' \(known in training: accumulate, async_.*steps"),
        (["+training.stepz=3"], r"unknown setting 'training.stepz' \(known here: accumulate, async_.*steps"),
        (["modl=tcn"], r"unknown setting 'modl' \(known in a study: .*model"),
        (["model=mlp"], r"unknown option 'mlp' of group 'model' \(known: tcn, transformer\)"),
        (["training.steps=many"], "'training.steps' = 'many': Input should be a valid integer"),
        (["training.steps"], "training.steps"),
    ],
)
def test_a_wrong_override_is_named_with_what_is_known(small_project, overrides, message):
    with pytest.raises(SettingsError, match=message):
        compose_study("small", overrides, project=small_project)


def test_an_unknown_study_is_named_with_the_known_ones(project_dir):
    with pytest.raises(StudyError, match=r"'nope' is not known; known: quickstart, ticks; or write conf/study/nope"):
        compose_study("nope", project=project_dir)


def test_a_study_cannot_have_the_name_of_a_folder_of_results(project_dir):
    with pytest.raises(StudyError, match="call it something else"):
        check_study_name("shards", project_dir)


def test_a_space_with_an_empty_list_has_no_trials(project_dir):
    with pytest.raises(StudyError, match=r"has no trials: space.groups.model is empty"):
        compose_candidates("quickstart", ["space.groups.model=[]"], project=project_dir)


def test_a_time_limit_cannot_be_varied_for_it_is_no_part_of_a_trials_id(project_dir):
    with pytest.raises(
        StudyError, match=r"'cluster.time' cannot be varied: .* are one trial; set cluster.time itself"
    ):
        compose_candidates("quickstart", ["+space.values={cluster.time:[5,10]}"], project=project_dir)


def test_whatever_value_may_be_varied_is_part_of_a_trials_id(project_dir):
    trial = cut_trial(compose_study("quickstart", project=project_dir))
    ids = {trial_id(trial, IDENTITY, "")}
    for key in VARIED_VALUES:
        group, _, name = key.rpartition(".")
        part = getattr(trial, group) if group else trial
        value = "reference" if name == "backend" else getattr(part, name) + 1
        part = part.model_copy(update={name: value})
        ids.add(trial_id(trial.model_copy(update={group: part}) if group else part, IDENTITY, ""))
    assert len(ids) == 1 + len(VARIED_VALUES)


@pytest.mark.parametrize("space", ["+space.groups.cluster=[local]", "+space.values={data.max_rows:[1]}"])
def test_what_all_trials_share_cannot_be_varied(project_dir, space):
    with pytest.raises(StudyError, match="cannot be varied; these can: "):
        compose_candidates("quickstart", [space], project=project_dir)


def test_a_users_own_conf_goes_before_ours(tmp_path):
    write(tmp_path / "conf/training/quick.yaml", "defaults: [default, _self_]\nsteps: 7\n")
    write(tmp_path / "conf/study/own.yaml", "# @package _global_\ndefaults:\n  - override /training: quick\n")
    assert compose_study("own", project=tmp_path).training.steps == 7
    assert compose_study("quickstart", project=tmp_path).training.steps == 7


def test_the_site_file_sets_what_a_study_leaves_open(tmp_path):
    write(tmp_path / "conf/local/site.yaml", "partition: long\naccount: desk\ntime: 1-00:00:00\n")
    write(tmp_path / "conf/study/own.yaml", "# @package _global_\ncluster:\n  time: 2:00:00\n")
    cluster = compose_study("own", ["cluster=slurm"], project=tmp_path).cluster
    assert (cluster.partition, cluster.account, cluster.time, cluster.qos) == ("long", "desk", 120, "")


def test_an_unknown_name_in_the_site_file_is_refused(tmp_path):
    write(tmp_path / "conf/local/site.yaml", "partitoin: long\n")
    with pytest.raises(SettingsError, match=r"unknown setting 'partitoin' \(known here: account, .*partition"):
        compose_study("quickstart", project=tmp_path)


def test_a_configuration_file_that_is_not_yaml_is_the_users_mistake(tmp_path):
    write(tmp_path / "conf/study/own.yaml", "# @package _global_\ntraining: [1\n")
    with pytest.raises(SettingsError, match="not YAML"):
        compose_study("own", project=tmp_path)


def test_a_configuration_file_that_is_not_utf8_is_the_users_mistake(tmp_path):
    path = tmp_path / "conf/study/own.yaml"
    path.parent.mkdir(parents=True)
    path.write_bytes("# caf\u00e9\n".encode("latin-1"))
    with pytest.raises(SettingsError, match="not UTF-8"):
        compose_study("own", project=tmp_path)


@pytest.mark.parametrize("word", ["sweep=null", "training=5"])
def test_a_group_without_an_option_is_named(small_project, word):
    with pytest.raises(SettingsError, match=f"study 'small': {word}: a group takes the name of one of its options"):
        compose_study("small", [word], project=small_project)


@pytest.mark.parametrize("word", ["study=ticks", "+study=ticks"])
def test_another_study_does_not_run_under_a_studys_name(small_project, word):
    with pytest.raises(StudyError, match="another study under the name 'small'"):
        compose_study("small", [word], project=small_project)


def test_a_value_that_hydra_cannot_read_is_named_with_the_fix(small_project):
    with pytest.raises(SettingsError, match=r"into quotes: \"workload.name='é'\""):
        compose_study("small", ["workload.name=é"], project=small_project)


def test_a_space_that_is_too_large_is_refused_before_its_options_are_composed(project_dir):
    with pytest.raises(SettingsError, match=r"has 720,000 trials, of space.groups.model \(2\).*at most 100,000"):
        compose_candidates("quickstart", ["space.repeats=90000"], project=project_dir)
