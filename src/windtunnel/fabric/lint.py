"""What administrators get wrong in a topology, as findings. Pure.

Held against the cluster's nodes where these are known; without them only what the file itself shows is said.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from windtunnel.fabric.facts_network import list_leaves, list_roots
from windtunnel.fabric.topology import Finding, Host, Topology, unique
from windtunnel.fabric.tree import find_cycle
from windtunnel.hostlist import collapse_hostlist

_NUMBERED = re.compile(r"(.*?)(\d+)")
_OF_PARSERS = frozenset({"truncated", "several", "commented-switch", "commented-block"})
"""Findings of parsers that are no mistake of the topology."""


def lint_topology(network: Topology, cluster: Sequence[Host] | None = None) -> tuple[Finding, ...]:
    """All that is wrong or doubtful, errors first; `cluster` is every node that Slurm knows."""
    groups = list_groups(network)
    known = None if cluster is None else {host.name for host in cluster}
    found = [
        *(finding for finding in network.findings if finding.code not in _OF_PARSERS),
        *find_shared_nodes(groups),
        *find_lost_prefixes(groups, known),
        *_find_shown_cycles(network),
        *_find_forest(network),
    ]
    if cluster is not None and known is not None:
        found += [*find_absent(groups, known), *find_weights(groups, cluster)]
    return tuple(sorted(found, key=lambda finding: finding.severity))


def list_groups(network: Topology) -> dict[str, tuple[str, ...]]:
    """Nodes by leaf switch or block."""
    leaves = {leaf.name: leaf.nodes for leaf in list_leaves(network.switches)}
    return leaves | {block.name: block.nodes for block in network.blocks if not block.aggregated}


def find_shared_nodes(groups: Mapping[str, Sequence[str]]) -> list[Finding]:
    """Nodes on two leaves or blocks, or twice on one."""
    where: dict[str, list[str]] = {}
    for name, nodes in groups.items():
        for node in nodes:
            where.setdefault(node, []).append(name)
    places = {node: tuple(names) for node, names in where.items() if len(names) > 1}
    findings = []
    for names in unique_places(places.values()):
        nodes = collapse_hostlist(node for node in places if places[node] == names)
        text = (
            f"{nodes} in both {' and '.join(unique(names))}"
            if len(set(names)) > 1
            else f"{nodes} twice in {names[0]}"
        )
        findings.append(Finding("warning", "in-two", f"{text}: a node belongs to one leaf or block"))
    return findings


def find_lost_prefixes(groups: Mapping[str, Sequence[str]], known: set[str] | None) -> list[Finding]:
    """Names that lack the beginning that others have: `cl-n[001-016],n[019-020]` was meant to be all `cl-n`.

    Where the cluster is known, a short name that it has is right, and a long one that it lacks proves nothing.
    """
    prefixes = {prefix for nodes in groups.values() for node in nodes if (prefix := _prefix(node))}
    findings = []
    for group, nodes in groups.items():
        for short in sorted({_prefix(node) for node in nodes}):
            longer = sorted(p for p in prefixes if p != short and short and p.endswith(short))
            lost = [node for node in nodes if _prefix(node) == short and (known is None or node not in known)]
            if known is not None:
                longer = [p for p in longer if all(p + node[len(short) :] in known for node in lost)]
            if longer and lost:
                meant = " or ".join(repr(prefix) for prefix in longer)
                text = f"{group}: {collapse_hostlist(lost)} may have lost the beginning of its names, {meant}"
                findings.append(Finding("warning", "lost-prefix", f"{text}: write it for every list of the line"))
    return findings


def find_absent(groups: Mapping[str, Sequence[str]], known: set[str]) -> list[Finding]:
    """Nodes that the topology names and Slurm does not know, and nodes that no leaf or block has."""
    findings = []
    for group, nodes in groups.items():
        phantoms = [node for node in unique(nodes) if node not in known]
        if phantoms:
            text = f"{group}: Slurm has no node {collapse_hostlist(phantoms)}"
            findings.append(Finding("warning", "phantom", f"{text}: a slip of the pen, or a node that is gone"))
    placed = {node for nodes in groups.values() for node in nodes}
    homeless = sorted(known - placed)
    if homeless:
        text = f"{collapse_hostlist(homeless)} in no switch or block: jobs there ignore the topology, or never start"
        findings.append(Finding("warning", "in-none", text))
    return findings


def find_weights(groups: Mapping[str, Sequence[str]], cluster: Sequence[Host]) -> list[Finding]:
    """Leaves and blocks whose nodes differ in weight: Slurm takes the light ones everywhere before the others.

    Source: Slurm's src/plugins/topology/tree/eval_nodes_tree.c, which gathers the nodes of lowest weight first.
    """
    weights = {host.name: host.weight for host in cluster if host.weight is not None}
    findings = []
    for group, nodes in groups.items():
        found = sorted({weights[node] for node in nodes if node in weights})
        if len(found) > 1:
            text = f"{group}: its nodes have weights {', '.join(map(str, found))}, which count before the topology"
            findings.append(Finding("warning", "weights", f"{text}: give a leaf's nodes one weight"))
    return findings


def unique_places(places: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Each list of places once, in order."""
    return tuple(dict.fromkeys(places))


def _find_shown_cycles(network: Topology) -> list[Finding]:
    """Cycles in a list that a program printed; a configuration's are found as it is read."""
    if network.find("cycle"):
        return []
    culprit = find_cycle({switch.name: switch for switch in network.switches})
    return [] if culprit is None else [Finding("error", "cycle", f"cycle through {culprit}")]


def _find_forest(network: Topology) -> list[Finding]:
    """Several switches at the top that do not reach the same leaves: no job spans them."""
    roots = list_roots(network.switches)
    if len(roots) < 2:
        return []
    children = {frozenset(root.switches) for root in roots}
    if len(children) == 1 and children != {frozenset[str]()}:
        return []
    names = collapse_hostlist(root.name for root in roots)
    text = f"{len(roots)} switches at the top, {names}, and none reaches all nodes: no job can span them"
    return [Finding("warning", "forest", text)]


def _prefix(node: str) -> str:
    match = _NUMBERED.fullmatch(node)
    return match[1] if match else ""
