"""The rim of torch.distributed: ranks find each other through a file that rank 0 publishes.

Rank 0 opens a TCPStore on a port that the system chooses, so two trials on a node never collide.
"""

import fcntl
import json
import os
import socket
import struct
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist

from windtunnel.artifacts import write_atomic
from windtunnel.comm.ranks import RankEnv
from windtunnel.errors import ClusterError, RendezvousError

_POLL_S = 0.02
_SIOCGIFADDR = 0x8915  # netdevice(7): an interface's IPv4 address


def init_process_group(rendezvous: Path, env: RankEnv, *, backend: str, timeout_s: float) -> None:
    """Join the default process group; `rendezvous` is a path of this attempt alone, that all ranks see.

    `timeout_s` bounds the meeting and every later collective. Raises RendezvousError when they do not meet.
    """
    timeout = timedelta(seconds=timeout_s)
    store = _open_store(rendezvous, env, timeout_s) if env.rank == 0 else _join_store(rendezvous, env, timeout_s)
    try:
        dist.init_process_group(backend, store=store, rank=env.rank, world_size=env.world_size, timeout=timeout)
    except dist.DistError as error:
        raise RendezvousError(
            f"rank {env.rank} of {env.world_size} waited {timeout_s:g} s for the others: {error}"
        ) from error


def _open_store(rendezvous: Path, env: RankEnv, timeout_s: float) -> Any:
    store = _make_store("localhost", 0, world_size=env.world_size, serve=True, timeout_s=timeout_s)
    place = {"host": socket.gethostname(), "address": read_address(), "port": store.port}
    write_atomic(rendezvous, json.dumps(place).encode())
    return store


def _join_store(rendezvous: Path, env: RankEnv, timeout_s: float) -> Any:
    deadline = time.monotonic() + timeout_s
    while not rendezvous.exists():
        if time.monotonic() > deadline:
            raise RendezvousError(
                f"rank {env.rank} waited {timeout_s:g} s for {rendezvous}, which rank 0 publishes: "
                "rank 0 did not start, or this node does not see that folder"
            )
        time.sleep(_POLL_S)
    place = json.loads(rendezvous.read_text())
    host = "localhost" if place["host"] == socket.gethostname() else place["address"]
    left_s = max(1.0, deadline - time.monotonic())
    try:
        return _make_store(host, place["port"], world_size=env.world_size, serve=False, timeout_s=left_s)
    except dist.DistError as error:
        raise RendezvousError(
            f"rank {env.rank} cannot reach rank 0 at {host}:{place['port']} (host {place['host']}): {error}; "
            "name the training network in cluster.network_interface"
        ) from error


def _make_store(host: str, port: int, *, world_size: int, serve: bool, timeout_s: float) -> Any:
    kind: Any = dist.TCPStore  # type: ignore[attr-defined]  # public, but missing from the package's list of names
    return kind(host, port, world_size, is_master=serve, timeout=timedelta(seconds=timeout_s), wait_for_workers=False)


def read_address(interface: str | None = None) -> str:
    """This host's address for other ranks: that of the training interface, its host name where none is named."""
    if interface is None:
        interface = os.environ.get("GLOO_SOCKET_IFNAME", "")
    name = interface.split(",")[0]
    if not name:
        return socket.gethostname()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            packed = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
        except OSError as error:
            known = ", ".join(other for _, other in socket.if_nameindex())
            raise ClusterError(
                f"network interface {name!r} has no IPv4 address on {socket.gethostname()} ({error.strerror}); "
                f"interfaces here: {known}: set cluster.network_interface"
            ) from error
    return socket.inet_ntoa(packed[20:24])


class TorchComm:
    """The Comm of the default process group; for small Python objects, between steps and not within them."""

    def __init__(self) -> None:
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()

    def barrier(self) -> None:
        """Return once every rank is here."""
        dist.barrier()

    def gather(self, value: Any) -> list[Any] | None:
        """On rank 0 the values of all ranks in rank order; None elsewhere."""
        values: list[Any] | None = [None] * self.size if self.rank == 0 else None
        dist.gather_object(value, values, dst=0)
        return values

    def allgather(self, value: Any) -> list[Any]:
        """The values of all ranks in rank order, on every rank."""
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values
