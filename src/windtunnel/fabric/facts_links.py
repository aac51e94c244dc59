"""Facts of nvidia-smi's matrices: links, affinities, which adapters are near which GPUs. Pure."""

from typing import Any

from windtunnel.fabric.machine import LINK_ALIASES, LINK_ORDER, Machine, nearness, normal_code
from windtunnel.fabric.nvidia_matrix import is_symmetric
from windtunnel.fabric.topology import Topology, unique

_FAR = LINK_ORDER.index("SYS")


def collect_link_facts(topology: Topology) -> dict[str, Any]:
    """Facts of `nvidia-smi topo -m`; of a malformed matrix only what its rows and columns are."""
    machine = topology.machine or Machine()
    gpus = [device.name for device in machine.of_kind("gpu")]
    rows = [row for row in machine.rows if row in gpus]
    if topology.errors:
        extra = [row for row in rows if not any(link.b == row for link in machine.links)]
        return {"header_gpus": len(gpus) - len(extra), "row_gpus": len(rows), "n_rows": len(machine.rows)}
    codes = {link.code for link in machine.links}
    return {
        "n_gpus": len(gpus),
        "n_nics": len(machine.of_kind("nic")),
        "n_rows": len(machine.rows),
        "nic_names": [device.name for device in machine.of_kind("nic")],
        "nic_legend": {device.name: device.alias for device in machine.devices if device.alias is not None},
        "truncated": bool(topology.find("truncated")),
        "header_broken": bool(topology.find("header-broken")),
        "symmetric": is_symmetric(machine),
        "alias": {old: new for old, new in LINK_ALIASES.items() if old in codes},
        **_collect_gpu_facts(machine, gpus),
        **_collect_nic_facts(machine, gpus),
        **_collect_affinity_facts(topology, machine),
    }


def collect_p2p_facts(topology: Topology) -> dict[str, Any]:
    """Facts of `nvidia-smi topo -p2p`."""
    machine = topology.machine or Machine()
    codes = {link.code for link in machine.links if link.a != link.b}
    facts = {
        "n_gpus": len(machine.of_kind("gpu")),
        "all": codes.pop() if len(codes) == 1 else None,
        "truncated": bool(topology.find("truncated")),
        "codes": {f"{link.a}-{link.b}": link.code for link in machine.links if link.a != link.b},
    }
    return facts if not topology.errors else {"n_gpus": None}


def is_full_mesh(machine: Machine, gpus: list[str]) -> bool | None:
    """Whether NVLink joins every two GPUs; None where a missing row leaves it open, or where there is one GPU."""
    codes = [machine.link(a, b) for i, a in enumerate(gpus) for b in gpus[i + 1 :]]
    if any(code is not None and not code.startswith("NV") for code in codes):
        return False
    return True if codes and None not in codes else None


def _collect_gpu_facts(machine: Machine, gpus: list[str]) -> dict[str, Any]:
    names = set(gpus)
    links = [link for link in machine.links if link.a in names and link.a != link.b]
    first = gpus[0] if gpus else ""
    return {
        "gpu_links": sorted({link.code for link in links if link.b in names}),
        "nvlink_full_mesh": is_full_mesh(machine, gpus),
        "gpu0_links": {link.b: link.code for link in links if link.a == first},
    }


def _collect_nic_facts(machine: Machine, gpus: list[str]) -> dict[str, Any]:
    nics = [device.name for device in machine.of_kind("nic")]
    to_gpus = {nic: {gpu: machine.link(gpu, nic) for gpu in gpus} for nic in nics}
    pairs = [(a, b) for i, a in enumerate(nics) for b in nics[i + 1 :]]
    codes = {code for by_gpu in to_gpus.values() for code in by_gpu.values()}
    return {
        "nic_closest": {nic: find_closest(by_gpu) for nic, by_gpu in to_gpus.items()},
        "nic_pix": _nics_at("PIX", to_gpus, gpus),
        "nic_pxb": _nics_at("PXB", to_gpus, gpus),
        "nic_pairs_pix": [[a, b] for a, b in pairs if machine.link(a, b) == "PIX"],
        "unattached_nics": [nic for nic, by_gpu in to_gpus.items() if _is_unattached(by_gpu)],
        "gpu_nic_all": codes.pop() if len(codes) == 1 else None,
    }


def find_closest(by_gpu: dict[str, str | None]) -> list[str] | None:
    """GPUs that are nearest to an adapter; none where all are across the sockets, None where some link is unknown."""
    codes = {gpu: code for gpu, code in by_gpu.items() if code is not None}
    if len(codes) != len(by_gpu):
        return None
    best = min((nearness(code) for code in codes.values()), default=_FAR)
    return [gpu for gpu, code in codes.items() if nearness(code) == best] if best < _FAR else []


def _nics_at(code: str, to_gpus: dict[str, dict[str, str | None]], gpus: list[str]) -> dict[str, list[str]]:
    found = {gpu: [nic for nic, by_gpu in to_gpus.items() if by_gpu[gpu] == code] for gpu in gpus}
    return {gpu: nics for gpu, nics in found.items() if nics}


def _is_unattached(by_gpu: dict[str, str | None]) -> bool:
    return bool(by_gpu) and all(code is not None and normal_code(code) == "SYS" for code in by_gpu.values())


def _collect_affinity_facts(topology: Topology, machine: Machine) -> dict[str, Any]:
    gpus = machine.of_kind("gpu")
    numa = {gpu.name: gpu.numa for gpu in gpus if gpu.numa is not None}
    cpus = {gpu.name: gpu.cpus for gpu in gpus if gpu.cpus is not None}
    own = {gpu.name: gpu.memory_numa for gpu in gpus if gpu.memory_numa is not None}
    islands = [[int(name[3:]) for name in numa if numa[name] == node] for node in unique(numa.values())]
    all_cpus = len(cpus) == len(gpus) and not topology.find("affinity-clipped")
    all_numa = bool(gpus) and all(gpu.numa not in (None, "", "N/A") for gpu in gpus)
    return {
        "cpu_affinity": cpus,
        "cpu_affinity_sets": len(set(cpus.values()) - {""}) if all_cpus else None,
        "affinity_clipped": bool(topology.find("affinity-clipped")),
        "numa_column": "numa" in machine.columns,
        "numa": numa,
        "n_numa": len(islands) if all_numa else None,
        "islands_by_numa": islands if all_numa else None,
        "gpu_numa_id": next(iter(own.values())) if len(set(own.values())) == 1 and len(own) == len(gpus) else own,
    }
