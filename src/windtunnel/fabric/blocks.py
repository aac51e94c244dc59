"""Blocks of topology/block, and whether their sizes hold. Pure.

Source of the rules: Slurm's src/plugins/topology/block/block_record.c: every size is the first one times a power of
two, and no block has fewer nodes than the first size.
"""

from collections.abc import Sequence

from windtunnel.fabric.topology import Block, Finding
from windtunnel.hostlist import collapse_hostlist

_MAX_LEVEL = 15


def read_sizes(texts: Sequence[str], findings: list[Finding], *, line: int | None) -> tuple[int, ...] | None:
    """Block sizes as configured; None, and an error, where they are no numbers."""
    stripped = [text.strip() for text in texts if text.strip()]
    if not stripped or not all(text.isdecimal() and int(text[:18]) > 0 for text in stripped):
        findings.append(Finding("error", "block-sizes", f"block sizes {','.join(texts)!r} are no numbers", line, 1))
        return None
    sizes = tuple(int(text[:18]) for text in stripped)
    for size in sizes[1:]:
        ratio, rest = divmod(size, sizes[0])
        if rest or ratio & (ratio - 1) or ratio > 2**_MAX_LEVEL:
            text = f"block size {size} is not {sizes[0]} times a power of two: Slurm refuses it"
            findings.append(Finding("error", "block-sizes", text, line, 1))
    return sizes


def check_blocks(blocks: Sequence[Block], sizes: Sequence[int] | None) -> list[Finding]:
    """Blocks defined twice, blocks that are too small, and sizes that no blocks can fill."""
    findings = []
    base = [block for block in blocks if not block.aggregated]
    names = [block.name for block in base]
    for name in sorted({name for name in names if names.count(name) > 1}):
        findings.append(Finding("error", "twice", f"block {name} is defined twice"))
    for block in base:
        if sizes and 0 < len(block.nodes) < sizes[0]:
            text = (
                f"block {block.name} has {len(block.nodes)} nodes ({collapse_hostlist(block.nodes)}), "
                f"fewer than the block size {sizes[0]}: Slurm before 25.05 refuses it"
            )
            findings.append(Finding("warning", "short-block", text))
    total = sum(len(block.nodes) for block in base)
    for size in sizes or ():
        if total and size > total:
            text = f"block size {size} can never be full: the blocks have {total} nodes"
            findings.append(Finding("warning", "unfillable-size", text))
    return findings
