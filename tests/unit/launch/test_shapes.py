import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from submitit.slurm.slurm import SlurmExecutor

from fake_trials import make_trial
from windtunnel.launch.shapes import cut_arrays, render_parameters
from windtunnel.records.plan import Shape
from windtunnel.settings.cluster import ClusterSettings

SHAPE = Shape(2, 4, 3, 4, 8192, 90, "gpu", account="desk", qos="night", constraint="ib")
SITE = ClusterSettings(kind="slurm", partition="gpu", modules=("gcc/13", "cuda/12.6"))
GOLDEN = Path(__file__).parent / "golden_array.sh"


@pytest.mark.skipif(shutil.which("srun") is None, reason="submitit's Slurm executor wants srun on PATH")
def test_the_array_script_asks_for_the_shape_and_runs_the_supervisor_once() -> None:
    executor = SlurmExecutor("/results/night/jobs", python="exec /opt/python")
    executor.update_parameters(**render_parameters(SHAPE, SITE, name="windtunnel-night-14881f1a"))
    executor.parameters["map_count"] = 3
    script = executor._make_submission_file_text(executor._submitit_command_str, "")
    assert script == GOLDEN.read_text()


def test_what_is_empty_is_left_to_slurm() -> None:
    plain = render_parameters(
        replace(SHAPE, gpus_per_node=0, account="", qos="", constraint=""),
        ClusterSettings(kind="slurm", partition="gpu"),
        name="x",
    )
    assert not {"account", "qos", "constraint", "gpus_per_node"} & set(plain)
    assert plain["setup"] is None


def test_a_short_trial_is_warned_in_proportion() -> None:
    parameters = render_parameters(replace(SHAPE, time_min=1), SITE, name="x")
    assert parameters["additional_parameters"]["signal"] == "B:TERM@10"


def test_trials_of_one_shape_share_an_array_in_order() -> None:
    small = [make_trial(name) for name in "ab"]
    large = [make_trial(name, ranks=2) for name in "cd"]
    groups = list(cut_arrays([small[0], large[0], small[1], large[1]]))
    assert groups == [tuple(small), tuple(large)]


def test_an_array_holds_no_more_than_slurm_takes() -> None:
    trials = [make_trial(str(number)) for number in range(5)]
    assert [len(group) for group in cut_arrays(trials, limit=2)] == [2, 2, 1]
