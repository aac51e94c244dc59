"""`scontrol show topology` of topology/tree and topology/block. Pure.

Grammar: records of `Key=value`; a switch has SwitchName, Level, LinkSpeed, Nodes and Switches, a block BlockName or
AggregatedBlock, BlockIndex, Nodes and BlockSize (none before Slurm 24.05). Nodes of a switch above leaves are all
those below it. Source: `_print_topo_record` of Slurm's topology plugins, versions 20.02 to 25.11.
"""

import re

from windtunnel.fabric.hosts import read_record_hosts
from windtunnel.fabric.topology import UNKNOWN_LEVEL, Block, Finding, Topology, place_of
from windtunnel.records.cluster import Switch
from windtunnel.slurmtext import find_records, read_count

_KEYS = ("SwitchName", "BlockName", "AggregatedBlock")
_NOISE = re.compile(r"No topology information available|^\s*$")


def parse_show(text: str) -> Topology:
    """The network as scontrol prints it; lists cut short are findings, and their names unknown."""
    findings: list[Finding] = []
    found = list(find_records(text, *_KEYS))
    switches = [_read_switch(text, *record, findings) for record in found if "SwitchName" in record[1]]
    blocks = [_read_block(text, *record, findings) for record in found if "SwitchName" not in record[1]]
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


def _read_switch(text: str, offset: int, fields: dict[str, str], findings: list[Finding]) -> Switch:
    name, level = fields["SwitchName"], read_count(fields.get("Level"))
    if level is None:
        message = f"switch {name} has no Level: the record is cut short"
        findings.append(Finding("warning", "cut-record", message, *place_of(text, offset)))
    return Switch(
        name,
        level=UNKNOWN_LEVEL if level is None else level,
        nodes=read_record_hosts(text, offset, fields, key="Nodes", findings=findings),
        switches=read_record_hosts(text, offset, fields, key="Switches", findings=findings),
        link_speed=read_count(fields.get("LinkSpeed")),
    )


def _read_block(text: str, offset: int, fields: dict[str, str], findings: list[Finding]) -> Block:
    aggregated = "AggregatedBlock" in fields
    return Block(
        fields["AggregatedBlock" if aggregated else "BlockName"],
        nodes=read_record_hosts(text, offset, fields, key="Nodes", findings=findings),
        size=read_count(fields.get("BlockSize")),
        aggregated=aggregated,
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
