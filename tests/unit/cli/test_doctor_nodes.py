"""The doctor's pair of nodes, and the judgement of what they report."""

import dataclasses

import pytest

from windtunnel.cli.doctor.across import judge_job, judge_reports
from windtunnel.cli.doctor.findings import Level
from windtunnel.cli.doctor.job import JobFacts, render_script
from windtunnel.cli.doctor.node import RACES, NodeReport, look_up
from windtunnel.settings.cluster import ClusterSettings

CLUSTER = ClusterSettings(kind="slurm", partition="main")
TORCH = {"torch": "2.13.0", "cuda": "13.0", "devices": 4, "kernels_agree": True, "torch_s": 3.0, "all_s": 3.5}
FIRST = NodeReport(
    rank=0,
    host="n0",
    python="3.11.7 (/opt/windtunnel/bin/python)",
    umask=0o027,
    interfaces=["ib0"],
    lookups={"n0": 0.001, "n1": 0.002},
    file_turn_s=0.02,
    won=[0, 1, 2],
    lines_kept=100,
    lines_written=100,
    torch=TORCH,
)
SECOND = dataclasses.replace(
    FIRST, rank=1, host="n1", won=list(range(3, RACES)), mtime_turn_s=0.1, lock_seen=True, connect_s=0.001
)


def judge(cluster: ClusterSettings = CLUSTER, **changes: object) -> dict[str, tuple[Level, str]]:
    reports = (FIRST, dataclasses.replace(SECOND, **changes))
    return {item.subject: (item.level, item.effect + item.remedy) for item in judge_reports(reports, cluster)}


def test_a_name_that_nobody_knows_has_no_time():
    assert look_up("no-such-host.invalid") is None


def test_two_nodes_that_agree_have_nothing_to_set():
    assert {level for level, _ in judge().values()} == {Level.OK}


@pytest.mark.parametrize(
    ("changes", "subject", "level", "words"),
    [
        ({"lookups": {"n0": None}}, "host names", Level.FAIL, "DNS or /etc/hosts"),
        ({"lookups": {"n0": 5.0}}, "host names", Level.WARN, "name cache"),
        ({"interfaces": ["eth0", "ib0"]}, "interfaces", Level.WARN, "network_interface"),
        ({"won": list(range(2, RACES))}, "exclusive link", Level.FAIL, "paths.store"),
        ({"mtime_turn_s": 60.0}, "file times", Level.WARN, "actimeo"),
        ({"file_turn_s": 20.0}, "renamed file", Level.WARN, "sweep.settle_s=80"),
        ({"lock_seen": False}, "locks", Level.WARN, "Optuna"),
        ({"torch": {"error": "ImportError: libcudart.so.13"}}, "torch on n1", Level.FAIL, "modules or setup"),
        ({"torch": {**TORCH, "torch_s": 90.0}}, "torch on n1", Level.WARN, "container"),
        ({"torch": {**TORCH, "kernels_agree": False}}, "kernels on n1", Level.FAIL, "Build the wheel"),
    ],
)
def test_what_differs_is_told_with_what_to_set(changes, subject, level, words):
    found, told = judge(**changes)[subject]
    assert found == level
    assert words in told


def test_appended_lines_that_are_lost_warn():
    reports = (dataclasses.replace(FIRST, lines_kept=97), SECOND)
    finding = next(item for item in judge_reports(reports, CLUSTER) if item.subject == "appended lines")
    assert finding.level == Level.WARN
    assert finding.found.startswith("97 of 100 lines")


def test_gpus_that_torch_does_not_see_fail():
    asked = CLUSTER.model_copy(update={"gpus_per_rank": 8})
    assert judge(asked)["torch on n1"][0] == Level.FAIL


def test_the_interface_of_the_site_file_must_be_there():
    asked = CLUSTER.model_copy(update={"network_interface": "ib1"})
    assert judge(asked)["interfaces"] == (
        Level.FAIL,
        "ib1 is not on n0, n1.Set network_interface in the site file to one of: ib0.",
    )


def test_a_job_that_does_not_start_fails_with_the_reason():
    finding = judge_job(JobFacts(2, problem="job 7 is PENDING (Priority) after 300 s"), CLUSTER)[0]
    assert finding.level == Level.FAIL
    assert "Priority" in finding.found
    assert "--wait" in finding.remedy


@pytest.mark.parametrize(
    ("bounds", "level"), [((-0.2, 0.3), Level.OK), ((-61.0, -60.0), Level.WARN), ((6, 7), Level.WARN)]
)
def test_clocks_are_judged_by_what_is_sure(bounds, level):
    facts = JobFacts(1, waited_s=3.0, answered_s=1.0, clock_ahead_s=(bounds,))
    assert next(item for item in judge_job(facts, CLUSTER) if item.subject == "clocks").level == level


def test_a_step_that_failed_is_a_failure():
    facts = JobFacts(2, 1.0, 0.1, ((0, 0),), (FIRST, dataclasses.replace(SECOND, problems=["connect: timed out"])))
    assert [item.found for item in judge_job(facts, CLUSTER) if item.level == Level.FAIL] == [
        "n1: connect: timed out"
    ]


def test_the_job_asks_for_what_a_trial_asks_for(tmp_path):
    site = ClusterSettings(
        kind="slurm",
        partition="gpu",
        account="007",
        modules=("cuda/13",),
        setup=("export A=1",),
        sbatch={"nice": "5"},
    )
    script = render_script(site, 2, folder=tmp_path, hosts=["n0"]).splitlines()
    wanted = ["--partition=gpu", "--account=007", "--nodes=2", "--ntasks-per-node=1", "--mem=2048M", "--nice=5"]
    assert {f"#SBATCH {option}" for option in wanted} <= set(script)
    assert script.index("module load cuda/13 || exit 1") < script.index("export A=1") < len(script) - 1
    assert script[-1].startswith("srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --mpi=none ")
