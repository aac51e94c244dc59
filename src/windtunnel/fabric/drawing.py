"""Outlines as text for a terminal, and link matrices as tables. Pure."""

from collections.abc import Iterator, Sequence

from windtunnel.fabric.machine import Machine
from windtunnel.fabric.outline import Branch, outline_topology
from windtunnel.fabric.topology import Topology


def draw_topology(topology: Topology) -> str:
    """The tree and the machine of a file, as a terminal shows them; says so where there is neither."""
    parts = [draw_outline(outline_topology(topology))]
    if topology.machine is not None and topology.machine.links:
        parts.append(draw_links(topology.machine))
    return "\n\n".join(part for part in parts if part) or "nothing to draw: no switch, no node and no device"


def draw_outline(branches: Sequence[Branch]) -> str:
    """Lines with branches of box characters; notes stand beside."""
    return "\n".join(line for branch in branches for line in _draw(branch, "", ""))


def draw_links(machine: Machine) -> str:
    """The link matrix; `?` where a row is missing."""
    names = [device.name for device in machine.devices]
    head = ["", *names]
    rows = [[a, *("X" if a == b else machine.link(a, b) or "?" for b in names)] for a in names]
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [head, *rows])
    return "\n".join(line.rstrip() for line in lines)


def _draw(branch: Branch, head: str, indent: str) -> Iterator[str]:
    yield f"{head}{branch.label}{'  ' + branch.note if branch.note else ''}"
    for index, child in enumerate(branch.below):
        last = index == len(branch.below) - 1
        yield from _draw(child, indent + ("└── " if last else "├── "), indent + ("    " if last else "│   "))
