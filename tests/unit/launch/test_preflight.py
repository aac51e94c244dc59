import os
from dataclasses import replace
from pathlib import Path

import pytest

from fake_trials import make_outcome, make_trial
from windtunnel.artifacts import write_artifact
from windtunnel.errors import ClusterError
from windtunnel.launch.context import SweepContext
from windtunnel.launch.preflight import check_sweep, refuse_mistakes, render_scripts
from windtunnel.launch.preflight_table import render_preflight
from windtunnel.ledger.layout import trial_folder
from windtunnel.ledger.log import append_event
from windtunnel.records.plan import Identity, Plan, PlannedTrial
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.sweep import SweepSettings
from windtunnel.slurm.limits import Limits
from windtunnel.slurm.scontrol import Partition

SLURM = ClusterSettings(kind="slurm", partition="main", cost_per_node_hour=2.0)
LIMITS = Limits(max_array_tasks=2, partitions=(Partition("main", "UP", ("n0", "n1"), 60, True),))
NODES = r"""
echo 'NodeName=n0 CPUTot=8 RealMemory=16000 Gres=(null) State=IDLE'
echo 'NodeName=n1 CPUTot=8 RealMemory=16000 Gres=(null) State=DOWN*'
"""
START = "echo 'sbatch: Job 4 to start at 2026-11-30T15:50:09 using 1 processors on nodes n0 in partition main' >&2"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand-ins for Slurm's commands, first on PATH: two nodes, and jobs start at once."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name, script in {"scontrol": NODES, "sbatch": START}.items():
        write_command(tmp_path / name, script)
    return tmp_path


def test_a_sweep_within_all_limits_shows_shapes_starts_and_costs(slurm: Path) -> None:
    trials = [make("a"), make("b"), make("c"), make("d", ranks=2)]
    preflight = check_sweep(make_plan(trials), make_context(slurm), LIMITS)
    refuse_mistakes(preflight)
    assert [(item.trials, item.jobs, item.arrays) for item in preflight.shapes] == [(3, 3, 2), (1, 1, 1)]
    text = render_preflight(preflight).replace("2026-11-30T15:50:09", "15:50:09")
    assert text.splitlines() == [
        "study made_up: 4 trials to submit",
        "  trials  jobs           nodes  ranks     CPUs      GPUs  memory         limit     where  would start",
        "  3       3 in 2 arrays  1      1 a node  1 a rank  -     64 MiB a node  00:05:00  main   15:50:09",
        "  1       1              1      2 a node  1 a rank  -     64 MiB a node  00:05:00  main   15:50:09",
        "  at most 0.333 node-hours (0.67 USD): each trial once, to its time limit",
    ]


def test_all_mistakes_of_all_shapes_are_refused_at_once_a_line_each(slurm: Path) -> None:
    trials = [make("a"), make("b", time_min=90), make("c", time_min=90), make("d", ranks=40), in_partition("e", "x")]
    sweep = SweepSettings(budget=1.0)
    preflight = check_sweep(make_plan(trials), make_context(slurm, sweep=sweep), LIMITS)
    with pytest.raises(ClusterError) as caught:
        refuse_mistakes(preflight)
    lines = str(caught.value).splitlines()
    assert lines[0] == "study made_up cannot be submitted as it is:"
    assert len(lines) == 5
    assert "cluster.time=01:30:00 is past 01:00:00, the MaxTime of partition main" in lines[1]
    assert lines[1].endswith("(b and 1 more)")
    assert "40 CPUs each are needed" in lines[2]
    assert "partition 'x' does not exist on this cluster (main)" in lines[3]
    assert "past sweep.budget=1.00 USD" in lines[4]


def test_what_slurm_itself_refuses_is_a_mistake_in_its_words(slurm: Path) -> None:
    write_command(slurm / "sbatch", "echo 'allocation failure: Invalid feature specification' >&2; exit 1")
    preflight = check_sweep(make_plan([make("a")]), make_context(slurm), LIMITS)
    told = "allocation failure: Invalid feature specification (1 nodes of partition main, 1 trials)"
    assert preflight.mistakes == (told,)


def test_a_slurm_that_does_not_answer_warns_and_stops_nothing(slurm: Path) -> None:
    for name in ("scontrol", "sbatch"):
        write_command(slurm / name, "echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1")
    preflight = check_sweep(make_plan([make("a")]), make_context(slurm))
    assert preflight.mistakes == ()
    assert len(preflight.warnings) == 2
    assert preflight.limits is None


def test_nodes_that_are_down_give_a_warning(slurm: Path) -> None:
    preflight = check_sweep(make_plan([make("a", ranks=2, nodes=2)]), make_context(slurm), LIMITS)
    assert preflight.mistakes == ()
    assert preflight.warnings == ("1 of 2 nodes of main are in service, 2 are needed",)


