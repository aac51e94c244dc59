"""What devices are able to do at most, by name, from `devices.csv` beside this file.

Peaks are dense ones, links one direction's. An unknown device is an error that says what to add.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from windtunnel.errors import SettingsError

TABLE = Path(__file__).with_name("devices.csv")
_DTYPES = ("fp32", "fp16", "bf16", "fp8", "fp4")


@dataclass(frozen=True)
class Device:
    """Data-sheet figures of one device."""

    name: str
    driver_name: str
    """What its driver calls it; empty where nobody has told us."""
    peak_flops: Mapping[str, float]
    """Operations a second by dtype; those that it has no units for are absent."""
    memory_bytes: float
    memory_bytes_per_s: float
    link_bytes_per_s: float
    """To the other devices of its node or rack, one direction; 0 without such links."""
    link_devices: int
    """How many are linked so."""
    source: str

    def peak(self, dtype: str) -> float:
        """Operations a second; raises SettingsError for a dtype that the device has no units for."""
        if dtype not in self.peak_flops:
            known = ", ".join(self.peak_flops)
            raise SettingsError(f"{self.name} has no {dtype} peak (it has {known}): choose one of these precisions")
        return self.peak_flops[dtype]


def find_device(name: str) -> Device:
    """The device of that name; raises SettingsError, with the known ones, for another."""
    devices = read_devices()
    if name not in devices:
        raise SettingsError(
            f"nothing is known of device {name!r} (known: {', '.join(devices)}): add a line to {TABLE} with its "
            "peaks, memory and links, and where these are from"
        )
    return devices[name]


def find_sheet_peak(driver_name: str, dtype: str) -> float | None:
    """Operations a second of the device that its driver calls so; None for one that no sheet here tells of.

    fp32 is the plain one, since torch has TF32 off by default.
    """
    named = (device for device in read_devices().values() if driver_name and device.driver_name == driver_name)
    return next((device.peak_flops.get(dtype) for device in named), None)


@cache
def read_devices() -> dict[str, Device]:
    """All devices by name."""
    with TABLE.open(newline="") as file:
        return {row["name"]: _parse_device(row) for row in csv.DictReader(file)}


def _parse_device(row: Mapping[str, str]) -> Device:
    peaks = {dtype: float(row[f"{dtype}_tflops"]) * 1e12 for dtype in _DTYPES if row[f"{dtype}_tflops"]}
    return Device(
        name=row["name"],
        driver_name=row["driver_name"],
        peak_flops=peaks,
        memory_bytes=float(row["memory_gb"]) * 1e9,
        memory_bytes_per_s=float(row["memory_gbps"]) * 1e9,
        link_bytes_per_s=float(row["link_gbps"] or 0) * 1e9,
        link_devices=int(row["link_devices"] or 1),
        source=row["source"],
    )
