from fabric_samples import HWLOC, NCCL_XML
from windtunnel.fabric.cpusets import read_list, read_mask, render_list
from windtunnel.fabric.facts import collect_facts
from windtunnel.fabric.hwloc import parse_hwloc
from windtunnel.fabric.nccl_graph import parse_graph
from windtunnel.fabric.sysfs import parse_sysfs


def test_counts_and_version_are_read():
    facts = collect_facts(parse_hwloc(HWLOC))
    assert (facts["packages"], facts["numa"], facts["pu"], facts["pcidev"], facts["osdev"]) == (2, 2, 4, 2, 4)
    assert (facts["xml_version"], facts["loads_in_hwloc_2_9"], facts["distances"]) == ("2.0", True, 1)


def test_devices_have_the_locality_of_what_they_hang_from():
    machine = parse_hwloc(HWLOC).machine
    gpu, nic = machine.devices
    assert (gpu.kind, gpu.name, gpu.numa, gpu.cpus) == ("gpu", "cuda0", "0", "0-1")
    assert gpu.bus == ("0000:[00-1f]", "0000:01:00.0")
    assert (nic.kind, nic.name, nic.osdevs) == ("nic", "mlx5_0", ("ib0", "mlx5_0"))


def test_distances_in_pieces_are_put_together():
    (matrix,) = parse_hwloc(HWLOC).machine.matrices
    assert (matrix.objects, matrix.values) == (("NUMANode:0", "NUMANode:1"), (10, 21, 21, 10))


def test_a_matrix_with_too_few_values_has_none():
    topology = parse_hwloc(HWLOC.replace("21 10 </u64values>", "21 </u64values>"))
    assert topology.machine.matrices[0].values == ()
    assert topology.find("short-matrix")


def test_version_three_is_read_and_said_to_be_refused_by_hwloc_two():
    assert collect_facts(parse_hwloc(HWLOC.replace('"2.0"', '"3.0"')))["loads_in_hwloc_2_9"] is False


def test_version_one_calls_packages_sockets():
    text = '<topology><object type="Machine" cpuset="0x1"><object type="Socket" cpuset="0x1"/></object></topology>'
    facts = collect_facts(parse_hwloc(text))
    assert (facts["packages"], facts["xml_version"]) == (1, "1")


def test_a_file_cut_short_is_one_error_with_line_and_column():
    cut = HWLOC[:900]
    (error,) = parse_hwloc(cut).errors
    assert (error.code, error.line) == ("xml", cut.count("\n") + 1)
    assert error.column is not None


def test_deep_nesting_is_read():
    depth = 3000
    text = "<topology>" + '<object type="Machine">' + '<object type="Group">' * depth + "</object>" * (depth + 1)
    assert not parse_hwloc(text + "</topology>").errors


def test_entities_that_grow_without_end_are_refused():
    entities = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10 if i else "x" * 10}">' for i in range(9))
    assert parse_hwloc(f"<!DOCTYPE topology [{entities}]><topology>&a8;</topology>").errors


def test_nccls_devices_follow_from_their_class_and_from_what_is_inside():
    topology = parse_graph(NCCL_XML)
    facts = collect_facts(topology)
    assert (facts["cpus"], facts["gpus"], facts["nics"], facts["nets"]) == (2, 1, 2, 2)
    assert (facts["pci"], facts["nvlink_entries"]) == (3, 1)
    gpu, nic, lone = topology.machine.devices
    assert (gpu.name, gpu.numa, gpu.cpus, gpu.bus) == ("GPU0", "0", "0-15", ("0000:01:00.0",))
    assert (nic.name, lone.name, lone.numa, lone.cpus) == ("mlx5_0", "eth0", None, "16-31")


def test_another_root_is_refused():
    assert parse_graph("<graphs/>").errors[0].code == "not-nccl"
    assert parse_hwloc("<system/>").errors[0].code == "not-hwloc"


def test_sysfs_gives_devices_by_class_and_unknown_numa_where_the_firmware_is_silent():
    pci = "bus/pci/devices"
    files = {
        f"{pci}/0000:01:00.0/class": "0x030200\n",
        f"{pci}/0000:01:00.0/numa_node": "-1\n",
        f"{pci}/0000:01:00.0/local_cpulist": "0-3\n",
        f"{pci}/0000:02:00.0/class": "0x020700\n",
        f"{pci}/0000:02:00.0/numa_node": "1\n",
        f"{pci}/0000:02:00.0/infiniband/mlx5_0/node_guid": "x",
        f"{pci}/0000:00:1f.0/class": "0x060100\n",
        "devices/system/node/node0/cpulist": "0-3\n",
        "devices/system/node/node0/distance": "10\n",
    }
    machine = parse_sysfs(files).machine
    assert [(d.name, d.kind, d.numa) for d in machine.devices] == [
        ("0000:01:00.0", "gpu", None),
        ("mlx5_0", "nic", "1"),
    ]
    assert (machine.pci_devices, machine.numa[0].cpus, machine.matrices[0].values) == (3, "0-3", (10,))


def test_masks_and_lists_of_cpus():
    assert read_mask("0x00000001,0x00000003") == (0, 1, 32)
    assert read_mask("0xf...f,0x00000001") is None
    assert render_list((0, 1, 2, 5, 7, 8)) == "0-2,5,7-8"
    assert read_list("0-2,5") == (0, 1, 2, 5)
    assert read_list("0-2,x") is None
