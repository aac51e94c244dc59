import pytest

from windtunnel.perfmodel.hardware import find_sheet_peak
from windtunnel.perfmodel.utilization import Peak, Utilization, find_utilization
from windtunnel.records.meter import FlopSource, StepWork

WORK = StepWork(64, 6400, "fp32").with_flops(1000, 1200, FlopSource.DECLARED)


def test_each_peak_has_its_own_share_over_all_devices():
    found = find_utilization(WORK, step_s=2.0, devices=2, peak=Peak(measured=500.0, sheet=1000.0))
    shares = (found.mfu_measured, found.mfu_sheet, found.hfu_measured, found.hfu_sheet)
    assert shares == pytest.approx((0.5, 0.25, 0.6, 0.3))
    assert found.alarms == ()


def test_what_is_unknown_gives_no_share():
    assert find_utilization(WORK, step_s=2.0, devices=1, peak=Peak()) == Utilization()
    assert find_utilization(StepWork(64, 64, "fp32"), step_s=1.0, devices=1, peak=Peak(1.0, 1.0)) == Utilization()


def test_more_than_a_peak_is_an_alarm_with_its_number():
    (alarm,) = find_utilization(WORK, step_s=1.0, devices=1, peak=Peak(measured=1100.0)).alarms
    assert alarm.startswith("HFU against the measured peak is 109%, expected at most 100 %")


def test_only_sheets_that_are_known_give_a_peak():
    assert find_sheet_peak("NVIDIA H200", "bf16") == 989e12
    assert find_sheet_peak("Tesla T4", "bf16") is None
    assert find_sheet_peak("a CPU", "fp32") is None
