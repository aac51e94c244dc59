"""What monitoring reads of a trial: a text file for Prometheus, and the file that tells dcgm-exporter a GPU's job.

node_exporter's textfile collector reads `*.prom` of a folder; dcgm-exporter reads from its `--hpc-job-mapping-dir` a
file for each GPU, named by its index, with a job id in each line.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from windtunnel.artifacts import write_atomic
from windtunnel.ledger.tail import read_last_record
from windtunnel.settings.cluster import ClusterSettings

EVERY_S = 15.0
_GAUGES = {
    "step": ("windtunnel_step", "Optimizer steps done."),
    "loss": ("windtunnel_loss", "Training loss since the line before."),
    "samples_per_s": ("windtunnel_samples_per_second", "Samples trained a second, over all ranks."),
    "learning_rate": ("windtunnel_learning_rate", "Learning rate of the newest step."),
}


@dataclass(frozen=True)
class Labels:
    """Of every metric of one attempt."""

    trial: str
    attempt: int
    job_id: str

    def render(self) -> str:
        """In Prometheus' own syntax."""
        pairs = {"trial": self.trial, "attempt": str(self.attempt), "job": self.job_id}
        return ",".join(f'{name}="{_escape(value)}"' for name, value in pairs.items())


class Exporter:
    """Of one attempt; `look` is called all the while. A folder that cannot be written costs the trial nothing."""

    def __init__(self, folder: Path | None, labels: Labels, metrics: Path) -> None:
        self._path = folder / f"windtunnel-{labels.trial}.prom" if folder is not None else None
        self._labels = labels
        self._metrics = metrics
        self._at = float("-inf")

    def look(self) -> None:
        """Write anew what is older than `EVERY_S`."""
        if self._path is None or time.monotonic() - self._at < EVERY_S:
            return
        self._at = time.monotonic()
        try:
            write_atomic(self._path, render_metrics(self._labels, read_last_record(self._metrics)).encode())
        except OSError:
            pass

    def close(self) -> None:
        """Nothing is left of an attempt that has ended."""
        if self._path is not None:
            _remove(self._path)


def render_metrics(labels: Labels, record: Mapping[str, object]) -> str:
    """Prometheus' text format; what a record lacks is left out."""
    lines = []
    for field, (name, text) in _GAUGES.items():
        value = record.get(field)
        if isinstance(value, int | float):
            lines += [f"# HELP {name} {text}", f"# TYPE {name} gauge", f"{name}{{{labels.render()}}} {value}"]
    return "".join(f"{line}\n" for line in lines)


@contextmanager
def mapped_gpus(folder: Path | None, job_id: str, env: Mapping[str, str]) -> Iterator[None]:
    """Tell dcgm-exporter that this node's GPUs of the job are its own, while inside.

    A job's other nodes have no supervisor: a prolog does it there.
    """
    indexes = [word for word in env.get("SLURM_JOB_GPUS", "").split(",") if word.isdecimal()] if job_id else []
    paths = [folder / index for index in indexes] if folder is not None else []
    for path in paths:
        try:
            write_atomic(path, f"{job_id}\n".encode())
        except OSError:
            pass
    try:
        yield
    finally:
        for path in paths:
            _remove(path)


def open_exporter(cluster: ClusterSettings, labels: Labels, metrics: Path) -> Exporter:
    """As the cluster's settings say."""
    return Exporter(find_folder(cluster.prometheus_dir), labels, metrics)


def find_folder(setting: str) -> Path | None:
    """A folder of the node's, with its variables filled in; None where there is none to be."""
    return Path(os.path.expandvars(setting)) if setting else None


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        pass


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
