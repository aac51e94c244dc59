"""`windtunnel sweep` with fake ranks: `fake_driver.py ROOT [--unchecked]` runs what lies in ROOT/study."""

import sys
from pathlib import Path

from windtunnel.artifacts import write_artifact
from windtunnel.errors import WindtunnelError
from windtunnel.identity import read_identity
from windtunnel.launch.run import run_sweep
from windtunnel.records.data import Column, ShardManifest
from windtunnel.records.plan import Identity, Plan, PlannedTrial
from windtunnel.records.trial import Sweep
from windtunnel.settings.base import read_settings
from windtunnel.settings.study import SweepStageSettings

sys.path.insert(0, str(Path(__file__).parent))
from fake_trials import SUPERVISOR


def write_study(
    root: Path,
    trials: "list[PlannedTrial]",
    settings: SweepStageSettings,
    *,
    identity: Identity | None = None,
) -> None:
    """Lay a study out as the stages before the sweep leave it."""
    columns = (Column("time_ns", "int64"), Column("price", "float64"), Column("x", "float32"))
    features = ShardManifest("features", "made_up", "daily", columns, (), (), "")
    write_artifact(root / "MANIFEST.json", features)
    plan = Plan(settings.study, identity or read_identity(root / "MANIFEST.json"), tuple(trials), ())
    write_artifact(root / "study" / "plan.json", plan)
    (root / "study" / "sweep.yaml").write_text(settings.model_dump_json())


def run_study(root: Path, *, check: bool = True) -> Sweep:
    """The sweep of the study in `root`; without `check` what Slurm refuses is met on the way."""
    topology = root / "topology.json"
    return run_sweep(
        read_settings(SweepStageSettings, root / "study" / "sweep.yaml"),
        plan=root / "study" / "plan.json",
        features=root / "MANIFEST.json",
        topology=topology if topology.exists() else None,
        store=root,
        import_root="",
        out=root / "study" / "sweep.json",
        supervisor=SUPERVISOR,
        check=check,
    )


if __name__ == "__main__":
    try:
        run_study(Path(sys.argv[1]), check="--unchecked" not in sys.argv)
    except WindtunnelError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