def test_trials_that_ended_or_are_under_way_are_not_held_against_the_cluster_again(slurm: Path) -> None:
    done, running, left = make("a", time_min=90), make("b", time_min=90), make("c")
    finish(slurm, done, node_seconds=60)
    append_event(folder_of(slurm, running), "submitted", attempt=0, job_id="7")
    preflight = check_sweep(make_plan([done, running, left]), make_context(slurm), LIMITS)
    assert (preflight.finished, preflight.under_way, preflight.mistakes) == (1, 1, ())
    assert preflight.at_most.node_hours == pytest.approx((90 + 5) / 60)


def test_a_finished_trial_tells_what_others_of_its_shape_are_expected_to_take(slurm: Path) -> None:
    trials = [make("a"), make("b"), make("c")]
    finish(slurm, trials[0], node_seconds=36)
    preflight = check_sweep(make_plan(trials), make_context(slurm), LIMITS)
    assert preflight.expected is not None
    assert preflight.expected.node_hours == pytest.approx(0.02)
    assert preflight.used.node_hours == pytest.approx(0.01)


def test_this_machine_has_a_budget_and_no_limits(tmp_path: Path) -> None:
    local = ClusterSettings(kind="local", partition="local")
    context = make_context(tmp_path, cluster=local, sweep=SweepSettings(budget_node_hours=0.1))
    preflight = check_sweep(make_plan([make_trial(name) for name in "ab"]), context)
    assert not preflight.on_slurm
    assert "may take 0.167 node-hours" in preflight.mistakes[0]


@pytest.mark.parametrize("verdict", ["CANCELLED", "LOST", "TIMEOUT"])
def test_a_trial_that_a_driver_gave_up_is_submitted_again_and_not_under_way(slurm: Path, verdict: str) -> None:
    trial = make("a")
    folder = folder_of(slurm, trial)
    append_event(folder, "submitted", attempt=0, job_id="5")
    append_event(folder, "verdict", attempt=0, verdict=verdict, evidence="told", job_id="5")
    preflight = check_sweep(make_plan([trial]), make_context(slurm), LIMITS)
    assert (preflight.under_way, sum(item.trials for item in preflight.shapes)) == (0, 1)


def test_a_folder_that_slurm_would_read_as_a_pattern_is_refused(slurm: Path) -> None:
    context = replace(make_context(slurm), jobs_dir=slurm / "100%j" / "jobs")
    (mistake,) = check_sweep(make_plan([make("a")]), context, LIMITS).mistakes
    assert "holds '%', which Slurm replaces in names of files" in mistake


def test_the_scripts_are_those_that_would_be_submitted(slurm: Path) -> None:
    trials = [make(name) for name in "abc"] + [make("d", ranks=2)]
    context = make_context(slurm, sweep=SweepSettings(trials_per_job=2))
    scripts = render_scripts(make_plan(trials), context, LIMITS)
    assert [name for name, _ in scripts] == [
        "2 trials in 1 jobs of 1 x 1 ranks",
        "1 trials in 1 jobs of 1 x 1 ranks",
        "1 trials in 1 jobs of 1 x 2 ranks",
    ]
    assert "#SBATCH --time=11\n" in scripts[0][1]
    assert "#SBATCH --job-name=windtunnel-made_up-00000000\n" in scripts[0][1]
    assert not (slurm / "jobs").exists()


def make(name: str, **details: object) -> PlannedTrial:
    return make_trial(name, cluster=SLURM, **details)  # type: ignore[arg-type]


def in_partition(name: str, partition: str) -> PlannedTrial:
    trial = make(name)
    return replace(trial, shape=replace(trial.shape, partition=partition))


def make_plan(trials: list[PlannedTrial]) -> Plan:
    return Plan("made_up", Identity("d", "s", "2.13.0"), tuple(trials), ())


def folder_of(store: Path, trial: PlannedTrial) -> Path:
    path = trial_folder(store, trial.id).path
    path.mkdir(parents=True, exist_ok=True)
    return path


def finish(store: Path, trial: PlannedTrial, *, node_seconds: float) -> None:
    from windtunnel.ledger.layout import write_next_attempt
    from windtunnel.records.trial import AttemptEnd, Verdict

    folder = trial_folder(store, trial.id)
    folder_of(store, trial)
    number = write_next_attempt(folder)
    append_event(folder.path, "started", attempt=number, job_id="5", hosts=["n0"])
    end = AttemptEnd(number, 0, Verdict.COMPLETED, "", ("n0",), "5", node_seconds)
    write_artifact(folder.end(number), end)
    write_artifact(folder.done, make_outcome(trial.id))


def make_context(
    store: Path, *, cluster: ClusterSettings = SLURM, sweep: SweepSettings | None = None
) -> SweepContext:
    return SweepContext(
        study="made_up",
        cluster=cluster,
        sweep=sweep or SweepSettings(),
        identity=Identity("d", "s", "2.13.0"),
        features=store / "MANIFEST.json",
        topology=None,
        store=store,
        import_root="",
        jobs_dir=store / "jobs",
    )


def write_command(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
