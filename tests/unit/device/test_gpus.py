"""Rows as nvidia-smi prints them, by its manual and outputs that others published; none of these GPUs is ours."""

import pytest

from windtunnel.device.gpus import find_gpu_faults, find_xid_faults, parse_gpus, select_visible

H100 = (
    "{index}, GPU-8f2c{index}1d4-0c5b-4d8e-9a31-5b2f6f0e7a1{index}, NVIDIA H100 80GB HBM3, 00000000:{index}B:00.0,"
    " {pstate}, {ecc}, [N/A], {pending}, {failure}, {gen}, 5, {width}, 16, {thermal}, Not Active, Not Active\n"
)
WELL = {
    "index": 0,
    "pstate": "P0",
    "ecc": 0,
    "pending": "No",
    "failure": "No",
    "gen": 5,
    "width": 16,
    "thermal": "Not Active",
}
CONSUMER = (
    "0, GPU-1b2c, NVIDIA GeForce RTX 3090, 00000000:65:00.0, P8, [N/A], [N/A], [N/A], [N/A], 1, 4, 16, 16,"
    " Not Active, Not Active, Not Active\n"
)
XID = "NVRM: Xid (PCI:0000:{bus}:00): {xid}, pid=1234, name=python, Ch 00000008"


def gpus(*changes: dict[str, object]):
    return parse_gpus(
        "".join(H100.format(**{**WELL, "index": number, **each}) for number, each in enumerate(changes))
    )


def test_a_well_gpu_has_no_fault_and_an_idle_one_may_save_its_links_power() -> None:
    assert find_gpu_faults(gpus({}, {}), asked=2) == []
    assert find_gpu_faults(gpus({"pstate": "P8", "gen": 1}, {"pstate": "P8", "gen": 1}), asked=2) == []
    assert find_gpu_faults(parse_gpus(CONSUMER), asked=1) == []


@pytest.mark.parametrize(
    ("change", "text", "hard"),
    [
        ({"ecc": 3}, "GPU 0: 3 uncorrectable ECC errors since its driver was loaded", True),
        ({"failure": "Yes"}, "GPU 0: a bad row of its memory could not be remapped", True),
        ({"pending": "Yes"}, "GPU 0: bad memory is to be retired: it needs a reset", False),
        ({"width": 8}, "GPU 0: its PCIe width is 8, expected 16", False),
        ({"gen": 3}, "GPU 0: its PCIe generation is 3, expected 5", False),
        (
            {"thermal": "Active"},
            "GPU 0: the hardware slows it down, for heat (hw_thermal_slowdown)",
            False,
        ),
    ],
)
def test_each_fault_of_a_gpu_is_told_with_what_was_expected(change, text: str, hard: bool) -> None:
    (fault,) = find_gpu_faults(gpus(change), asked=1)
    assert (fault.text, fault.hard) == (text, hard)


def test_an_idle_gpu_whose_like_has_a_wider_link_is_at_fault() -> None:
    (fault,) = find_gpu_faults(gpus({"pstate": "P8", "width": 4}, {"pstate": "P8"}), asked=2)
    assert fault.text == "GPU 0: its PCIe width is 4, expected 16"


def test_a_gpu_that_is_missing_is_a_hard_fault() -> None:
    (fault,) = find_gpu_faults(gpus({}), asked=2)
    assert (fault.text, fault.hard) == ("1 of the 2 GPUs asked for are there", True)


@pytest.mark.parametrize(
    ("visible", "indices"),
    [(None, "012"), ("", "012"), ("2,0", "02"), ("GPU-8f2c1", "1"), ("7", ""), ("MIG-1", "012")],
)
def test_only_the_jobs_own_gpus_are_judged(visible: str | None, indices: str) -> None:
    assert "".join(gpu.index for gpu in select_visible(gpus({}, {}, {}), visible)) == indices


def test_of_the_kernels_log_only_faults_of_hardware_of_these_gpus_count_and_each_once() -> None:
    lines = [XID.format(bus="1b", xid=xid) for xid in (79, 79, 31)] + [XID.format(bus="7F", xid=79)]
    (fault,) = find_xid_faults(lines, gpus({}, {}))
    assert (fault.text, fault.hard) == ("GPU 1: Xid 79 within the hour: the GPU fell off the bus", False)


def test_lines_that_are_no_rows_are_passed_over() -> None:
    assert parse_gpus("Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.\n") == ()
