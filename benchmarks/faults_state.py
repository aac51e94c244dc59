"""What the parts about faults save: states that anybody makes again from their step, and checkpoints of them."""

import multiprocessing
import os
import shutil
from pathlib import Path

import torch
from torch import Tensor

from windtunnel.checkpoints.dcp import load_tensors
from windtunnel.checkpoints.fence import Fence
from windtunnel.checkpoints.manifest import CheckpointManifest
from windtunnel.checkpoints.retention import Retention
from windtunnel.checkpoints.saver import Saver
from windtunnel.comm.base import Comm
from windtunnel.comm.ranks import RankEnv
from windtunnel.comm.single import SingleComm
from windtunnel.comm.torch import TorchComm, init_process_group
from windtunnel.units import MIB

_TIMEOUT_S = 120.0


def make_state(step: int, *, mib: float = 5.0, parts: int = 5, rank: int = 0) -> dict[str, Tensor]:
    """Random numbers of so many MiB in so many tensors, the same for the same step and rank; and the step itself."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    size = int(mib * MIB / parts / 4)
    state = {f"rank-{rank}.w{part}": torch.randn(size, generator=generator) for part in range(parts)}
    return {**state, f"rank-{rank}.step": torch.tensor(step)}


def make_manifest(step: int, *, world_size: int = 1) -> CheckpointManifest:
    """What such a checkpoint says of where it comes from."""
    return CheckpointManifest("faults", step, world_size, "settings", "source")


def open_saver(folder: Path, *, asynchronous: bool = False, comm: Comm | None = None, newest: int = 2) -> Saver:
    """What writes them, without a lease."""
    return Saver(
        folder, comm=comm or SingleComm(), fence=Fence(), retention=Retention(newest), asynchronous=asynchronous
    )


def save_state(folder: Path, step: int, *, mib: float = 5.0) -> None:
    """A checkpoint of one rank, retention left out."""
    saver = open_saver(folder, newest=99)
    saver.save(make_state(step, mib=mib), make_manifest(step))
    saver.wait()


def holds_state(path: Path, step: int, *, mib: float = 5.0) -> bool:
    """Whether the checkpoint of one rank has the tensors of that step, bit by bit."""
    wanted = make_state(step, mib=mib)
    found = {name: torch.empty_like(tensor) for name, tensor in wanted.items()}
    load_tensors(path, found)
    return all(torch.equal(found[name], tensor) for name, tensor in wanted.items())


def save_by_ranks(folder: Path, step: int, *, ranks: int, mib: float, state_of: int | None = None) -> None:
    """A checkpoint of several ranks over Gloo, each with so many MiB of its own; of another step's state if asked."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["windtunnel.training.run", "torch._dynamo"])
    rendezvous = folder.with_name(f"rendezvous-{folder.name}-{step}.json")
    more = {"mib": mib, "state_of": step if state_of is None else state_of}
    children = [
        context.Process(target=_save_rank, args=(folder, rendezvous, step, RankEnv(rank, ranks)), kwargs=more)
        for rank in range(ranks)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(_TIMEOUT_S)
    codes = [child.exitcode for child in children]
    assert codes == [0] * ranks, f"the ranks that save ended with {codes}"


def link_checkpoints(source: Path, target: Path) -> None:
    """The same checkpoints in another folder: published files are never written to, so links are enough."""
    shutil.copytree(source, target, copy_function=os.link)


def _save_rank(folder: Path, rendezvous: Path, step: int, env: RankEnv, *, mib: float, state_of: int) -> None:
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    init_process_group(rendezvous, env, backend="gloo", timeout_s=_TIMEOUT_S)
    saver = open_saver(folder, comm=TorchComm(), newest=99)
    saver.save(make_state(state_of, mib=mib, rank=env.rank), make_manifest(step, world_size=env.world_size))
    saver.wait()
    torch.distributed.destroy_process_group()
