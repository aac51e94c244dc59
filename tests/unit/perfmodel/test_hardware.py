import pytest

from windtunnel.errors import SettingsError
from windtunnel.perfmodel.hardware import find_device, read_devices


def test_every_device_has_a_source_a_peak_and_a_memory():
    for device in read_devices().values():
        assert device.source
        assert device.peak("fp16") > 1e13
        assert device.memory_bytes_per_s > 1e11


def test_an_unknown_device_is_an_error_that_says_what_to_add():
    with pytest.raises(SettingsError, match=r"nothing is known of device 'X1' .*A100-SXM-80GB.*add a line"):
        find_device("X1")


def test_a_precision_without_units_is_an_error_that_names_those_that_there_are():
    with pytest.raises(SettingsError, match=r"V100-SXM2-32GB has no bf16 peak .it has fp32, fp16."):
        find_device("V100-SXM2-32GB").peak("bf16")
