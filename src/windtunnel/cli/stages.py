"""Each stage's subcommand: read its settings file, call its `run`. Stages never call each other."""

import os
import sys
from argparse import Namespace
from pathlib import Path

from windtunnel.errors import IncompleteError, SettingsError
from windtunnel.process import run_command
from windtunnel.records.trial import PARTIAL_SWEEP
from windtunnel.settings.base import read_settings
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.data import DataSettings
from windtunnel.settings.report import ReportSettings
from windtunnel.settings.study import (
    FeaturizeSettings,
    LatencyStageSettings,
    PlanSettings,
    ReportStageSettings,
    SweepStageSettings,
    TraceSettings,
)


def ingest(args: Namespace) -> None:
    """Raw files to shards, under mpiexec when more ranks are asked for and one fits."""
    from windtunnel.cli.mpi import restart_under_mpi

    if args.settings is None or args.out is None:
        raise SettingsError("ingest needs --settings and --out, as the workflow gives them; or: ingest inspect FILE")
    settings = read_settings(DataSettings, args.settings)
    if args.ranks > 1:
        restart_under_mpi(args.ranks, ["ingest", "--settings", str(args.settings), "--out", str(args.out)])
    from windtunnel.comm.detect import detect_comm
    from windtunnel.ingest.run import run_ingest

    run_ingest(settings, out=args.out, comm=detect_comm())


def inspect(args: Namespace) -> int:
    """What a raw file is; 1 when no source reads it."""
    from windtunnel.cli.inspect import run_inspect

    return run_inspect(args.file, source=args.source, text=args.text, as_json=args.as_json)


def featurize(args: Namespace) -> None:
    """Shards to feature shards."""
    from windtunnel.featurize.run import run_featurize

    settings = read_settings(FeaturizeSettings, args.settings)
    run_featurize(settings.features, shards=args.shards, out=args.out, backend=settings.kernels.backend)


def topology(args: Namespace) -> None:
    """The partition's nodes and switches, and a timed all-reduce."""
    if args.settings is None or args.out is None or args.collectives is None:
        raise SettingsError(
            "topology needs --settings, --out and --collectives as the workflow gives them, or facts, lint or show"
        )
    from windtunnel.topology.run import run_topology

    _see_whole_job()
    run_topology(read_settings(ClusterSettings, args.settings), out=args.out, collectives=args.collectives)


def calibrate(args: Namespace) -> None:
    """What one device attains."""
    from windtunnel.calibrate.run import run_calibrate

    run_calibrate(read_settings(ClusterSettings, args.settings), out=args.out)


def trace(args: Namespace) -> None:
    """The models' operations and shapes."""
    from windtunnel.trace.run import run_trace

    _let_user_models_in()
    run_trace(read_settings(TraceSettings, args.settings), features=args.features, out=args.out)


def plan(args: Namespace) -> None:
    """The study's trials: as a stage from its files, or for people from the study's name."""
    from windtunnel.planner.run import needs_data, run_plan

    if args.study is not None:
        from windtunnel.cli.preview import run_preview

        run_preview(args.study, args.overrides, dry_run=args.dry_run, project=Path.cwd())
        return
    settings = read_settings(PlanSettings, args.settings) if args.settings is not None else None
    if settings is None or (args.features is None and not args.dry_run and needs_data(settings)):
        raise SettingsError(
            "plan needs a STUDY with --dry-run, or --settings and --features as the workflow gives them"
        )
    run_plan(
        settings,
        features=args.features,
        topology=args.topology,
        collectives=args.collectives,
        device=args.device,
        models=args.models,
        import_root=str(Path.cwd()),
        out=args.out,
        dry_run=args.dry_run,
    )


def sweep(args: Namespace) -> None:
    """Run the trials; an unfinished sweep leaves a partial report beside its partial results."""
    from windtunnel.cli.typed import read_typed_command
    from windtunnel.launch.place import write_sweep_place
    from windtunnel.launch.run import run_sweep

    settings = read_settings(SweepStageSettings, args.settings)
    if args.store is None and args.features is None:
        raise SettingsError("sweep needs --store, the folder of trials/, or the --features in that folder")
    store = args.store or args.features.resolve().parents[2]  # <store>/features/<key>/MANIFEST.json
    write_sweep_place(settings, out=args.out, store=store, command=read_typed_command(args.out.parent))
    try:
        run_sweep(
            settings,
            plan=args.plan,
            features=args.features,
            topology=args.topology,
            store=store,
            import_root=str(Path.cwd()),
            out=args.out,
        )
    except IncompleteError:
        report_partly(settings, args)
        raise


def verify_checkpoints(args: Namespace) -> None:
    """Check every byte of the checkpoints."""
    from windtunnel.checkpoints.run import run_verify_checkpoints

    run_verify_checkpoints(study=args.study, sweep=args.sweep, out=args.out)


def latency(args: Namespace) -> None:
    """Inference latency of the verified models."""
    from windtunnel.latency.run import run_latency

    _let_user_models_in()
    settings = read_settings(LatencyStageSettings, args.settings)
    run_latency(settings, sweep=args.sweep, checkpoints=args.checkpoints, out=args.out)


def report(args: Namespace) -> None:
    """The page and its numbers."""
    from windtunnel.report.run import run_report

    run_report(
        read_settings(ReportStageSettings, args.settings),
        plan=args.plan,
        sweep=args.sweep,
        checkpoints=args.checkpoints,
        latency=args.latency,
        models=args.models,
        topology=args.topology,
        collectives=args.collectives,
        device=args.device,
        benchmarks=[path for path in args.benchmarks if path.is_file()],
        out=args.out,
        metrics=args.metrics,
    )


def report_partly(settings: SweepStageSettings, args: Namespace) -> None:
    """A page of what an unfinished sweep has, as the study's own report would rank it."""
    from windtunnel.report.run import run_report

    partial = args.out.with_name(PARTIAL_SWEEP)
    if not partial.is_file():
        return
    if args.report is not None:
        wanted = read_settings(ReportStageSettings, args.report)
    else:
        wanted = ReportStageSettings(study=settings.study, report=ReportSettings(), cluster=settings.cluster)
    run_report(
        wanted,
        plan=args.plan,
        sweep=partial,
        checkpoints=None,
        latency=None,
        models=None,
        topology=args.topology,
        collectives=None,
        device=None,
        benchmarks=[],
        out=args.out.with_name("report.partial.html"),
        metrics=args.out.with_name("metrics.partial.parquet"),
    )


def _see_whole_job() -> None:
    # Snakemake's plugin starts a stage in a step of one task, whose environment names that task's node alone.
    job = os.environ.get("SLURM_JOB_ID")
    if job:
        asked = run_command(["squeue", "--noheader", "--jobs", job, "--format=%N"], timeout_s=60)
        os.environ["SLURM_JOB_NODELIST"] = asked.stdout.strip()


def _let_user_models_in() -> None:
    # A console script's import path lacks the folder it is typed in, where the user's own models are.
    sys.path.insert(0, str(Path.cwd()))
