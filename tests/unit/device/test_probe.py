import json
import os
import subprocess
import sys
import time
from pathlib import Path

from windtunnel.device import probe
from windtunnel.device.probe import (
    FEW_GPU_FIELDS,
    Answer,
    ask_nvidia_smi,
    look_at_place,
    read_memory_limit_mib,
    read_xids,
)


def finished(code: int, stdout: str = "", stderr: str = ""):
    return subprocess.CompletedProcess([], code, stdout, stderr)


def test_as_a_script_it_prints_one_line_and_leaves_nothing_behind(tmp_path: Path) -> None:
    argv = [sys.executable, "-I", "-S", probe.__file__, str(tmp_path), "0"]
    env = {**os.environ, "SLURMD_NODENAME": "n7", "TMPDIR": str(tmp_path)}
    found = json.loads(subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout)
    assert (found["node"], found["cpus"]) == ("n7", len(os.sched_getaffinity(0)))
    assert abs(found["folder"]["skew_s"]) < 10
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_told_by_its_errno(tmp_path: Path) -> None:
    found = look_at_place(tmp_path / "gone", "x")
    assert (found["errno"], found["error"]) == ("ENOENT", "No such file or directory")


def test_a_look_that_hangs_is_late_and_holds_nobody_up(tmp_path: Path) -> None:
    began = time.monotonic()
    assert Answer(lambda: time.sleep(60), 0.05, tmp_path).wait() == {"path": str(tmp_path), "late": 0.05}
    assert time.monotonic() - began < 5


def test_a_driver_that_knows_fewer_fields_is_asked_for_fewer() -> None:
    answers = iter(
        [finished(2, 'Field "remapped_rows.pending" is not a valid field to query.'), finished(0, "0, a\n")]
    )
    found = ask_nvidia_smi(lambda *args, **kwargs: next(answers))
    assert found == {"fields": FEW_GPU_FIELDS, "rows": "0, a\n"}


def test_what_nvidia_smi_complains_of_is_kept_and_without_it_there_is_nothing_to_tell() -> None:
    def absent(*args: object, **kwargs: object) -> None:
        raise FileNotFoundError("nvidia-smi")

    lost = finished(15, "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.\n")
    problem = ask_nvidia_smi(lambda *args, **kwargs: lost)["problem"]
    assert problem == "nvidia-smi: Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost."
    assert ask_nvidia_smi(absent) == {}


def test_the_least_limit_of_the_control_groups_above_a_process_counts(tmp_path: Path) -> None:
    job = tmp_path / "slurm" / "job_7"
    (job / "step_0").mkdir(parents=True)
    (job / "memory.max").write_text(f"{512 << 20}\n")
    (job / "step_0" / "memory.max").write_text("max\n")
    assert read_memory_limit_mib("0::/slurm/job_7/step_0\n", tmp_path) == 512
    assert read_memory_limit_mib("0::/elsewhere\n", tmp_path) is None


def test_version_1_of_control_groups_has_its_limits_elsewhere(tmp_path: Path) -> None:
    job = tmp_path / "memory" / "slurm" / "job_7"
    job.mkdir(parents=True)
    (job / "memory.limit_in_bytes").write_text(f"{256 << 20}\n")
    assert read_memory_limit_mib("3:cpu:/slurm/job_7\n9:memory:/slurm/job_7\n", tmp_path) == 256


def test_faults_of_the_last_hour_are_read_from_the_kernels_log(tmp_path: Path) -> None:
    now_us, log = int(time.monotonic() * 1e6), tmp_path / "kmsg"
    old_us = now_us - int(2 * probe.XIDS_SINCE_S * 1e6)
    log.write_text(f"3,1,{old_us},-;NVRM: Xid 1\n3,2,{now_us},-;NVRM: Xid 2\n6,3,{now_us},-;usb 1-1: new device\n")
    assert read_xids(log) == ["NVRM: Xid 2"]
    assert read_xids(tmp_path / "forbidden") == []
