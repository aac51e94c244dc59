from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_samples import ADDRESSES, SHOW_BLOCKS, SHOW_TREE
from windtunnel.fabric.facts import collect_facts
from windtunnel.fabric.slurm_address import parse_addresses
from windtunnel.fabric.slurm_show import parse_show
from windtunnel.hostlist import collapse_hostlist
from windtunnel.records.cluster import Switch


def test_nodes_of_several_levels_are_counted_once():
    facts = collect_facts(parse_show(SHOW_TREE))
    assert (facts["nodes"], facts["max_level"], facts["root"], facts["leaves"]) == (8, 1, "root", 2)


def test_aggregated_blocks_are_no_blocks():
    facts = collect_facts(parse_show(SHOW_BLOCKS))
    assert (facts["blocks"], facts["aggregated_blocks"], facts["nodes"]) == (2, 1, 8)
    assert (facts["block_size"], facts["block_sizes"], facts["levels"]) == (4, [4, 8], 2)


def test_blocks_of_releases_that_print_no_size_have_none():
    facts = collect_facts(parse_show("BlockName=b BlockIndex=0 Nodes=n[1-2]\n"))
    assert (facts["block_size"], facts["block_sizes"]) == (None, None)


def test_a_line_cut_by_the_terminal_leaves_its_nodes_unknown():
    topology = parse_show("SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-4\nSwitchName=s1 Lev")
    assert [finding.code for finding in topology.findings] == ["unreadable-list", "cut-record"]
    assert collect_facts(topology)["nodes"] is None


def test_records_on_one_line_are_told_apart():
    topology = parse_show(SHOW_TREE.replace("\n", " "))
    assert len(topology.switches) == 3
    assert collect_facts(topology)["glued"]


def test_no_topology_is_an_empty_one():
    topology = parse_show("No topology information available\n")
    assert (topology.plugin, topology.findings) == (None, ())


NAMES = st.lists(st.from_regex(r"[a-z][a-z-]{0,5}[0-9]{1,3}", fullmatch=True), min_size=1, max_size=6, unique=True)


@settings(max_examples=40, deadline=None, database=None, derandomize=True)
@given(st.lists(NAMES, min_size=1, max_size=4), st.integers(1, 400))
def test_what_is_printed_is_read_back(lists, speed):
    leaves = tuple(Switch(f"s{i}", 0, tuple(sorted(names)), (), speed) for i, names in enumerate(lists))
    lines = [f"SwitchName={s.name} Level=0 LinkSpeed={speed} Nodes={collapse_hostlist(s.nodes)}" for s in leaves]
    read = parse_show("\n".join(lines)).switches
    assert [(s.name, sorted(s.nodes), s.link_speed) for s in read] == [(s.name, list(s.nodes), speed) for s in leaves]


def test_each_nodes_own_place_makes_the_tree():
    facts = collect_facts(parse_addresses(ADDRESSES))
    assert (facts["nodes"], facts["levels"], facts["plugin"]) == (3, 3, "tree")
    assert facts["paths"]["n5"] == ["root", "p1", "s[2,4]"]


def test_the_variables_as_env_prints_them_are_read_by_rank():
    lines = ["0: SLURM_TOPOLOGY_ADDR=b1.n1", "1: SLURM_TOPOLOGY_ADDR=b2.n2"]
    lines += ["1: SLURM_TOPOLOGY_ADDR_PATTERN=block.node", "0: SLURM_TOPOLOGY_ADDR_PATTERN=block.node"]
    topology = parse_addresses("\n".join(lines))
    assert {host.name: host.path for host in topology.hosts} == {"n1": ("b1",), "n2": ("b2",)}
    assert topology.plugin == "block"


def test_dotted_names_are_unknown_unless_the_label_is_the_node():
    pattern = "switch.switch.node"
    known = parse_addresses(f"n1.example root.s0.n1.example {pattern}\n").hosts
    assert known[0].path == ("root", "s0")
    half = parse_addresses(f"n1 root.sw.a.0.n1 {pattern}\n")
    assert (half.hosts[0].name, half.hosts[0].path) == ("n1", None)
    topology = parse_addresses(f"0 root.sw.a.0.n1 {pattern}\n")
    assert (topology.hosts, collect_facts(topology)["nodes"]) == ((), None)


def test_a_flat_cluster_has_no_path():
    assert parse_addresses("0 n1 node\n").hosts[0].path == ()
