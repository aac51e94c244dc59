"""The limits of output that Slurm 22.05.8 with accounting gave, names changed."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from windtunnel.errors import CommandError
from windtunnel.slurm.limits import (
    Bound,
    Limits,
    QueueUse,
    parse_associations,
    parse_default_account,
    parse_limits,
    parse_qos,
    parse_queue_use,
    parse_tres,
    read_limits,
)
from windtunnel.slurm.scontrol import parse_config, parse_partitions

RECORDED = Path(__file__).parent / "recorded"
PLAIN = {"MaxArraySize": "1001", "AccountingStorageEnforce": "none"}


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


@pytest.fixture
def limits() -> Limits:
    plain = parse_limits(parse_config(recorded("config")), parse_partitions(recorded("partitions")))
    return replace(
        plain,
        user="trader",
        default_account=parse_default_account(recorded("user")),
        associations=parse_associations(recorded("assoc")),
        qos=parse_qos(recorded("qos")),
    )


def test_the_clusters_limits_are_read_as_recorded(limits: Limits) -> None:
    assert (limits.max_array_tasks, limits.max_job_count) == (1001, 10000)
    assert limits.enforced == {"associations", "limits", "qos"}
    assert [partition.name for partition in limits.partitions] == ["main", "urgent"]
    assert limits.default_account == "desk"


def test_an_association_has_the_limits_of_the_accounts_above_it(limits: Limits) -> None:
    found = limits.find_association("gpu_desk", "main")
    assert found is not None
    assert (found.max_submit, found.max_time_min, found.qos) == (33, 1440, ("normal", "tight"))
    assert found.max_tres == {"gres/gpu": 4, "mem": 65536}
    assert limits.find_association("", "main") == limits.find_association("desk", "main")
    assert limits.find_association("nowhere", "main") is None


def test_a_qos_has_the_least_of_its_limits_of_jobs(limits: Limits) -> None:
    tight = limits.qos[1]
    assert (tight.name, tight.max_submit, tight.max_time_min) == ("tight", 5, 60)
    assert tight.max_tres == {"cpu": 8, "node": 2}
    assert limits.qos[0].max_submit is None


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        ("", 1001),
        ("bf_interval=5,max_array_tasks=200", 200),
        ("max_array_tasks=5000", 1001),
        ("max_array_tasks=x", 1001),
    ],
)
def test_the_scheduler_may_take_fewer_tasks_than_the_array_has_indices(options: str, tasks: int) -> None:
    assert parse_limits({**PLAIN, "SchedulerParameters": options}, ()).max_array_tasks == tasks


def test_what_bounds_a_job_are_the_cluster_its_account_and_its_qos(limits: Limits) -> None:
    use = limits.resolve("gpu_desk", "tight", "main")
    assert [(bound.limit, bound.account, bound.qos) for bound in limits.find_bounds(use)] == [
        (10000, "", ""),
        (33, "gpu_desk", ""),
        (5, "", "tight"),
    ]
    assert [bound.limit for bound in limits.find_bounds(limits.resolve("", "", "main"))] == [10000]
    assert limits.find_max_time_min(use) == 60


def test_a_partitions_own_qos_bounds_all_its_jobs(limits: Limits) -> None:
    main = replace(limits.partitions[0], qos="tight", max_time_min=90)
    changed = replace(limits, partitions=(main,))
    use = changed.resolve("", "", "main")
    bound = changed.find_bounds(use)[-1]
    assert (bound.limit, bound.partition, bound.qos) == (5, "main", "")
    assert changed.find_max_time_min(use) == 60


def test_limits_that_a_site_does_not_enforce_bound_nothing(limits: Limits) -> None:
    lax = replace(limits, enforced=frozenset({"associations"}))
    assert [bound.limit for bound in lax.find_bounds(lax.resolve("gpu_desk", "tight", "main"))] == [10000]


def test_a_bound_counts_the_jobs_of_its_names_alone() -> None:
    uses = parse_queue_use("desk|tight|main\ndesk|normal|main\n\nother|tight|urgent\n")
    assert len(uses) == 3
    assert [Bound(1, "", qos="tight").counts(use) for use in uses] == [True, False, True]
    assert [Bound(1, "", account="desk", partition="main").counts(use) for use in uses] == [True, True, False]
    assert Bound(1, "").counts(QueueUse("a", "b", "c"))


def test_memory_among_tres_is_in_mib() -> None:
    assert parse_tres("cpu=4,mem=10G,gres/gpu:a100=2") == {"cpu": 4, "mem": 10240, "gres/gpu:a100": 2}
    assert parse_tres("") == {}


def test_a_site_without_accounting_has_no_such_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_scontrol(tmp_path, monkeypatch, "AccountingStorageType = accounting_storage/none\nMaxArraySize = 11\n")
    limits = read_limits()
    assert (limits.max_array_tasks, limits.associations, limits.qos, limits.user) == (11, (), (), "")


def test_an_accounting_that_does_not_answer_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_scontrol(tmp_path, monkeypatch, recorded("config"))
    write_command(tmp_path / "sacctmgr", "echo 'sacctmgr: error: Connection refused' >&2; exit 1")
    assert read_limits().associations == ()


def test_a_slurm_that_does_not_answer_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_scontrol(tmp_path, monkeypatch, "")
    write_command(tmp_path / "scontrol", "echo 'Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(CommandError, match="Unable to contact"):
        read_limits()


def put_scontrol(folder: Path, monkeypatch: pytest.MonkeyPatch, config: str) -> None:
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    (folder / "config").write_text(config)
    write_command(folder / "scontrol", f'if [ "$2" = config ]; then cat {folder}/config; fi')


def write_command(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
