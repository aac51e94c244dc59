from windtunnel.device.cpu import (
    count_cpus,
    parse_cpu_name,
    parse_driver_version,
    parse_memory_mib,
    read_cpu_name,
    read_memory_mib,
)


def test_the_first_processor_names_the_cpu():
    text = "processor\t: 0\nmodel name\t: Fast CPU @ 3.00GHz\n\nprocessor\t: 1\nmodel name\t: Other\n"
    assert parse_cpu_name(text) == "Fast CPU @ 3.00GHz"


def test_a_cpu_that_is_not_named_is_empty():
    assert parse_cpu_name("processor\t: 0\nBogoMIPS\t: 50.0\n") == ""


def test_total_memory_is_read_in_mib():
    assert parse_memory_mib("MemTotal:       16384000 kB\nMemFree:  1 kB\n") == 16000
    assert parse_memory_mib("") == 0


def test_the_driver_version_is_found_in_both_kernel_modules_texts():
    assert (
        parse_driver_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug\n") == "535.104.05"
    )
    open_module = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n"
    assert parse_driver_version(open_module) == "570.86.15"
    assert parse_driver_version("") == ""


def test_this_machine_has_a_name_memory_and_cpus():
    assert read_cpu_name()
    assert read_memory_mib() > 0
    assert count_cpus() > 0
