import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_samples import LIST, MATRIX, P2P
from windtunnel.fabric.facts import collect_facts
from windtunnel.fabric.nvidia_cells import is_clipped
from windtunnel.fabric.nvidia_list import parse_list
from windtunnel.fabric.nvidia_matrix import parse_matrix

HEADER = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"


def cells(text, gpu="GPU1"):
    machine = parse_matrix(text).machine
    device = next(device for device in machine.devices if device.name == gpu)
    return device.cpus, device.numa, device.memory_numa


def test_links_affinities_and_names_are_read():
    facts = collect_facts(parse_matrix(MATRIX))
    assert facts["gpu0_links"] == {"GPU1": "NV4", "NIC0": "PXB", "NIC1": "SYS"}
    assert facts["nic_closest"] == {"NIC0": ["GPU0"], "NIC1": ["GPU1"]}
    assert facts["nic_legend"] == {"NIC0": "mlx5_0", "NIC1": "mlx5_bond_1"}
    assert (facts["numa"], facts["gpu_numa_id"]) == ({"GPU0": "0", "GPU1": "1"}, "N/A")
    assert (facts["truncated"], facts["symmetric"]) == (False, True)


def test_the_underlined_header_of_a_terminal_is_read():
    underlined = MATRIX.replace("\tGPU0\tGPU1\tNIC0", "\t\x1b[4mGPU0\tGPU1\tNIC0").replace("ID\n", "ID\x1b[0m\n", 1)
    assert parse_matrix(underlined).machine == parse_matrix(MATRIX).machine


ROWS = {
    "cpus": ("\t\t1\t\tN/A", ("", "1", "N/A")),
    "numa": ("\t0-3\t\t\tN/A", ("0-3", "", "N/A")),
    "memory": ("\t0-3\t1\t\t", ("0-3", "1", "")),
    "all": ("\t\t\t\t", ("", "", "")),
    "none": ("\t0-3\t1\t\tN/A", ("0-3", "1", "N/A")),
}


@pytest.mark.parametrize("blank", ROWS)
@pytest.mark.parametrize("indent", [0, 4])
def test_blank_cells_are_blank_also_where_a_terminal_made_blanks_of_tabs(blank, indent):
    row, wanted = ROWS[blank]
    text = f"{HEADER}GPU0\t X \tSYS\t0-15,128-143\t0\t\tN/A\nGPU1\tSYS\t X {row}\n"
    assert cells(text) == wanted
    expanded = "\n".join(" " * indent + line.expandtabs(8) for line in text.splitlines()) + "\n"
    assert cells(expanded) == wanted


def test_a_header_that_lost_the_blanks_before_it_does_not_move_cells():
    row, wanted = ROWS["cpus"]
    text = f"{HEADER}GPU0\t X \tSYS\t0-15,128-143\t0\t\tN/A\nGPU1\tSYS\t X {row}\n".expandtabs(8)
    assert cells(text.lstrip()) == wanted


def test_blank_cells_among_tabs_set_by_hand_are_unknown():
    text = "\tGPU0\t\tGPU1\t\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t\tX\t\tSYS\t\t\t0\n"
    assert cells(text, "GPU0") == (None, None, None)


def test_cells_that_stand_below_no_column_are_unknown():
    text = "      GPU0  CPU Affinity  NUMA Affinity\nGPU0   X        7\n"
    topology = parse_matrix(text)
    assert cells(text, "GPU0") == (None, None, None)
    assert topology.find("unplaced-cells")[0].line == 2


def test_a_table_without_its_last_rows_says_what_it_does_not_know():
    cut = "".join(MATRIX.splitlines(keepends=True)[:2]).rstrip("\n")
    facts = collect_facts(parse_matrix(cut))
    assert (facts["n_gpus"], facts["n_rows"], facts["truncated"]) == (2, 1, True)
    assert facts["nic_closest"] == {"NIC0": None, "NIC1": None}
    assert (facts["n_numa"], facts["cpu_affinity_sets"], facts["gpu_numa_id"]) == (None, None, {})


@pytest.mark.parametrize("end", ["0-15,3", "0-15,32-47"])
def test_the_last_cell_of_a_table_cut_inside_a_row_is_unknown(end):
    text = f"\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t{end}"
    assert cells(text, "GPU0")[0] is None
    assert cells(f"{text}\t\n", "GPU0")[0] == end


