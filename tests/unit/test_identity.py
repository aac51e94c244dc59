import subprocess
import sys
from dataclasses import replace

import pytest

from windtunnel.artifacts import hash_json, write_artifact
from windtunnel.cli.compose import compose_study, cut_trial
from windtunnel.errors import SettingsError
from windtunnel.identity import hash_program, hash_sources, hash_user_files, read_identity, trial_id
from windtunnel.records.data import Column, InputFile, ShardEntry, ShardManifest
from windtunnel.records.plan import Identity
from windtunnel.settings.workload import WorkloadSettings

IDENTITY = Identity("d" * 64, "s" * 64, "2.13.0")


@pytest.fixture
def trial(project_dir):
    return cut_trial(compose_study("quickstart", project=project_dir))


def with_cluster(trial, **values):
    return trial.model_copy(update={"cluster": trial.cluster.model_copy(update=values)})


def test_an_id_follows_settings_data_sources_torch_and_user_code(trial):
    base = trial_id(trial, IDENTITY, "")
    assert len(base) == 16
    others = [
        trial_id(trial.model_copy(update={"repeat": 1}), IDENTITY, ""),
        trial_id(with_cluster(trial, partition="long"), IDENTITY, ""),
        *(trial_id(trial, replace(IDENTITY, **{name: "x"}), "") for name in vars(IDENTITY)),
        trial_id(trial, IDENTITY, "u"),
    ]
    assert len({base, *others}) == 1 + len(others)


def test_what_only_pays_for_a_trial_or_bounds_it_is_not_in_its_id(trial):
    dearer = with_cluster(trial, cost_per_node_hour=9.0, account="desk", qos="high", time=5, probe_nodes=4)
    assert trial_id(dearer, IDENTITY, "") == trial_id(trial, IDENTITY, "")


def test_where_raw_files_lay_is_not_in_the_datas_identity(tmp_path):
    shard = ShardEntry("a.h5", "a", 10, 100, "f" * 64, 0, 9)
    manifests = [
        ShardManifest("features", "d", "daily", (Column("time_ns", "int64"),), (entry,), (raw,), "")
        for entry, raw in (
            (shard, InputFile("/one/a.csv", 5, "e" * 64, 10, 10, 0)),
            (shard, InputFile("/two/a.csv", 5, "e" * 64, 10, 10, 0)),
            (replace(shard, sha256="0" * 64), InputFile("/one/a.csv", 5, "e" * 64, 10, 10, 0)),
        )
    ]
    here, there, other = (read_identity(write_artifact(tmp_path / "MANIFEST.json", item)) for item in manifests)
    assert here == there
    assert here.data_sha256 != other.data_sha256


def test_our_own_models_have_no_user_code():
    assert hash_user_files("windtunnel.models.tcn.TCN", "/nowhere") == ""


def test_user_code_is_the_module_and_what_it_imports_beside_it(tmp_path):
    (tmp_path / "layers").mkdir()
    (tmp_path / "layers/__init__.py").touch()
    (tmp_path / "layers/blocks.py").write_text("from .scale import SCALE\n")
    (tmp_path / "layers/scale.py").write_text("SCALE = 1\n")
    (tmp_path / "my_model.py").write_text("import json\nfrom layers import blocks\n")
    (tmp_path / "unrelated.py").write_text("A = 1\n")
    base = hash_user_files("my_model.MyModel", str(tmp_path))
    (tmp_path / "unrelated.py").write_text("A = 2\n")
    assert hash_user_files("my_model.MyModel", str(tmp_path)) == base
    (tmp_path / "layers/scale.py").write_text("SCALE = 2\n")
    assert hash_user_files("my_model.MyModel", str(tmp_path)) != base


def test_modules_that_import_each_other_are_hashed_once(tmp_path):
    (tmp_path / "a.py").write_text("import b\n")
    (tmp_path / "b.py").write_text("import a\n")
    assert len(hash_user_files("a.A", str(tmp_path))) == 64


def test_an_installed_package_counts_by_its_version():
    assert len(hash_user_files("yaml.YAMLObject", "")) == 64


def test_a_target_that_is_nowhere_is_refused(tmp_path):
    with pytest.raises(SettingsError, match=r"_target_ 'my_modl.M': no module 'my_modl' in .* nor installed"):
        hash_user_files("my_modl.M", str(tmp_path))


def test_a_module_that_a_users_package_lacks_is_refused(tmp_path):
    (tmp_path / "layers").mkdir()
    (tmp_path / "layers/__init__.py").touch()
    with pytest.raises(SettingsError, match=r"no module 'layers.blocks' in .*: check its spelling"):
        hash_user_files("layers.blocks.Net", str(tmp_path))


def test_a_user_file_that_does_not_parse_is_refused(tmp_path):
    (tmp_path / "my_model.py").write_text("class M(:\n")
    with pytest.raises(SettingsError, match=r"my_model.py is not valid Python: .* in line 1"):
        hash_user_files("my_model.M", str(tmp_path))


def test_hashing_sources_loads_none_of_them():
    code = (
        "import sys; from windtunnel.identity import hash_sources; hash_sources();"
        "print([name for name in ('torch', 'mpi4py', 'windtunnel.training') if name in sys.modules])"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "[]"
    assert len(hash_sources()) == 64


def write_program(folder, **workload):
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "conf").mkdir(exist_ok=True)
    (folder / "conf/a.json").write_text("{}")
    return WorkloadSettings(kind="command", **{"argv": ("./run.sh", "--lr={lr}"), **workload})


def test_a_programs_files_are_its_own_and_those_that_are_named(tmp_path):
    workload = write_program(tmp_path, files=("conf",))
    base = hash_program(workload, str(tmp_path))
    (tmp_path / "other.txt").write_text("unrelated")
    assert hash_program(workload, str(tmp_path)) == base
    (tmp_path / "conf/a.json").write_text("[1]")
    named = hash_program(workload, str(tmp_path))
    (tmp_path / "run.sh").write_text("#!/bin/sh\necho\n")
    assert len({base, named, hash_program(workload, str(tmp_path))}) == 3


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ({"argv": ("./no.sh",)}, "there is no program './no.sh'"),
        ({"argv": ("python3", "no.py")}, "there is no file 'no.py'"),
        ({"argv": ("/usr/bin/python3.11", "no.py", "-v")}, "there is no file 'no.py'"),
        ({"argv": ("conf/a.json",)}, "cannot be executed: chmod"),
        ({"files": ("gone.txt",)}, "workload.files: there is no 'gone.txt'"),
        ({"directory": "nowhere"}, "workload.directory='nowhere': no folder"),
    ],
)
def test_a_program_that_is_not_there_is_refused(tmp_path, workload, message):
    with pytest.raises(SettingsError, match=message):
        hash_program(write_program(tmp_path, **workload), str(tmp_path))


def test_a_containers_program_need_not_be_on_the_host(tmp_path):
    workload = write_program(tmp_path, argv=("/opt/bench/run", "./in-image"))
    assert hash_program(workload, str(tmp_path), on_host=False)


def test_a_program_elsewhere_counts_by_its_name(tmp_path):
    assert hash_program(write_program(tmp_path, argv=("/bin/sh",)), str(tmp_path)) == hash_json([])
