import re
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from fake_trials import make_trial
from windtunnel.launch.jobs import CallExecutor, render_script
from windtunnel.launch.line import BEHIND
from windtunnel.launch.shapes import cut_arrays, cut_packs, render_parameters
from windtunnel.records.plan import PlannedTrial, Shape
from windtunnel.settings.cluster import ClusterSettings

SHAPE = Shape(2, 4, 3, 4, 8192, 90, "gpu", account="desk", qos="night", constraint="ib")
ODD = replace(
    SHAPE,
    partition="gpu:a100+",
    account="007",
    constraint="ib&a100",
    gpu_type="a100",
    flags=(("comment", """it's a "b" #c \\d $HOME"""), ("exclude", "n9"), ("exclusive", ""), ("no-requeue", "")),
)
SITE = ClusterSettings(kind="slurm", partition="gpu", modules=("gcc/13", "cuda/12.6"))
HOOK = ClusterSettings(kind="slurm", partition="gpu", setup=("source /etc/site.sh", "export A='b c'"))
HERE = Path(__file__).parent


def test_the_array_script_asks_for_the_shape_and_runs_the_supervisor_once() -> None:
    parameters = render_parameters(SHAPE, SITE, name="windtunnel-night-14881f1a")
    script = render_script(parameters, tasks=3, folder=Path("/results/night/jobs"))
    assert hide_python(script) == (HERE / "golden_array.sh").read_text()


def test_odd_names_flags_and_a_sites_hook_stand_in_the_script_as_they_were_given() -> None:
    parameters = render_parameters(ODD, HOOK, name="windtunnel-night-14881f1a", trials=4, exclude=("n1", "n2"))
    script = render_script(parameters, tasks=1, folder=Path("/my results/jobs"))
    assert hide_python(script) == (HERE / "golden_odd.sh").read_text()


@pytest.mark.skipif(shutil.which("srun") is None, reason="submitit's Slurm executor wants srun on PATH")
def test_what_is_rendered_is_what_is_submitted(tmp_path: Path) -> None:
    parameters = render_parameters(ODD, HOOK, name="x")
    executor = CallExecutor(tmp_path)
    executor.update_parameters(**parameters)
    submitted = executor._make_submission_file_text(executor._submitit_command_str, "")
    assert submitted == render_script(parameters, tasks=1, folder=tmp_path)


def test_a_rendered_script_is_what_bash_can_read() -> None:
    parameters = render_parameters(ODD, HOOK, name="x")
    script = render_script(parameters, tasks=2, folder=Path("/it's/jobs"))
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
    assert shlex.split(script.splitlines()[-1])[-1] == "/it's/jobs"


@pytest.mark.parametrize("value", ["NONE", "HOME,PATH"])
def test_a_job_that_gets_no_variables_of_the_login_node_still_gives_its_ranks_its_own(value: str) -> None:
    bare = replace(SHAPE, flags=(("export", value),))
    script = render_script(render_parameters(bare, HOOK, name="x"), tasks=1, folder=Path("/jobs"))
    assert f"#SBATCH --export={value}" in script
    assert script.index("unset SLURM_EXPORT_ENV") < script.index("source /etc/site.sh")
    assert "SLURM_EXPORT_ENV" not in render_script(render_parameters(SHAPE, HOOK, name="x"), tasks=1, folder=HERE)


def test_a_successor_waits_for_the_jobs_of_its_name_and_is_never_requeued_whatever_the_shape_asks() -> None:
    shape = replace(SHAPE, flags=(("dependency", "afterok:7"), ("requeue", ""), ("exclude", "n9")))
    parameters = render_parameters(shape, SITE, name="x", exclude=("n1",), options=BEHIND)
    options = parameters["additional_parameters"]
    assert (options["dependency"], options["no-requeue"], options["exclude"]) == ("singleton", True, "n9,n1")
    assert "requeue" not in options
    assert "#SBATCH --no-requeue\n" in render_script(parameters, tasks=1, folder=Path("/jobs"))


def test_what_is_empty_is_left_to_slurm() -> None:
    bare = replace(SHAPE, gpus_per_node=0, account="", qos="", constraint="")
    plain = render_parameters(bare, ClusterSettings(kind="slurm", partition="gpu"), name="x")
    assert set(plain["additional_parameters"]) == {"partition", "mem", "signal", "requeue"}
    assert plain["setup"] is None
    script = render_script(plain, tasks=1, folder=Path("/jobs"))
    assert not re.search(r"=(''|\"\"|)$", script, re.MULTILINE)


@pytest.mark.parametrize(
    ("flag", "ours"),
    [
        (("mem-per-cpu", "2G"), "mem"),
        (("gpus-per-task", "1"), "gpus-per-node"),
        (("gres", "gpu:a100:4"), "gpus-per-node"),
        (("no-requeue", ""), "requeue"),
    ],
)
def test_a_flag_that_says_the_same_stands_instead_of_ours(flag: tuple[str, str], ours: str) -> None:
    options = render_parameters(replace(SHAPE, flags=(flag,)), SITE, name="x")["additional_parameters"]
    assert ours not in options
    assert options[flag[0]] == (flag[1] or True)


def test_a_short_trial_is_warned_in_proportion() -> None:
    parameters = render_parameters(replace(SHAPE, time_min=1), SITE, name="x")
    assert parameters["additional_parameters"]["signal"] == "B:TERM@10"


def test_trials_of_one_shape_share_an_array_in_order() -> None:
    small = [make_trial(name) for name in "ab"]
    large = [make_trial(name, ranks=2) for name in "cd"]
    arrays = cut([small[0], large[0], small[1], large[1]], limit=10)
    assert arrays == [[("a",), ("b",)], [("c",), ("d",)]]


def test_an_array_holds_no_more_than_slurm_takes_and_begins_again_at_0() -> None:
    trials = [make_trial(str(number)) for number in range(1500)]
    packs = list(cut_packs(trials))
    assert [len(array) for array in cut_arrays(packs, limit=1001)] == [1001, 499]


def test_packs_hold_trials_of_one_shape_and_a_shorter_rest_is_an_array_of_its_own() -> None:
    trials = [make_trial(name) for name in "abcde"] + [make_trial("f", ranks=2)]
    assert cut(trials, per_job=2) == [[("a", "b"), ("c", "d")], [("e",)], [("f",)]]


def test_a_pack_asks_for_the_time_of_all_its_trials_and_holds_fewer_where_that_is_too_long() -> None:
    assert render_parameters(SHAPE, SITE, name="x", trials=3)["time"] == 3 * 90 + 1
    trials = [make_trial(name, time_min=5) for name in "abcd"]
    assert [len(pack) for pack in cut_packs(trials, per_job=4, max_time_min=15)] == [2, 2]
    assert [len(pack) for pack in cut_packs(trials, per_job=4, max_time_min=16)] == [3, 1]
    assert [len(pack) for pack in cut_packs(trials, per_job=4, max_time_min=3)] == [1, 1, 1, 1]


def hide_python(script: str) -> str:
    return re.sub(r"^exec .* -u", "exec /opt/python -u", script, flags=re.MULTILINE)


def cut(trials: list[PlannedTrial], *, per_job: int = 1, limit: int = 10) -> list[list[tuple[str, ...]]]:
    arrays = cut_arrays(list(cut_packs(trials, per_job=per_job)), limit=limit)
    return [[tuple(trial.name for trial in pack) for pack in array] for array in arrays]
