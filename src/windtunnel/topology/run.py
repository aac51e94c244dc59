"""The topology stage: the facts of a partition, and a small all-reduce timed among the nodes of this job."""

from pathlib import Path

from windtunnel.artifacts import hash_json, write_artifact
from windtunnel.device.accelerator import count_accelerators, read_device
from windtunnel.fabric.placement import order_hosts, ring_crossings
from windtunnel.records.cluster import Collectives, CollectiveTiming, Topology
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.slurm.job import read_job_hosts
from windtunnel.topology.facts import read_facts
from windtunnel.topology.ranks import Measurement, run_measurement
from windtunnel.units import format_bytes, format_seconds

LOCAL_RANKS = 2


def run_topology(settings: ClusterSettings, *, out: Path, collectives: Path) -> Collectives:
    """Write `out` (Topology) and `collectives` (Collectives); on Slurm this runs inside a job of the partition.

    Raises ClusterError for an unknown partition or outside a job, before anything is measured or written.
    """
    topology = read_facts(settings)
    slurm = settings.kind == "slurm"
    hosts = read_job_hosts(settings.partition) if slurm else tuple(node.name for node in topology.nodes)
    measurement = plan_measurement(settings, topology, hosts)
    settings_hash = hash_json(settings)
    write_artifact(out, topology, settings_hash=settings_hash)
    _print_topology(topology, measurement.hosts)
    measured = run_measurement(measurement, folder=collectives.parent, slurm=slurm)
    record = Collectives(topology.partition, topology.fingerprint, measured.hosts, measured.timings)
    write_artifact(collectives, record, settings_hash=settings_hash)
    for timing in measured.timings:
        print(render_timing(timing), flush=True)
    return record


def plan_measurement(settings: ClusterSettings, topology: Topology, hosts: tuple[str, ...]) -> Measurement:
    """One rank a node in our order of hosts; one an accelerator where trials use them; two on a lone node."""
    devices = count_accelerators() if settings.gpus_per_rank else 0
    nccl = devices * len(hosts) > 1 and read_device().kind == "cuda"
    return Measurement(
        hosts=order_hosts(hosts, topology, "leaf"),
        ranks_per_node=devices if nccl else LOCAL_RANKS if len(hosts) == 1 else 1,
        backend="nccl" if nccl else "gloo",
        network_interface=settings.network_interface,
    )


def render_timing(timing: CollectiveTiming) -> str:
    """One line for people."""
    return (
        f"{timing.operation} of {format_bytes(timing.bytes)} over {timing.backend}, {timing.ranks} ranks on "
        f"{timing.nodes} nodes: {format_seconds(timing.median_s)} +- {format_seconds(timing.spread_s)} "
        f"({timing.repeats} repeats after 2 discarded), busbw {timing.busbw_gbps:.3g} GB/s"
    )


def _print_topology(topology: Topology, hosts: tuple[str, ...]) -> None:
    leaves = {node.switches for node in topology.nodes if node.switches}
    switches = f"{len(leaves)} leaf switches" if leaves else "switches unknown"
    print(f"partition {topology.partition}: {len(topology.nodes)} nodes, {switches}", flush=True)
    crossings = ring_crossings(hosts, topology)
    climbed = "" if crossings is None else f"; its ring climbs {crossings} levels of switches"
    print(f"rank order {','.join(hosts)}{climbed}", flush=True)
