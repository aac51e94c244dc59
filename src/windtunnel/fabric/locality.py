"""What nvidia-smi's matrix leaves blank or clips, filled from sysfs: both see the same PCI devices. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from windtunnel.fabric.machine import Device, Machine
from windtunnel.fabric.nvidia_cells import is_clipped
from windtunnel.fabric.topology import Finding, Topology

_UNTOLD = frozenset({None, "", "N/A"})


def read_gpu_buses(rows: str, fields: tuple[str, ...]) -> dict[str, str]:
    """PCI address by GPU, from what `nvidia-smi --query-gpu` prints of `fields`; other lines are left out."""
    cells = [[cell.strip() for cell in row.split(",")] for row in rows.splitlines()]
    index, bus = fields.index("index"), fields.index("pci.bus_id")
    return {f"GPU{row[index]}": normal_bus(row[bus]) for row in cells if len(row) == len(fields)}


def normal_bus(bus: str) -> str:
    """A PCI address as sysfs writes it: `00000000:07:00.0` is `0000:07:00.0`."""
    domain, _, rest = bus.lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def complete_machine(matrix: Topology, sysfs: Topology, buses: Mapping[str, str]) -> Topology:
    """The matrix's machine with PCI addresses, and with affinities and NUMA nodes where it had none that can be used.

    An affinity from sysfs is that of the hardware: a job's own cpuset may hold less of it.
    """
    if matrix.machine is None or sysfs.machine is None:
        return matrix
    by_bus = {device.pci: device for device in sysfs.machine.devices}
    by_name = {name: device for device in sysfs.machine.devices for name in device.osdevs}
    devices = tuple(
        _complete(device, by_bus.get(buses.get(device.name, "")) or by_name.get(device.alias or device.name))
        for device in matrix.machine.devices
    )
    machine: Machine = replace(matrix.machine, devices=devices, numa=sysfs.machine.numa)
    return replace(matrix, machine=machine, findings=_still_true(matrix, machine))


def _complete(device: Device, known: Device | None) -> Device:
    if known is None:
        return device
    usable = device.cpus not in _UNTOLD and not is_clipped(device.cpus)
    return replace(
        device,
        pci=known.pci,
        cpus=device.cpus if usable else known.cpus or device.cpus,
        numa=device.numa if device.numa not in _UNTOLD else known.numa,
    )


def _still_true(matrix: Topology, machine: Machine) -> tuple[Finding, ...]:
    """Findings without those of clipped lists, once all lists are whole."""
    whole = not any(is_clipped(device.cpus) for device in machine.devices)
    return tuple(finding for finding in matrix.findings if not (whole and finding.code == "affinity-clipped"))
