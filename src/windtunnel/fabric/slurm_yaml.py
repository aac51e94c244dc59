"""Slurm's topology.yaml (25.05 and later): one or several topologies of tree, block or flat. Pure.

Grammar: a topology, or a list of them; each has a name, perhaps `cluster_default`, and exactly one of `block`,
`flat`, `ring`, `torus3d` and `tree`. Where Slurm takes a list of mappings it takes a single one too. Source: Slurm's
topology.yaml(5), and its test suite's test_150_9.
"""

from typing import Any

import yaml

from windtunnel.fabric.blocks import check_blocks, read_sizes
from windtunnel.fabric.hosts import read_hosts
from windtunnel.fabric.topology import Block, Finding, Topology
from windtunnel.fabric.tree import Entry, build_tree
from windtunnel.records.cluster import Switch

_PLUGINS = ("block", "flat", "ring", "torus3d", "tree")
_KEYS = {"topology", "cluster_default", *_PLUGINS}
_TRUE = frozenset({"true", "yes", "on"})
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Fields = dict[str, yaml.Node]


def parse_yaml(text: str) -> Topology:
    """The default topology of the file; its mistakes are findings with line and column."""
    findings: list[Finding] = []
    try:
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        findings.append(_describe(error))
        return Topology("topology.yaml", findings=tuple(findings))
    except (RecursionError, ValueError) as error:
        findings.append(Finding("error", "yaml", f"no YAML: {error}", 1, 1))
        return Topology("topology.yaml", findings=tuple(findings))
    found = [_read_topology(item, findings) for item in _list_of(root, "the document's root", findings)]
    if not found and not findings:
        findings.append(Finding("error", "empty", "the file has no topology", 1, 1))
    return _choose(found, findings)


def _choose(found: list[tuple[bool, Topology]], findings: list[Finding]) -> Topology:
    defaults = [topology for is_default, topology in found if is_default]
    if len(found) > 1:
        which = "the first with cluster_default" if defaults else "the first, since none is the cluster's default"
        text = f"the file has {len(found)} topologies; these facts are of {which}"
        findings.append(Finding("warning", "several", text))
    topology = (defaults or [topology for _, topology in found] or [Topology("topology.yaml")])[0]
    return Topology(
        "topology.yaml",
        plugin=topology.plugin,
        switches=topology.switches,
        blocks=topology.blocks,
        block_sizes=topology.block_sizes,
        records=len(found),
        findings=tuple(findings),
    )


def _read_topology(node: yaml.Node, findings: list[Finding]) -> tuple[bool, Topology]:
    fields = _fields_of(node, "a topology", findings)
    for key in fields.keys() - _KEYS:
        text = f"{key!r} is no key of a topology: {', '.join(sorted(_KEYS))}"
        findings.append(_at(fields[key], "error", "unknown-key", text))
    if fields and "topology" not in fields:
        findings.append(_at(node, "error", "no-name", "a topology has no `topology`, its name"))
    given = [name for name in _PLUGINS if name in fields and not _is_off(name, fields[name])]
    if fields and len(given) != 1:
        what = " and ".join(given) or "none"
        text = f"a topology has exactly one of {', '.join(_PLUGINS)}, and this one has {what}"
        findings.append(_at(node, "error", "plugins", text))
    is_default = _text(fields.get("cluster_default")).lower() in _TRUE
    if not given:
        return is_default, Topology("topology.yaml")
    body = fields[given[0]]
    read = {"tree": _read_tree, "block": _read_blocks}.get(given[0])
    return is_default, read(body, findings) if read else _read_other(given[0], body, findings)


def _read_tree(node: yaml.Node, findings: list[Finding]) -> Topology:
    fields = _fields_of(node, "tree", findings)
    _need(fields, "switches", node, "tree", findings)
    entries = []
    for item in _list_of(fields.get("switches"), "switches", findings):
        switch = _fields_of(item, "a switch", findings)
        if not _need(switch, "switch", item, "a switch", findings):
            continue
        nodes, below = _hosts(switch, "nodes", findings), _hosts(switch, "children", findings)
        line = item.start_mark.line + 1
        entries.append(Entry(Switch(_text(switch["switch"]), 0, nodes, below), line))
    switches, found = build_tree(entries)
    findings += found
    return Topology("topology.yaml", plugin="tree", switches=switches)


def _read_blocks(node: yaml.Node, findings: list[Finding]) -> Topology:
    fields = _fields_of(node, "block", findings)
    _need(fields, "blocks", node, "block", findings)
    blocks = []
    for item in _list_of(fields.get("blocks"), "blocks", findings):
        block = _fields_of(item, "a block", findings)
        if _need(block, "block", item, "a block", findings):
            blocks.append(Block(_text(block["block"]), _hosts(block, "nodes", findings)))
    sizes = None
    if "block_sizes" in fields:
        given = fields["block_sizes"]
        items = given.value if isinstance(given, yaml.SequenceNode) else [given]
        sizes = read_sizes([_text(item) for item in items], findings, line=given.start_mark.line + 1)
    findings += check_blocks(blocks, sizes)
    return Topology("topology.yaml", plugin="block", blocks=tuple(blocks), block_sizes=sizes)


def _read_other(plugin: str, node: yaml.Node, findings: list[Finding]) -> Topology:
    """Plugins whose structure is not read: flat has none, ring and torus3d are checked for their shape alone."""
    if plugin != "flat":
        key = {"ring": "rings", "torus3d": "toruses"}[plugin]
        fields = _fields_of(node, plugin, findings)
        if _need(fields, key, node, plugin, findings):
            _list_of(fields[key], key, findings)
        findings.append(_at(node, "warning", "not-read", f"the nodes of topology/{plugin} are not read"))
    return Topology("topology.yaml", plugin=plugin)


def _is_off(name: str, node: yaml.Node) -> bool:
    return name == "flat" and _text(node).lower() not in _TRUE


def _list_of(node: yaml.Node | None, what: str, findings: list[Finding]) -> list[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    if isinstance(node, yaml.MappingNode):
        return [node]
    if node is not None:
        text = f"{what} must be a list, and is {_text(node)[:40]!r}"
        findings.append(_at(node, "error", "not-a-list", text))
    return []


def _fields_of(node: yaml.Node, what: str, findings: list[Finding]) -> Fields:
    if isinstance(node, yaml.MappingNode):
        return {_text(key): value for key, value in node.value}
    text = f"{what} must be a mapping, and is {_text(node)[:40]!r}"
    findings.append(_at(node, "error", "not-a-mapping", text))
    return {}


def _need(fields: Fields, key: str, node: yaml.Node, what: str, findings: list[Finding]) -> bool:
    if key in fields:
        return True
    if fields:
        findings.append(_at(node, "error", "missing-key", f"{what} has no `{key}`"))
    return False


def _hosts(fields: Fields, key: str, findings: list[Finding]) -> tuple[str, ...]:
    node = fields.get(key)
    if node is None:
        return ()
    mark = node.start_mark
    return read_hosts(_text(node), findings, line=mark.line + 1, column=mark.column + 1)


def _text(node: yaml.Node | None) -> str:
    value: Any = node.value if node is not None else ""
    return value if isinstance(value, str) else "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"


def _at(node: yaml.Node, severity: Any, code: str, text: str) -> Finding:
    return Finding(severity, code, text, node.start_mark.line + 1, node.start_mark.column + 1)


def _describe(error: yaml.YAMLError) -> Finding:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    return Finding("error", "yaml", f"no YAML: {problem}", line, column)
