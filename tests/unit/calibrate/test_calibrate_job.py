import pytest

from windtunnel.calibrate.run import run_calibrate
from windtunnel.errors import ClusterError
from windtunnel.settings.cluster import ClusterSettings


def test_a_slurm_partition_is_not_calibrated_from_outside(tmp_path, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(ClusterError, match="inside a job"):
        run_calibrate(ClusterSettings(kind="slurm", partition="gpu"), out=tmp_path / "device.json")
    assert not list(tmp_path.iterdir())
