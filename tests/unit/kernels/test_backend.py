"""Which implementation runs, and what is said of one that is not there."""

import subprocess
import sys

import pytest
import torch

from windtunnel.errors import ClusterError, SettingsError
from windtunnel.kernels.backend import VARIABLE, choose_backend, choose_namespace
from windtunnel.kernels.windows import rolling_mean


def test_auto_is_the_compiled_library_where_it_is_installed(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert choose_backend("auto", installed=True) == "cpp"
    assert choose_backend("auto", installed=False) == "reference"
    assert choose_backend("reference", installed=True) == "reference"


def test_auto_is_what_the_environment_says(monkeypatch):
    monkeypatch.setenv(VARIABLE, "reference")
    assert choose_backend("auto", installed=True) == "reference"
    assert choose_backend("cpp", installed=True) == "cpp"
    assert choose_namespace("auto") == "windtunnel_reference"
    assert torch.equal(rolling_mean(torch.ones(4), 2)[1:], torch.ones(3))
    monkeypatch.setenv(VARIABLE, "fortran")
    with pytest.raises(SettingsError, match="WINDTUNNEL_KERNELS=fortran: expected one of auto, reference, cpp"):
        choose_backend("auto")


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        ("cpp", "is not installed: run `make build`"),
        ("triton", "no operator has it yet"),
        ("cuda", "no operator has it"),
    ],
)
def test_a_backend_that_is_not_there_is_refused_with_the_reason(backend, message):
    with pytest.raises(ClusterError, match=f"kernels.backend={backend}: .*{message}"):
        choose_backend(backend, installed=False)


def test_a_login_node_can_ask_without_torch():
    code = "import sys; import windtunnel.kernels.backend; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
