"""Facts of machines as hwloc, NCCL and `nvidia-smi -L` describe them. Pure."""

import re
from collections import Counter
from typing import Any

from windtunnel.fabric.machine import Device, Machine
from windtunnel.fabric.topology import Topology

_GPU_OSDEV = re.compile(r"(?:nvml|cuda)\d")
_FIRST_REFUSED = 3
"""hwloc 2.9 reads the XML of versions 1 and 2."""


def collect_hwloc_facts(topology: Topology) -> dict[str, Any]:
    """Facts of hwloc's XML, or of what sysfs says."""
    machine = topology.machine or Machine()
    major = (machine.format_version or "").partition(".")[0]
    return {
        "xml_version": machine.format_version,
        "loads_in_hwloc_2_9": int(major[:9]) < _FIRST_REFUSED if major.isdecimal() else None,
        "packages": machine.packages,
        "numa": None if machine.numa is None else len(machine.numa),
        "pu": machine.pus,
        "pcidev": machine.pci_devices,
        "osdev": None if machine.os_devices is None else len(machine.os_devices),
        "nvml_or_cuda": sum(_GPU_OSDEV.match(name) is not None for name in machine.os_devices or ()),
        "distances": len(machine.matrices),
        "gpus": [_describe(device) for device in machine.of_kind("gpu")],
        "nics": [_describe(device) for device in machine.of_kind("nic")],
        "numa_nodes": [
            {"index": node.index, "cpus": node.cpus, "memory_bytes": node.memory_bytes} for node in machine.numa or ()
        ],
    }


def collect_graph_facts(topology: Topology) -> dict[str, Any]:
    """Facts of NCCL's XML."""
    machine = topology.machine or Machine()
    return {
        "cpus": None if machine.numa is None else len(machine.numa),
        "gpus": len(machine.of_kind("gpu")),
        "nics": len(machine.of_kind("nic")),
        "nets": machine.nets,
        "nvlink_entries": machine.nvlinks,
        "pci": machine.pci_devices,
        "gpu_devices": [_describe(device) for device in machine.of_kind("gpu")],
        "nic_devices": [_describe(device) for device in machine.of_kind("nic")],
    }


def collect_list_facts(topology: Topology) -> dict[str, Any]:
    """Facts of `nvidia-smi -L`."""
    gpus = (topology.machine or Machine()).of_kind("gpu")
    profiles = Counter(profile for gpu in gpus for profile in gpu.parts)
    return {
        "n_gpus": len(gpus),
        "mig_devices": profiles.total(),
        "profiles": dict(profiles),
        "gpus": [{"name": gpu.name, "model": gpu.model, "parts": list(gpu.parts)} for gpu in gpus],
    }


def _describe(device: Device) -> dict[str, Any]:
    return {"name": device.name, "pci": device.pci, "numa": device.numa, "cpus": device.cpus, "bus": list(device.bus)}
