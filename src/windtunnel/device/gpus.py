"""What nvidia-smi and NVIDIA's kernel driver say of a node's GPUs, and which of it is a fault. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from windtunnel.device.probe import GPU_FIELDS

_XID = re.compile(r"NVRM: Xid \(PCI:(?:[0-9a-f]+:)?([0-9a-f]{2}:[0-9a-f]{2})[^)]*\): (\d+)", re.IGNORECASE)
_BUS = re.compile(r"([0-9a-f]{2}:[0-9a-f]{2})\.[0-9a-f]$", re.IGNORECASE)
HARDWARE_XIDS = {
    48: "a double-bit ECC error",
    62: "the GPU's micro-controller halted",
    64: "a bad row or page could not be retired",
    74: "an NVLink error",
    79: "the GPU fell off the bus",
    95: "an uncontained ECC error",
    119: "the GPU's system processor did not answer",
    120: "the GPU's system processor failed",
    140: "an unrecovered ECC error",
}
"""Xids that a program does not cause, from NVIDIA's "XID Errors" catalogue. Most others are the program's own."""
_THROTTLES = {
    "hw_thermal_slowdown": "the hardware slows it down, for heat",
    "hw_power_brake_slowdown": "the hardware slows it down, for its power supply",
    "sw_thermal_slowdown": "the driver slows it down, for heat",
}


@dataclass(frozen=True)
class Gpu:
    """One GPU, as one row of nvidia-smi tells; a field that it does not know is absent from `values`."""

    index: str
    uuid: str
    name: str
    bus: str
    """`3b:00`."""
    values: Mapping[str, str]

    def read_int(self, field: str) -> int | None:
        """A number; None where the GPU has none."""
        text = self.values.get(field, "")
        return int(text) if text.isdecimal() else None

    def says(self, field: str) -> bool:
        """Whether a field that is a matter of yes or no says yes."""
        return self.values.get(field, "").lower() in ("yes", "active", "1")


@dataclass(frozen=True)
class GpuFault:
    """What is wrong with a GPU, or with all; `hard` when any job there would meet it until somebody repairs it."""

    text: str
    hard: bool


def parse_gpus(rows: str, fields: Sequence[str] = GPU_FIELDS) -> tuple[Gpu, ...]:
    """GPUs in the rows that nvidia-smi prints with `--format=csv,noheader,nounits`; other lines are passed over."""
    gpus = []
    for line in rows.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == len(fields):
            values = {field: cell for field, cell in zip(fields, cells, strict=True) if not cell.startswith("[")}
            bus = _BUS.search(values.get("pci.bus_id", ""))
            index, uuid, name = (values.get(field, "") for field in ("index", "uuid", "name"))
            gpus.append(Gpu(index, uuid, name, bus[1].lower() if bus else "", values))
    return tuple(gpus)


def select_visible(gpus: Sequence[Gpu], visible: str | None) -> tuple[Gpu, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES names, by number or UUID; all when it is not set, or names parts of them."""
    names = [name.strip() for name in (visible or "").split(",") if name.strip()]
    if not names or any(name.startswith("MIG") for name in names):
        return tuple(gpus)
    return tuple(gpu for gpu in gpus if any(gpu.index == name or _is_uuid(name, gpu.uuid) for name in names))


def find_gpu_faults(gpus: Sequence[Gpu], *, asked: int) -> list[GpuFault]:
    """What is wrong with the GPUs of a job that was granted `asked` of them."""
    faults = [fault for gpu in gpus for fault in _find_faults(gpu, gpus)]
    if len(gpus) < asked:
        faults.insert(0, GpuFault(f"{len(gpus)} of the {asked} GPUs asked for are there", hard=True))
    return faults


def find_xid_faults(lines: Sequence[str], gpus: Sequence[Gpu]) -> list[GpuFault]:
    """What the kernel's log tells of these GPUs: each fault of hardware once."""
    ours = {gpu.bus: gpu.index for gpu in gpus}
    found: dict[tuple[str, int], GpuFault] = {}
    for line in lines:
        match = _XID.search(line)
        xid = int(match[2]) if match is not None else 0
        if match is not None and xid in HARDWARE_XIDS and match[1].lower() in ours:
            index = ours[match[1].lower()]
            found[index, xid] = GpuFault(f"GPU {index}: Xid {xid} within the hour: {HARDWARE_XIDS[xid]}", hard=False)
    return list(found.values())


def _find_faults(gpu: Gpu, gpus: Sequence[Gpu]) -> Iterator[GpuFault]:
    who = f"GPU {gpu.index}"
    errors = gpu.read_int("ecc.errors.uncorrected.volatile.total")
    if errors:
        yield GpuFault(f"{who}: {errors} uncorrectable ECC errors since its driver was loaded", hard=True)
    if gpu.says("remapped_rows.failure"):
        yield GpuFault(f"{who}: a bad row of its memory could not be remapped", hard=True)
    if gpu.says("retired_pages.pending") or gpu.says("remapped_rows.pending"):
        yield GpuFault(f"{who}: bad memory is to be retired: it needs a reset", hard=False)
    for part, word in (("gen", "generation"), ("width", "width")):
        now, most = (gpu.read_int(f"pcie.link.{part}.{which}") for which in ("current", "max"))
        if now is not None and most is not None and now < most and not _may_doze(gpu, gpus, part, now):
            yield GpuFault(f"{who}: its PCIe {word} is {now}, expected {most}", hard=False)
    for reason, words in _THROTTLES.items():
        if gpu.says(f"clocks_throttle_reasons.{reason}"):
            yield GpuFault(f"{who}: {words} ({reason})", hard=False)


def _may_doze(gpu: Gpu, gpus: Sequence[Gpu], part: str, now: int) -> bool:
    """Whether the link may only be saving power, which an idle GPU does: then its like on this node do as well."""
    state = gpu.values.get("pstate")
    peers = [other for other in gpus if other.name == gpu.name and other.values.get("pstate") == state]
    faster = any((other.read_int(f"pcie.link.{part}.current") or 0) > now for other in peers)
    return state != "P0" and not faster


def _is_uuid(name: str, uuid: str) -> bool:
    # CUDA takes a UUID's beginning as well.
    return name.startswith("GPU-") and uuid.startswith(name)
