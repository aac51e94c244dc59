"""What sbatch of Slurm 22.05.8 wrote, word for word, and what is made of it."""

import os
from pathlib import Path

import pytest

from windtunnel.errors import ClusterError, CommandError, FullQueueError
from windtunnel.launch.jobs import estimate_start, submit_array
from windtunnel.launch.shapes import render_parameters
from windtunnel.records.plan import Shape
from windtunnel.settings.cluster import ClusterSettings

SHAPE = Shape(1, 1, 1, 0, 64, 5, "main")
POLICY = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
FAILED = "sbatch: error: Batch job submission failed: "


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (f"sbatch: error: AssocMaxSubmitJobLimit\n{FAILED}{POLICY}", FullQueueError, "now: AssocMaxSubmitJobLimit$"),
        (f"sbatch: error: QOSMaxSubmitJobPerUserLimit\n{FAILED}{POLICY}", FullQueueError, "PerUserLimit$"),
        (f"{FAILED}{POLICY}", FullQueueError, "violates accounting/QOS policy"),
        (f"{FAILED}Resource temporarily unavailable", FullQueueError, "temporarily unavailable"),
        (f"sbatch: error: QOSMaxNodePerJobLimit\n{FAILED}{POLICY}", ClusterError, r"\(QOSMaxNodePerJobLimit\)$"),
        (f"{FAILED}Invalid qos specification", ClusterError, "Invalid qos specification$"),
        (f"{FAILED}Unable to contact slurm controller (connect failure)", CommandError, "no answer from Slurm"),
    ],
)
def test_a_full_queue_a_refusal_and_a_silence_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, error: type[Exception], message: str
) -> None:
    put_sbatch(tmp_path, monkeypatch, words, code=1)
    parameters = render_parameters(SHAPE, ClusterSettings(kind="slurm", partition="main"), name="x")
    with pytest.raises(error, match=message):
        submit_array([("/bin/true",)], parameters, folder=tmp_path / "jobs")


def test_an_estimate_tells_when_and_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "sbatch: Job 4 to start at 2026-11-30T15:50:09 using 2 processors on nodes n[0,2] in partition main"
    put_sbatch(tmp_path, monkeypatch, words)
    estimate = estimate_start("#!/bin/bash\n")
    assert (estimate.start, estimate.nodes, estimate.refusal) == ("2026-11-30T15:50:09", "n[0,2]", "")


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (
            "allocation failure: Requested node configuration is not available",
            "allocation failure: Requested node configuration is not available",
        ),
        (f"sbatch: error: QOSMaxSubmitJobPerUserLimit\nallocation failure: {POLICY}", ""),
    ],
)
def test_an_estimate_tells_what_never_starts_and_not_what_is_only_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, refusal: str
) -> None:
    put_sbatch(tmp_path, monkeypatch, words, code=1)
    assert estimate_start("#!/bin/bash\n").refusal == refusal


def test_a_slurm_that_does_not_answer_gives_no_estimate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_sbatch(tmp_path, monkeypatch, "allocation failure: Unable to contact slurm controller", code=1)
    with pytest.raises(CommandError, match="no answer"):
        estimate_start("#!/bin/bash\n")


def put_sbatch(folder: Path, monkeypatch: pytest.MonkeyPatch, words: str, *, code: int = 0) -> None:
    (folder / "words").write_text(words + "\n")
    for name, script in {"sbatch": f"cat {folder}/words >&2; exit {code}", "srun": ""}.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
