import json
import re
from dataclasses import replace

import pytest

from windtunnel.artifacts import read_artifact, write_artifact
from windtunnel.errors import ArtifactError, StudyError
from windtunnel.planner.prune import find_misfit
from windtunnel.planner.rounds import next_round
from windtunnel.planner.run import run_plan
from windtunnel.records.cluster import Node, Topology
from windtunnel.records.data import Column, ShardManifest
from windtunnel.records.plan import Plan, Shape
from windtunnel.records.trial import SweepEntry, Verdict

SHAPE = Shape(2, 2, 1, 0, 1024, 30, "main")


def cluster(*leaves, cpus=2, state="IDLE"):
    nodes = tuple(Node(f"n{i}", cpus, 4096, 0, state, ("spine", leaf)) for i, leaf in enumerate(leaves))
    return Topology("main", "slurm", nodes, 60, "f")


@pytest.fixture
def features(tmp_path):
    manifest = ShardManifest("features", "d", "daily", (Column("time_ns", "int64"),), (), (), "")
    return write_artifact(tmp_path / "MANIFEST.json", manifest)


@pytest.fixture
def plan(features, make_plan_settings):
    def make(topology=None, *, changes=None, out=None, dry_run=False):
        path = topology
        if isinstance(topology, Topology):
            path = write_artifact(features.with_name("topology.json"), topology)
        settings = make_plan_settings(changes, values={"training.precision": ("fp32", "bf16")})
        facts = {"topology": path, "collectives": None, "device": None, "models": None}
        return run_plan(settings, features=features, **facts, import_root="", out=out, dry_run=dry_run)

    return make


def test_a_partition_that_holds_the_shape_is_no_misfit():
    assert find_misfit(SHAPE, cluster("leaf0", "leaf1")) == ""


@pytest.mark.parametrize(
    ("shape", "topology", "reason"),
    [
        (SHAPE, cluster("leaf0"), r"2 nodes with 2 CPUs each .* but 1 of 1 nodes"),
        (SHAPE, cluster("leaf0", "leaf0", cpus=1), r"0 of 2 nodes of main have them \(largest: 1\)"),
        (replace(SHAPE, gpus_per_node=1), cluster("leaf0", "leaf0"), r"1 GPUs each"),
        (replace(SHAPE, mem_mib=9000), cluster("leaf0", "leaf0"), r"9000 MiB of memory each .*largest: 4096"),
        (replace(SHAPE, time_min=90), cluster("leaf0", "leaf0"), r"past the limit .* set cluster.time=01:00:00"),
    ],
)
def test_a_shape_that_does_not_fit_is_told_what_is_missing(shape, topology, reason):
    assert re.search(reason, find_misfit(shape, topology))


@pytest.mark.parametrize("state", ["DOWN*", "IDLE+DRAIN", "MAINT"])
def test_nodes_that_were_out_of_service_when_measured_still_count(state):
    assert find_misfit(SHAPE, cluster("leaf0", "leaf0", state=state)) == ""


def test_the_plan_is_what_is_printed_and_written(plan, tmp_path, capsys):
    out = tmp_path / "plan.json"
    made = plan(cluster("leaf0"), out=out)
    assert read_artifact(out, Plan) == made
    assert len({trial.id for trial in made.trials}) == 8
    text = capsys.readouterr().out
    assert "study quickstart: 8 trials in 2 shapes, 0 pruned" in text
    assert all(trial.name in text and trial.id in text for trial in made.trials)


def test_a_dry_run_writes_nothing_and_shows_the_order_of_ranks(plan, tmp_path, capsys):
    out = tmp_path / "plan.json"
    changes = {"cluster.kind": "slurm", "parallelism.data": 4, "parallelism.nodes": 4}
    interleaved = cluster("leaf0", "leaf1", "leaf0", "leaf1")
    plan(interleaved, changes=changes, out=out, dry_run=True)
    assert not out.exists()
    assert "ranks by leaf: were n[0-3] granted, n0,n2,n1,n3" in capsys.readouterr().out


def test_layouts_that_do_not_fit_the_partition_are_pruned_with_the_reason(plan, capsys):
    made = plan(cluster("leaf0", cpus=1))
    assert len(made.trials) == len(made.pruned) == 4
    assert all("2 CPUs" in item.reason for item in made.pruned)
    assert made.pruned[0].reason in capsys.readouterr().out


def test_a_plan_without_a_trial_is_an_error(plan):
    with pytest.raises(StudyError, match="no legal trial of 8"):
        plan(cluster("leaf0", cpus=0))


def test_a_round_is_what_has_no_result_yet(plan):
    made = plan()
    first = made.trials[0]
    entry = SweepEntry(first.id, first.name, {}, Verdict.COMPLETED, "", 1, 1.0, None)
    assert next_round(made, {}) == made.trials
    assert next_round(made, {first.id: entry}) == made.trials[1:]
    assert next_round(made, {trial.id: entry for trial in made.trials}) == ()


def test_old_cluster_facts_give_a_warning_and_no_more(plan, features, capsys):
    path = write_artifact(features.with_name("topology.json"), cluster("leaf0"))
    text = path.read_text()
    created = text.split('"created": "')[1][:4]
    path.write_text(text.replace(f'"created": "{created}', '"created": "2001'))
    assert plan(topology=path).trials
    assert f"warning: {path} is" in capsys.readouterr().out


@pytest.mark.parametrize("provenance", [None, "today", {}, {"created": "soon"}, {"created": 5}])
def test_an_artifact_without_its_moment_is_damaged(plan, features, provenance):
    path = write_artifact(features.with_name("topology.json"), cluster("leaf0"))
    document = {**json.loads(path.read_text()), "provenance": provenance}
    path.write_text(json.dumps(document))
    with pytest.raises(ArtifactError, match=r"topology\.json does not say when it was made: remove it"):
        plan(topology=path)
