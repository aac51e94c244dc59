"""Which kind of file a text is, by what it holds, and its parser: `parse_topology` reads any of them. Pure."""

import re
from collections.abc import Callable

from windtunnel.errors import InputFileError
from windtunnel.fabric.gres_lines import is_gres_line, parse_gres_lines
from windtunnel.fabric.hwloc import parse_hwloc
from windtunnel.fabric.ibnetdiscover import is_section, parse_ibnetdiscover
from windtunnel.fabric.nccl_graph import parse_graph
from windtunnel.fabric.nccl_json import parse_nccl_json
from windtunnel.fabric.nccl_tests import parse_nccl_tests, read_header
from windtunnel.fabric.nvidia_list import is_list_line, parse_list
from windtunnel.fabric.nvidia_matrix import is_matrix_header, parse_matrix
from windtunnel.fabric.osu import is_osu_title, parse_osu
from windtunnel.fabric.sinfo import is_header, is_row, parse_sinfo
from windtunnel.fabric.slurm_address import is_pattern, parse_addresses
from windtunnel.fabric.slurm_conf import parse_conf
from windtunnel.fabric.slurm_config import parse_slurm_config
from windtunnel.fabric.slurm_nodes import parse_nodes_json, parse_nodes_text
from windtunnel.fabric.slurm_show import parse_show
from windtunnel.fabric.slurm_yaml import parse_yaml
from windtunnel.fabric.topology import Topology

Parser = Callable[[str], Topology]
KINDS = (
    "topology.conf, topology.yaml, `scontrol show topology`, SLURM_TOPOLOGY_ADDR of several nodes, `scontrol show "
    "node`, slurm.conf, sinfo, Gres strings, `nvidia-smi topo -m`, `topo -p2p` or `-L`, hwloc XML, NCCL topology "
    "XML, ibnetdiscover, logs of nccl-tests or OSU"
)
_SHOWN = re.compile(r"(?:^|\s)(?:SwitchName=\S+\s+Level=|AggregatedBlock=|BlockName=\S+\s+BlockIndex=)")
_CONFIGURED = re.compile(r"^\s*#?\s*(?:SwitchName|BlockName|BlockSizes)\s*=", re.IGNORECASE | re.MULTILINE)
_NODE = re.compile(r"(?:^|\n)\s*NodeName=\S+\s+(?:Arch|CoresPerSocket|NodeHostName|CPUAlloc|State)=", re.DOTALL)
_CONFIGURED_NODE = re.compile(r"^\s*NodeName\s*=\s*\S+", re.IGNORECASE | re.MULTILINE)
_YAML = re.compile(r"^(?:---\s*$|\s*(?:-\s+)?topology\s*:)", re.MULTILINE)
_XML_ROOTS = ((re.compile(r"<(?:topology|root)[\s>]"), parse_hwloc), (re.compile(r"<system[\s>]"), parse_graph))
_JSON_KEYS = (
    ('"nodes"', parse_nodes_json),
    ('"average_bus_bandwidth"', parse_nccl_json),
    ('"results"', parse_nccl_json),
)


def parse_topology(text: str, name: str = "") -> Topology:
    """What a file says, whatever its kind; raises InputFileError for one of no kind that is known here.

    The name decides only where the text does not: a topology.yaml may hold anything.
    """
    parser = find_parser(text, name)
    if parser is None:
        what = "is empty" if not text.strip() else "is of no kind that is read here"
        raise InputFileError(f"{name or 'the text'} {what}: give one of {KINDS}")
    return parser(text)


def find_parser(text: str, name: str = "") -> Parser | None:
    """The parser of a text; None where nothing in it is known."""
    text = text.removeprefix("\ufeff")
    if not text.strip():
        return None
    if name.endswith((".yaml", ".yml")):
        return parse_yaml
    start = text.lstrip()[:1]
    if start == "<":
        return next((parser for root, parser in _XML_ROOTS if root.search(text)), None)
    if start in ("{", "["):
        found = next((parser for key, parser in _JSON_KEYS if key in text), None)
        if found is not None:
            return found
    return _find_by_lines(text) or (parse_conf if name.endswith(".conf") else None)


def _find_by_lines(text: str) -> Parser | None:
    lines = [line for line in text.splitlines() if line.strip()]
    tests: tuple[tuple[Parser, Callable[[], bool]], ...] = (
        (parse_nccl_tests, lambda: any(read_header(line) is not None for line in lines)),
        (parse_osu, lambda: any(is_osu_title(line) for line in lines)),
        (parse_ibnetdiscover, lambda: any(is_section(line) for line in lines)),
        (parse_show, lambda: _SHOWN.search(text) is not None or text.startswith("No topology information")),
        (parse_addresses, lambda: _has_address(text, lines)),
        (parse_nodes_text, lambda: _NODE.search(text) is not None),
        (parse_conf, lambda: _CONFIGURED.search(text) is not None),
        (parse_slurm_config, lambda: _CONFIGURED_NODE.search(text) is not None),
        (parse_matrix, lambda: any(is_matrix_header(line) for line in lines)),
        (parse_list, lambda: any(is_list_line(line) for line in lines)),
        (parse_yaml, lambda: _YAML.search(text) is not None),
        (parse_gres_lines, lambda: all(is_gres_line(line) for line in lines)),
        (parse_sinfo, lambda: any(is_header(line) for line in lines) or all(is_row(line) for line in lines)),
    )
    return next((parser for parser, fits in tests if fits()), None)


def _has_address(text: str, lines: list[str]) -> bool:
    words = [line.split() for line in lines]
    return "SLURM_TOPOLOGY_ADDR=" in text or any(2 <= len(w) <= 4 and is_pattern(w[-1]) for w in words)
