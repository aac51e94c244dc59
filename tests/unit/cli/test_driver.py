import signal
import subprocess
import sys

import pytest
from snakemake.exceptions import WorkflowError

from windtunnel.cli.driver import DRIVER_FOLDER, hold_studies, open_studies
from windtunnel.cli.studies import Studies
from windtunnel.ledger.lease import take_lease

LOSES_ITS_LEASE = """
import sys, time
from pathlib import Path
from windtunnel.cli import driver
from windtunnel.cli.studies import Studies
from windtunnel.ledger import lease

lease.BEAT_EVERY_S = 0.05
driver.hold_studies(Studies({"mine": None}, {}, sys.argv[1], sys.argv[1]))
Path(sys.argv[1], "mine", driver.DRIVER_FOLDER, "2").touch()
time.sleep(60)
"""


def test_an_error_of_ours_is_snakemakes_own_with_the_same_message(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorkflowError, match="study 'nope' is not known; known: quickstart"):
        open_studies({"study": "nope"}, check=True)
    lease = take_lease(tmp_path / "mine" / DRIVER_FOLDER, "study mine")
    with pytest.raises(WorkflowError, match=r"^study mine is driven by pid"):
        hold_studies(Studies({"mine": None}, {}, str(tmp_path), str(tmp_path)))
    lease.release()


def test_a_driver_that_lost_its_study_to_another_ends(tmp_path):
    argv = [sys.executable, "-c", LOSES_ITS_LEASE, str(tmp_path)]
    finished = subprocess.run(argv, capture_output=True, text=True, timeout=50)
    assert finished.returncode == -signal.SIGTERM
    assert "windtunnel: study mine was taken over by another process" in finished.stderr
