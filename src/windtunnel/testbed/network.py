"""The virtual network: one namespace a host, and one for the switches, so that this machine's own is never touched.

Each leaf is a bridge joined to the spine's bridge; a token bucket shapes both directions of every link.
"""

import os
from dataclasses import dataclass

from windtunnel.process import run_command
from windtunnel.testbed.hosts import host_env
from windtunnel.testbed.places import namespace_file
from windtunnel.testbed.spec import FABRIC, PREFIX_BITS, SPINE, ClusterSpec, Host, all_hosts, leaf_names, login_host

# A bucket must hold at least one segment that the kernel has not yet split (64 KiB), and 10 ms of the rate.
_MIN_BURST_BYTES = 131072


@dataclass(frozen=True)
class Batch:
    """Lines for one run of `ip` or `tc` in one namespace."""

    namespace: str
    tool: str
    lines: tuple[str, ...]


def namespace_names(spec: ClusterSpec) -> tuple[str, ...]:
    """The network namespaces to make: the switches' and one a host."""
    return (FABRIC, *(host.name for host in all_hosts(spec))) if spec.network else ()


def plan_network(spec: ClusterSpec) -> tuple[Batch, ...]:
    """What builds and shapes the network inside its namespaces, in order."""
    hosts = all_hosts(spec)
    fabric = ["link set lo up", *_add_bridge(SPINE)]
    for leaf in leaf_names(spec):
        fabric += _add_bridge(leaf)
        fabric += [f"link add {leaf}-up type veth peer name {SPINE}-{leaf}"]
        fabric += _attach(f"{leaf}-up", leaf) + _attach(f"{SPINE}-{leaf}", SPINE)
    for host in hosts:
        target = namespace_file(spec.folder, host.name)
        fabric += [f"link add sw-{host.name} type veth peer name eth0 netns {target}"]
        fabric += _attach(f"sw-{host.name}", host.switch)
    batches = [Batch(FABRIC, "ip", tuple(fabric)), Batch(FABRIC, "tc", _shape_fabric(spec, hosts))]
    for host in hosts:
        batches.append(Batch(host.name, "ip", _address(host)))
        batches.append(Batch(host.name, "tc", _shape("eth0", _host_mbit(spec, host))))
    return tuple(batch for batch in batches if batch.lines)


def can_use_namespaces() -> bool:
    """Whether this user may make namespaces; root in a container often may not."""
    return os.geteuid() == 0 and run_command(["unshare", "--net", "--mount", "--uts", "true"], check=False).code == 0


def run_network(spec: ClusterSpec) -> None:
    """Make the namespaces, then run the plan in them."""
    env = host_env(spec)  # the mark lets `down` find a command that outlives a killed `up`
    for name in namespace_names(spec):
        path = namespace_file(spec.folder, name)
        path.touch()
        run_command(["unshare", f"--net={path}", "true"], env=env)
    for batch in plan_network(spec):
        path = namespace_file(spec.folder, batch.namespace)
        argv = ["nsenter", f"--net={path}", batch.tool, "-batch", "-"]
        run_command(argv, stdin="\n".join(batch.lines) + "\n", env=env)


def _add_bridge(name: str) -> list[str]:
    return [f"link add {name} type bridge", f"link set {name} addrgenmode none", f"link set {name} up"]


def _attach(link: str, bridge: str) -> list[str]:
    return [f"link set {link} addrgenmode none", f"link set {link} master {bridge}", f"link set {link} up"]


def _address(host: Host) -> tuple[str, ...]:
    return (
        "link set lo up",
        "link set eth0 addrgenmode none",  # one address a host: Gloo could pick a link-local one
        f"addr add {host.address}/{PREFIX_BITS} dev eth0",
        "link set eth0 up",
    )


def _shape_fabric(spec: ClusterSpec, hosts: tuple[Host, ...]) -> tuple[str, ...]:
    lines: tuple[str, ...] = ()
    for leaf in leaf_names(spec):
        lines += _shape(f"{leaf}-up", spec.leaf_mbit) + _shape(f"{SPINE}-{leaf}", spec.leaf_mbit)
    for host in hosts:
        lines += _shape(f"sw-{host.name}", _host_mbit(spec, host))
    return lines


def _host_mbit(spec: ClusterSpec, host: Host) -> int:
    """The login host has an unshaped link: it carries no training."""
    return 0 if host == login_host(spec) else spec.node_mbit


def _shape(device: str, mbit: int) -> tuple[str, ...]:
    if not mbit:
        return ()
    burst = max(_MIN_BURST_BYTES, mbit * 1_000_000 // 8 // 100)
    return (f"qdisc add dev {device} root tbf rate {mbit}mbit burst {burst} latency 50ms",)
