"""`scontrol show topology` of topology/tree and topology/block. Pure.

Grammar: records of `Key=value`; a switch has SwitchName, Level, LinkSpeed, Nodes and Switches, a block BlockName or
AggregatedBlock, BlockIndex, Nodes and BlockSize (none before Slurm 24.05). Nodes of a switch above leaves are all
those below it. Source: `_print_topo_record` of Slurm's topology plugins, versions 20.02 to 25.11.
"""

import re

from windtunnel.fabric.hosts import read_record_hosts
from windtunnel.fabric.topology import UNKNOWN_LEVEL, Block, Finding, Topology, place_of
from windtunnel.records.cluster import Switch
from windtunnel.slurmtext import find_records

_KEYS = ("SwitchName", "BlockName", "AggregatedBlock")
_NOISE = re.compile(r"No topology information available|^\s*$")


def parse_show(text: str) -> Topology:
    """The network as scontrol prints it; lists cut short are findings, and their names unknown."""
    findings: list[Finding] = []
    switches: list[Switch] = []
    blocks: list[Block] = []
    found = list(find_records(text, *_KEYS))
    for offset, fields in found:
        nodes = read_record_hosts(text, offset, fields, "Nodes", findings)
        if "SwitchName" in fields:
            below = read_record_hosts(text, offset, fields, "Switches", findings)
            level, speed = fields.get("Level", ""), fields.get("LinkSpeed", "")
            if not level.isdecimal():
                line, column = place_of(text, offset)
                message = f"switch {fields['SwitchName']} has no Level: the record is cut short"
                findings.append(Finding("warning", "cut-record", message, line, column))
            number = int(level[:9]) if level.isdecimal() else UNKNOWN_LEVEL
            link_speed = int(speed[:18]) if speed.isdecimal() else None
            switches.append(Switch(fields["SwitchName"], number, nodes, below, link_speed))
        else:
            aggregated = "AggregatedBlock" in fields
            size = fields.get("BlockSize", "")
            name = fields["AggregatedBlock" if aggregated else "BlockName"]
            blocks.append(Block(name, nodes, int(size[:18]) if size.isdecimal() else None, aggregated))
    findings += _find_glued(text, [offset for offset, _ in found])
    sizes = sorted({block.size for block in blocks if block.size is not None})
    return Topology(
        "scontrol-topology",
        plugin="tree" if switches else "block" if blocks else None,
        switches=tuple(switches),
        blocks=tuple(blocks),
        block_sizes=tuple(sizes) or None,
        records=len(found),
        findings=tuple(findings),
    )


def _find_glued(text: str, offsets: list[int]) -> list[Finding]:
    """Records that do not begin a line, as text reflowed by an editor has them."""
    glued = [offset for offset in offsets if text[text.rfind("\n", 0, offset) + 1 : offset].strip()]
    head = text[: offsets[0]] if offsets else text
    unread = (
        [] if _NOISE.search(head) else [Finding("warning", "unread", f"not understood: {head.strip()[:60]!r}", 1, 1)]
    )
    return unread + [
        Finding("warning", "glued", "a record begins inside a line: the text was reflowed", *place_of(text, offset))
        for offset in glued
    ]
