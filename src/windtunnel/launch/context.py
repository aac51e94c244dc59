"""What every trial of a sweep shares: its settings, its inputs, and the command that supervises a trial."""

import sys
from dataclasses import dataclass
from pathlib import Path

from windtunnel.ledger.layout import TrialFolder, trial_folder
from windtunnel.records.plan import Identity, PlannedTrial
from windtunnel.records.trial import TrialConfig
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.sweep import SweepSettings

SUCCEEDS = "--succeeds"
SUPERVISOR = (sys.executable, "-m", "windtunnel.cli.main", "trial")


@dataclass(frozen=True)
class SweepContext:
    """All paths are absolute: jobs run in other folders and on other hosts."""

    study: str
    cluster: ClusterSettings
    sweep: SweepSettings
    identity: Identity
    features: Path | None
    """Manifest of the feature shards; None for programs that read none."""
    topology: Path | None
    store: Path
    import_root: str
    jobs_dir: Path
    """Where submitit keeps its scripts, pickles and logs."""
    supervisor: tuple[str, ...] = SUPERVISOR
    """Started once a job, with its trials' folders after it."""

    def folder_of(self, trial: PlannedTrial) -> TrialFolder:
        """The trial's folder in the store."""
        return trial_folder(self.store, trial.id)

    def config_of(self, trial: PlannedTrial) -> TrialConfig:
        """What an attempt of the trial needs to know."""
        # The facts are of the study's own partition; a trial's shape may name another.
        known = self.topology is not None and trial.shape.partition == self.cluster.partition
        topology = str(self.topology) if known else ""
        features = str(self.features) if self.features is not None else ""
        lost = self.sweep.retries.lost
        check = self.sweep.check_nodes
        return TrialConfig(
            trial, self.identity, features, topology, self.import_root, lost_retries=lost, check_nodes=check
        )

    def command_of(self, *trials: PlannedTrial, succeeds: bool = False) -> tuple[str, ...]:
        """The command that runs the trials' next attempts, one after the other.

        One that `succeeds` an earlier job first looks whether there is anything left to do.
        """
        options = (SUCCEEDS,) if succeeds else ()
        return (*self.supervisor, *options, *(str(self.folder_of(trial).path) for trial in trials))
