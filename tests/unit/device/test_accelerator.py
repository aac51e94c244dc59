import pytest

from windtunnel.device.accelerator import count_accelerators, read_device
from windtunnel.device.cpu import read_cpu_name


@pytest.mark.skipif(count_accelerators() > 0, reason="this machine has an accelerator")
def test_without_an_accelerator_the_device_is_the_processor():
    device = read_device()
    assert (device.kind, device.name, device.count) == ("cpu", read_cpu_name(), 1)


@pytest.mark.gpu
@pytest.mark.skipif(count_accelerators() == 0, reason="no accelerator here")
def test_an_accelerator_has_a_name_and_memory():
    device = read_device()
    assert device.kind != "cpu"
    assert device.name
    assert device.mem_mib > 1024
