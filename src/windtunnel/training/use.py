"""What one rank used in an attempt: time by phase, memory by kind, and for the first rank of a host its energy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windtunnel.device.energy import RAPL, Counter, count_joules, read_rapl
from windtunnel.records.meter import Energy, RankMemory, RankPhases
from windtunnel.training.context import Run
from windtunnel.training.memory import Saved, read_memory, read_peak_resident
from windtunnel.training.mesh import read_host
from windtunnel.training.resume import TrainState


@dataclass(frozen=True)
class RankUse:
    """Of one rank, up to the end of its loop."""

    host: str
    phases: RankPhases
    memory: RankMemory
    peak_resident_bytes: int
    leads_host: bool
    """Whether it tells for all ranks of its host."""
    joules: float | None
    """Of the whole host; None without a source, and from ranks that do not lead theirs."""


class Gauges:
    """What is read beside the steps; made before the first of them."""

    def __init__(self, state: TrainState) -> None:
        self.saved = Saved(state.model)
        self._energy: Mapping[str, Counter] = read_rapl()

    def read(self, run: Run, state: TrainState) -> RankUse:
        """This rank's use, after its last step."""
        leads = run.mesh.rank == run.hosts.index(run.hosts[run.mesh.rank])
        return RankUse(
            host=read_host(),
            phases=state.meters.phases,
            memory=read_memory(state.model, state.optimizer, run.mesh.device, saved=self.saved),
            peak_resident_bytes=read_peak_resident(),
            leads_host=leads,
            joules=count_joules(self._energy, read_rapl()) if leads else None,
        )


def add_energy(ranks: Sequence[RankUse]) -> Energy | None:
    """Of all hosts; None where one of them does not know."""
    joules = [rank.joules for rank in ranks if rank.leads_host]
    known = [value for value in joules if value is not None]
    return Energy(sum(known), RAPL) if known and len(known) == len(joules) else None
