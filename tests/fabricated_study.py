"""A study made up for tests of the report: its numbers are invented, and stand nowhere else."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from windtunnel.artifacts import write_artifact
from windtunnel.records.checks import CheckpointCheck, CheckpointReport, Latency, LatencyRow
from windtunnel.records.cluster import (
    Collectives,
    CollectiveTiming,
    DeviceFacts,
    Models,
    ModelTrace,
    Node,
    Operation,
    Rate,
    Topology,
)
from windtunnel.records.data import Column, InputFile, ShardManifest
from windtunnel.records.meter import Energy, FlopSource, RankMemory, RankPhases, StepWork
from windtunnel.records.plan import Identity, Plan, PlannedTrial, Pruned, Shape
from windtunnel.records.trial import AttemptEnd, Evaluation, StepRecord, Sweep, SweepEntry, TrialOutcome, Verdict
from windtunnel.report.collect import Collected
from windtunnel.report.compare import Criterion, Ranking, rank_rows
from windtunnel.report.rows import build_rows
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.report import ReportSettings
from windtunnel.settings.study import ReportStageSettings

STUDY = "made_up"
BENCHMARK = (
    "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"
    "12.5\t0:00:12\t210.5\t900.1\t180.2\t190.3\t1.5\t2.5\t95.0\t11.9\n"
)


@dataclass(frozen=True)
class Fake:
    """What a test says of one trial; the rest is made up around it."""

    name: str
    loss: float = 0.9
    samples_per_s: float = 1000.0
    verdict: Verdict = Verdict.COMPLETED
    repeat: int = 0
    evidence: str = ""
    accuracy: float = 0.55
    node_seconds: float = 360.0
    attempts: int = 1
    swings: tuple[float, ...] = ()
    """How far the loss of each part of the range is from the whole's."""
    verified: bool = True

    @property
    def id(self) -> str:
        return f"{self.name.replace(' ', '-')}-{self.repeat}"


def make_outcome(fake: Fake) -> TrialOutcome:
    step_s = 64 / fake.samples_per_s
    metrics = {"accuracy": fake.accuracy, "base_rate": 0.5}
    parts = tuple(fake.loss + swing for swing in fake.swings)
    evaluations = tuple(Evaluation(split, 600, fake.loss + shift, metrics, parts) for split, shift in EVALUATED)
    return TrialOutcome(
        trial_id=fake.id,
        attempt=fake.attempts,
        steps=200,
        final_train_loss=fake.loss,
        evaluations=evaluations,
        samples_per_s=fake.samples_per_s,
        step_s_median=step_s,
        step_s_p90=1.2 * step_s,
        steps_timed=190,
        steps_discarded=10,
        params=12345,
        peak_rss_mib=300.0,
        checkpoint="checkpoints/step-00000200",
        resumed_from_step=None,
        device="a CPU",
        rank_hosts=("n0", "n1"),
        phases_s={"setup": 1.0, "train": 20.0},
        work=StepWork(64, 640, "fp32").with_flops(10**9, 2 * 10**9, FlopSource.DECLARED),
        rank_memory=(RankMemory(10, 20, 30, 40, 5000, None, None),),
        energy=Energy(77.0, "rapl"),
        rank_phases=(RankPhases(20.0, 190, {"forward": 5.0, "backward": 14.9}),),
    )


EVALUATED = (("validation", 0.0), ("test", 0.01))


def make_entry(fake: Fake) -> SweepEntry:
    outcome = make_outcome(fake) if fake.verdict == Verdict.COMPLETED else None
    return SweepEntry(
        trial_id=fake.id,
        name=fake.name + (f" #{fake.repeat + 1}" if fake.repeat else ""),
        choices={"model": fake.name},
        verdict=fake.verdict,
        evidence=fake.evidence,
        attempts=fake.attempts,
        node_seconds=fake.node_seconds,
        outcome=outcome,
    )


def make_plan(fakes: tuple[Fake, ...]) -> Plan:
    trials = tuple(
        PlannedTrial(
            id=fake.id,
            name=fake.name,
            choices={"model": fake.name},
            settings={"model": fake.name, "dataset": "prices", "repeat": fake.repeat, "seed": 0},
            user_sha256="",
            shape=Shape(1, 2, 1, 0, 2048, 60, "local"),
        )
        for fake in fakes
    )
    pruned = (Pruned("tcn ddp7", {"parallelism": "ddp7"}, "7 ranks do not divide a batch of 64"),)
    return Plan(STUDY, Identity("d" * 64, "c" * 64, "2.13.0"), trials, pruned)


def make_settings(**report: Any) -> ReportStageSettings:
    return ReportStageSettings(
        study=STUDY,
        report=ReportSettings(**report),
        cluster=ClusterSettings(kind="local", partition="local", cost_per_node_hour=2.0),
    )