def test_a_row_cut_inside_its_codes_keeps_those_before():
    machine = parse_matrix("\tGPU0\tGPU1\tGPU2\nGPU0\t X \tNV12\tNV1").machine
    assert machine.link("GPU0", "GPU1") == "NV12"
    assert machine.link("GPU0", "GPU2") is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\tGPU0\nGPU0\tX\nGPU1\tX\n", "more GPU rows than GPU columns"),
        ("\tGPU0\tGPU1\nGPU0\tNV1\tX\nGPU1\tX\tNV1\n", "diagonal X not on the diagonal"),
        ("\tGPU0\tGPU1\nGPU0\tX\tNV1\nGPU0\tX\tNV1\n", "row GPU0 is there twice"),
        ("nothing", "no line names the columns GPU0 …"),
    ],
)
def test_a_matrix_that_contradicts_itself_is_refused(text, reason):
    facts = collect_facts(parse_matrix(text))
    assert facts["malformed"]
    assert reason in facts["reason"]


def test_numa_nodes_that_the_driver_does_not_tell_are_unknown():
    facts = collect_facts(parse_matrix(MATRIX.replace("\t0\t\tN/A", "\tN/A\t\tN/A")))
    assert facts["numa"] == {"GPU0": "N/A", "GPU1": "1"}
    assert (facts["n_numa"], facts["islands_by_numa"]) == (None, None)


def test_peer_to_peer_matrices_are_another_kind():
    facts = collect_facts(parse_matrix(P2P))
    assert (facts["kind"], facts["n_gpus"], facts["all"]) == ("nvidia-smi-p2p", 2, "OK")


@pytest.mark.parametrize(
    ("cpus", "clipped"),
    [
        ("0,2,4,6,8,10", True),
        ("1,5,9,13", True),
        ("0-3,8-", True),
        ("0,2", False),
        ("0-15,32-47", False),
        ("", False),
    ],
)
def test_lists_with_gaps_are_taken_for_clipped(cpus, clipped):
    assert is_clipped(cpus) is clipped


CODES = st.sampled_from(["NV1", "NV18", "PIX", "PXB", "PHB", "NODE", "SYS"])


@st.composite
def matrices(draw):
    count = draw(st.integers(1, 5))
    names = [f"GPU{i}" for i in range(count)] + [f"mlx5_{i}" for i in range(draw(st.integers(0, 3)))]
    codes = {(a, b): draw(CODES) for i, a in enumerate(names) for b in names[i + 1 :]}
    affinities = [draw(st.sampled_from(["", "0-3", "0-15,32-47", "112-127,240-255"])) for _ in range(count)]
    return names, codes, affinities


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(matrices(), st.booleans())
def test_what_is_printed_is_read_back(matrix, expand):
    names, codes, affinities = matrix
    lines = ["\t" + "\t".join([*names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])]
    for i, a in enumerate(names):
        row = [a, *(" X " if a == b else codes.get((a, b)) or codes[b, a] for b in names)]
        lines.append("\t".join(row + ([affinities[i], str(i), "", "N/A"] if i < len(affinities) else [])))
    text = "\n".join(line.expandtabs(8) if expand else line for line in lines)
    machine = parse_matrix(text + "\n").machine
    assert [device.name for device in machine.devices] == names
    assert all(machine.link(a, b) == machine.link(b, a) == code for (a, b), code in codes.items())
    assert [device.cpus for device in machine.of_kind("gpu")] == affinities
    assert [device.numa for device in machine.of_kind("gpu")] == [str(i) for i in range(len(affinities))]


def test_mig_devices_are_counted_once_over_several_listings():
    facts = collect_facts(parse_list(LIST + LIST))
    assert (facts["n_gpus"], facts["mig_devices"]) == (2, 2)
    assert facts["profiles"] == {"3g.40gb": 1, "4g.40gb": 1}


def test_a_listing_of_ranks_with_labels_is_read():
    labelled = "".join(f"3: {line}\n" for line in LIST.splitlines())
    assert collect_facts(parse_list(labelled))["n_gpus"] == 2
