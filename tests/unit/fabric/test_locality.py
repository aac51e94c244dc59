from fabric_samples import MATRIX
from windtunnel.fabric.locality import complete_machine, read_gpu_buses
from windtunnel.fabric.nvidia_matrix import parse_matrix
from windtunnel.fabric.sysfs import parse_sysfs

PCI = "bus/pci/devices"
SYSFS = {
    f"{PCI}/0000:07:00.0/class": "0x030200",
    f"{PCI}/0000:07:00.0/numa_node": "3",
    f"{PCI}/0000:07:00.0/local_cpulist": "0-15,32-47",
    f"{PCI}/0000:0a:00.0/class": "0x020700",
    f"{PCI}/0000:0a:00.0/numa_node": "3",
    f"{PCI}/0000:0a:00.0/infiniband/mlx5_0/node_guid": "x",
    "devices/system/node/node3/cpulist": "0-15,32-47",
}
BUSES = {"GPU0": "0000:07:00.0"}


def complete(text):
    return complete_machine(parse_matrix(text), parse_sysfs(SYSFS), BUSES)


def device(topology, name):
    return next(device for device in topology.machine.devices if device.name == name)


def test_blank_and_clipped_affinities_are_those_of_the_hardware():
    for cell in ("", "0,2,4,6,8,10"):
        topology = complete(MATRIX.replace("\t0-15,32-47\t0\t", f"\t{cell}\t\t"))
        gpu = device(topology, "GPU0")
        assert (gpu.cpus, gpu.numa, gpu.pci) == ("0-15,32-47", "3", "0000:07:00.0")
        assert not topology.find("affinity-clipped")


def test_what_the_matrix_says_is_kept():
    topology = complete(MATRIX)
    assert (device(topology, "GPU0").cpus, device(topology, "GPU0").numa) == ("0-15,32-47", "0")
    assert device(topology, "GPU1") == device(parse_matrix(MATRIX), "GPU1")


def test_adapters_are_found_by_the_name_of_the_legend():
    assert (device(complete(MATRIX), "NIC0").numa, device(complete(MATRIX), "NIC1").numa) == ("3", None)


def test_buses_are_written_as_sysfs_does():
    rows = "0, GPU-x, NVIDIA H100, 00000000:07:00.0\n1, cut"
    assert read_gpu_buses(rows, ("index", "uuid", "name", "pci.bus_id")) == {"GPU0": "0000:07:00.0"}
