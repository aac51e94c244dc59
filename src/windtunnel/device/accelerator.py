"""What the devices that torch can train on are: an accelerator where there is one, else the processor."""

from dataclasses import dataclass

import torch

from windtunnel.device.cpu import read_cpu_name, read_memory_mib
from windtunnel.units import MIB


@dataclass(frozen=True)
class Device:
    """One device of this host; `count` of the same kind are visible to this process."""

    kind: str
    """`cpu`, or torch's name of the accelerator such as `cuda`."""
    name: str
    count: int
    mem_mib: int
    """Memory of the device; of the host for a processor."""


def read_device() -> Device:
    """The device that training would use here."""
    accelerators = count_accelerators()
    if not accelerators:
        return Device("cpu", read_cpu_name(), 1, read_memory_mib())
    kind = torch.accelerator.current_accelerator()
    assert kind is not None
    properties = torch.get_device_module(kind).get_device_properties(0)
    return Device(kind.type, properties.name, accelerators, properties.total_memory // MIB)


def count_accelerators() -> int:
    """Accelerators visible to this process; 0 where torch has no build or no driver for one."""
    return torch.accelerator.device_count() if torch.accelerator.is_available() else 0


def synchronize(device: torch.device) -> None:
    """Wait for the work that `device` still has in its queue; a processor has none."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