def write_study(root: Path, fakes: tuple[Fake, ...], *, planned: tuple[Fake, ...] = ()) -> dict[str, Any]:
    """All artifacts of a study below `root`; gives run_report's named inputs."""
    folder, trials = root / STUDY, root / "trials"
    inputs: dict[str, Any] = {
        "plan": write_artifact(folder / "plan.json", make_plan((*fakes, *planned))),
        "sweep": write_artifact(folder / "sweep.json", make_sweep(fakes, trials)),
        "checkpoints": write_artifact(folder / "checkpoints.json", make_checks(fakes)),
        "latency": write_artifact(folder / "latency.json", make_latency(fakes)),
        "models": write_artifact(folder / "models.json", make_models()),
        "topology": write_artifact(root / "cluster/local/topology.json", make_topology()),
        "collectives": write_artifact(root / "cluster/local/collectives.json", make_collectives()),
        "device": write_artifact(root / "cluster/local/device.json", make_device()),
        "benchmarks": (root / "benchmarks" / STUDY / "sweep.tsv",),
        "out": folder / "report.html",
        "metrics": folder / "metrics.parquet",
    }
    write_artifact(root / "shards/prices/MANIFEST.json", make_manifest())
    inputs["benchmarks"][0].parent.mkdir(parents=True, exist_ok=True)
    inputs["benchmarks"][0].write_text(BENCHMARK)
    for fake in fakes:
        _write_trial(trials / fake.id, fake)
    return inputs


def make_sweep(fakes: tuple[Fake, ...], trials: Path) -> Sweep:
    return Sweep(STUDY, str(trials), tuple(make_entry(fake) for fake in fakes), {})


def make_ranking(*fakes: Fake, criterion: Criterion = "validation_loss", planned: tuple[Fake, ...] = ()) -> Ranking:
    """The ranking of trials that no file holds."""
    collected = Collected(
        study=STUDY,
        plan=make_plan((*fakes, *planned)),
        sweep=make_sweep(fakes, Path("/nowhere")),
        checkpoints=make_checks(fakes),
        latency=make_latency(fakes),
        models=None,
        topology=None,
        collectives=None,
        device=None,
        data=None,
        steps={},
        attempts={},
        stages=(),
        stamps=(),
        missing=(),
    )
    return rank_rows(build_rows(collected, make_settings().cluster), criterion)


def make_checks(fakes: tuple[Fake, ...]) -> CheckpointReport:
    reason = "shard 0 has 12 bytes, expected 16"
    checks = [
        CheckpointCheck(f.id, f"/x/{f.id}", 200, 4096, f.verified, "" if f.verified else reason)
        for f in fakes
        if f.verdict == Verdict.COMPLETED
    ]
    return CheckpointReport(STUDY, tuple(checks))


def make_latency(fakes: tuple[Fake, ...]) -> Latency:
    done = [fake for fake in fakes if fake.verdict == Verdict.COMPLETED]
    rows = [LatencyRow(f.id, f.name, 110.0, 190.0 + i, 420.0, 2000, 200, "n0", "cpu") for i, f in enumerate(done)]
    return Latency(STUDY, tuple(rows), {f.id: "not completed" for f in fakes if f not in done})


def make_models() -> Models:
    operation = Operation("aten.mm", ((64, 32), (32, 2)), ((64, 2),), 8192)
    return Models((ModelTrace("tcn", "windtunnel.models.tcn.TCN", 12345, 64, 8192, (operation,)),))


def make_topology() -> Topology:
    nodes = tuple(Node(f"n{i}", 2, 4096, 0, "idle", ("spine", f"leaf{i % 2}")) for i in range(4))
    return Topology("local", "slurm", nodes, 120, "f" * 64)


def make_collectives() -> Collectives:
    timing = CollectiveTiming("all_reduce", "gloo", 2, 2, 1 << 20, 0.004, 0.0002, 20, 0.26)
    return Collectives("local", "f" * 64, ("n0", "n1"), (timing,))


def make_device() -> DeviceFacts:
    rates = (Rate("matmul_fp32", 41.5, 0.7, "GFLOP/s", 9),)
    return DeviceFacts("local", "f" * 64, "n0", "a CPU", "cpu", 2, 4096, rates)


def make_manifest() -> ShardManifest:
    item = InputFile("prices.csv.gz", 2048, "a" * 64, 1000, 990, 10)
    return ShardManifest("raw", "prices", "daily_csv", (Column("time_ns", "int64"),), (), (item,), "quarantine.csv")


def make_steps(fake: Fake) -> list[StepRecord]:
    return [
        StepRecord(step, 1, fake.loss + 1 / step, 1e-3, fake.samples_per_s, 64 / fake.samples_per_s, step / 10)
        for step in range(10, 210, 10)
    ]


def _write_trial(folder: Path, fake: Fake) -> None:
    folder.mkdir(parents=True)
    steps = make_steps(fake) if fake.verdict == Verdict.COMPLETED else make_steps(fake)[:3]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(asdict(step)) + "\n" for step in steps))
    for attempt in range(1, fake.attempts + 1):
        last = attempt == fake.attempts
        end = AttemptEnd(attempt, 0, fake.verdict, fake.evidence, ("n0",), "", 100.0)
        if not last:
            end = replace(end, exit_code=-9, verdict=Verdict.NODE_FAIL, evidence="node n1 went down")
        write_artifact(folder / f"attempts/{attempt}/END.json", end)
