"""`nvidia-smi -L`: GPUs, and the MIG devices that each is cut into, which no other listing shows. Pure.

Several outputs in one file (one a task of srun) tell of the same GPU again: its UUID says so.
"""

import re
from dataclasses import replace

from windtunnel.fabric.machine import Device, Machine
from windtunnel.fabric.topology import Finding, Topology

_GPU = re.compile(r"^\s*(?:\d+:\s*)?GPU (\d+): (.*?)(?: \(UUID: ([^)\s]*)(\))?)?\s*$")
_MIG = re.compile(r"^\s*(?:\d+:\s*)?MIG (\S+)\s+Device\s+(\d+):(?: \(UUID: ([^)\s]*)(\))?)?")


def is_list_line(line: str) -> bool:
    """Whether a line is a GPU's."""
    return _GPU.match(line) is not None


def parse_list(text: str) -> Topology:
    """GPUs with their MIG profiles; a device without its UUID is counted where it stands."""
    findings: list[Finding] = []
    gpus: dict[str, Device] = {}
    seen: set[str] = set()
    current = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _GPU.match(line):
            current = match[3] or f"line {number}"
            gpus.setdefault(current, Device(f"GPU{match[1]}", "gpu", model=match[2] or None, uuid=match[3]))
        elif match := _MIG.match(line):
            uuid = match[3] or f"line {number}"
            if current and uuid not in seen:
                gpus[current] = replace(gpus[current], parts=(*gpus[current].parts, match[1]))
            elif not current:
                findings.append(Finding("warning", "no-gpu", "a MIG device stands before any GPU", number, 1))
            seen.add(uuid)
        elif line.strip():
            findings.append(Finding("warning", "unread", f"not understood: {line.strip()[:60]!r}", number, 1))
            continue
        if match and not match[4]:
            findings.append(Finding("warning", "cut-uuid", "the line ends before its UUID does", number, 1))
    machine = Machine(devices=tuple(gpus.values()))
    return Topology("nvidia-smi-list", machine=machine, findings=tuple(findings))
