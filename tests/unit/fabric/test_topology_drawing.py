from xml.etree import ElementTree

from fabric_samples import CONF_TREE, MATRIX, SHOW_BLOCKS
from windtunnel.fabric.detect import parse_topology
from windtunnel.fabric.drawing import draw_topology
from windtunnel.fabric.outline import Branch, count_lines, outline_paths, outline_topology
from windtunnel.fabric.svg import render_outline_svg, shorten

TREE = """\
root
├── p0
│   ├── s0  4 nodes: n[01-04]
│   └── s1  4 nodes: n[05-08]
└── p1
    └── s2  2 nodes: gpu-1-ib,gpu-2-ib"""

MACHINE = """\
NUMA 0  CPUs 0-15,32-47
├── GPU0  NV4 to 1; nearest NIC0 (PXB)
└── NIC0 (mlx5_0)
NUMA 1  CPUs 16-31,48-63
├── GPU1  NV4 to 1; nearest NIC1 (PIX)
└── NIC1 (mlx5_bond_1)

      GPU0  GPU1  NIC0  NIC1
GPU0  X     NV4   PXB   SYS
GPU1  NV4   X     SYS   PIX
NIC0  PXB   SYS   X     SYS
NIC1  SYS   PIX   SYS   X"""


def draw(text):
    return draw_topology(parse_topology(text))


def test_a_tree_is_drawn_from_its_top():
    assert draw(CONF_TREE) == TREE


def test_gpus_and_adapters_stand_below_their_numa_nodes():
    assert draw(MATRIX) == MACHINE


def test_blocks_are_a_line_each():
    assert draw(SHOW_BLOCKS) == "b0  4 nodes: n[0-3]\nb1  4 nodes: n[4-7]"


def test_spines_of_the_same_leaves_are_one_line_and_a_cycle_ends():
    spines = "SwitchName=r0 Switches=s\nSwitchName=r1 Switches=s\nSwitchName=s Nodes=n1\n"
    assert draw(spines) == "r[0-1]\n└── s  1 node: n1"
    cycle = "SwitchName=a Switches=b,l\nSwitchName=b Switches=a\nSwitchName=l Nodes=n1\n"
    assert "a cycle closes at a" in draw(cycle)


def test_hosts_of_unknown_place_are_said():
    branches = outline_paths({"n1": ("r", "s0"), "n2": None, "n3": ()})
    assert [branch.label for branch in branches] == ["r", "no switch", "unknown place"]


def test_a_missing_row_is_a_question_mark():
    assert "?" in draw("".join(MATRIX.splitlines(keepends=True)[:2]))


def test_a_file_without_a_place_for_anything_says_so():
    assert draw("gpu:4\n").startswith("nothing to draw")


def test_an_svg_is_well_formed_and_has_a_line_of_text_each():
    outline = outline_topology(parse_topology(CONF_TREE.replace("root", "a-&-b")))
    root = ElementTree.fromstring(render_outline_svg(outline, "Tree <1>"))
    assert root.findtext("{http://www.w3.org/2000/svg}title") == "Tree <1>"
    assert len(root.findall("{http://www.w3.org/2000/svg}text")) == count_lines(outline) == 6


def test_a_large_tree_is_cut_and_the_cut_is_said():
    leaves = tuple(Branch(f"s{i}") for i in range(500))
    shown = shorten([Branch("root", below=leaves)], 100)
    assert count_lines(shown) <= 100
    assert shown[0].below[-1].label.endswith("more")
    wide = shorten([Branch(f"b{i}") for i in range(500)], 100)
    assert wide[-1].label == "… 400 more"
