import threading
from dataclasses import dataclass, field

import torch

from windtunnel.checkpoints.fence import Fence
from windtunnel.checkpoints.manifest import CheckpointManifest, list_checkpoints, step_of
from windtunnel.checkpoints.retention import Retention
from windtunnel.checkpoints.saver import Saver
from windtunnel.comm.single import SingleComm

_WAIT_S = 30.0


@dataclass(frozen=True)
class _SlowRemoval(Fence):
    """The question before a removal is answered when the test says so; what it asked for in vain is kept."""

    go: threading.Event = field(default_factory=threading.Event)
    in_vain: list[str] = field(default_factory=list)

    def check(self) -> None:
        if threading.current_thread().name.startswith("retention") and not self.go.wait(_WAIT_S):
            self.in_vain.append("nobody let the removal go on")


def test_a_save_does_not_wait_until_an_older_checkpoint_is_removed(tmp_path):
    fence = _SlowRemoval()
    saver = Saver(tmp_path, comm=SingleComm(), fence=fence, retention=Retention(1))
    for step in (1, 2, 3, 4):
        saver.save({"w": torch.ones(4)}, CheckpointManifest("trial", step, 1, "settings", "source"))
    fence.go.set()
    saver.wait()
    assert not fence.in_vain
    assert [step_of(path) for path in list_checkpoints(tmp_path)] == [4]
