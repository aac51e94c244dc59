import pytest

from windtunnel.perfmodel.estimate import Job
from windtunnel.perfmodel.hardware import find_device
from windtunnel.perfmodel.layout import Layout
from windtunnel.perfmodel.transformer import Transformer


@pytest.fixture
def gpt():
    """GPT-3 175B (Brown et al. 2020, table 2.1)."""
    return Transformer(96, 12288, 96, 96, 4 * 12288, 51_200, 2048)


@pytest.fixture
def make_job(gpt):
    """A job of `gpt` on A100s, by what its layout has besides one rank of each kind."""

    def make(model=gpt, dtype="fp16", device="A100-SXM-80GB", **layout):
        return Job(model, Layout(**layout), find_device(device), dtype)

    return make
