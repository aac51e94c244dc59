"""Free TCP ports for a testbed without namespaces, whose daemons share this machine's loopback."""

import socket

from windtunnel.errors import ClusterError
from windtunnel.testbed.spec import Ports

_FIRST, _LAST = 20000, 32000  # below the range that the kernel gives to outgoing connections


def find_ports(nodes: int, *, network: bool) -> Ports:
    """Slurm's usual ports inside namespaces, else the first run of free ones."""
    if network:
        return Ports()
    wanted = nodes + 2
    for base in range(_FIRST, _LAST, wanted):
        if all(_is_free(base + offset) for offset in range(wanted)):
            return Ports(controller=base, database=base + 1, node=base + 2)
    raise ClusterError(f"no {wanted} free ports in a row between {_FIRST} and {_LAST}: use fewer --nodes")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
