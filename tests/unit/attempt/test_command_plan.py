from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from command_trials import make_command
from windtunnel.attempt.grant import Grant
from windtunnel.attempt.plan import LaunchPlan, keeps_slurms_order, plan_attempt
from windtunnel.attempt.program import AttemptFiles, choose_port, describe_settings
from windtunnel.errors import SettingsError
from windtunnel.ledger.layout import TrialFolder
from windtunnel.records.plan import Identity
from windtunnel.records.trial import TrialConfig
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.container import ContainerSettings

FILES = AttemptFiles(TrialFolder(Path("/store/trials/abc")), 2)
LOCAL = ClusterSettings(kind="local", partition="local")
SLURM = ClusterSettings(kind="slurm", partition="main", network_interface="eth0")
HOSTS = Grant(("n4", "n1"), "12", slurm=True)


def make_config(
    *argv: str, cluster: ClusterSettings = SLURM, nodes: int = 2, ranks: int = 4, **more: Any
) -> TrialConfig:
    trial = make_command(*argv, cluster=cluster, nodes=nodes, ranks=ranks, **more)
    return TrialConfig(trial, Identity("d", "s", "2.13.0"), "", "", "/home/me")


def plan(config: TrialConfig, grant: Grant = HOSTS) -> LaunchPlan:
    return plan_attempt(config, grant, files=FILES, rank_command=("python",), path="")


def test_srun_starts_each_rank_with_torchruns_names_for_it() -> None:
    (process,) = plan(make_config("./bench", "{ranks}", srun_mpi="pmix")).processes
    head, tail = process.argv[: process.argv.index("--")], process.argv[process.argv.index("--") + 1 :]
    assert {"srun", "--ntasks=4", "--mpi=pmix", "--label"} <= set(head)
    assert tail[:2] == ("sh", "-c")
    assert tail[2].startswith("RANK=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}}")
    assert tail[-2:] == ("./bench", "4")
    assert (process.env["MASTER_ADDR"], process.env["WORLD_SIZE"], process.directory) == ("n4", "4", Path("/home/me"))
    assert process.labelled_ranks == 4


def test_mpiexec_is_one_process_and_gets_the_hosts_only_if_it_asks() -> None:
    plain = make_config("./bench", start="mpiexec")
    asking = make_config("./bench", start="mpiexec", mpiexec=["mpirun", "-n", "{ranks}", "--hostfile", "{hosts}"])
    assert (keeps_slurms_order(plain), keeps_slurms_order(asking)) == (True, False)
    (process,) = plan(asking).processes
    assert process.argv[:5] == ("mpirun", "-n", "4", "--hostfile", "/store/trials/abc/attempts/2/hosts")
    assert process.argv[-1] == "./bench"
    assert process.env["OMPI_MCA_btl_tcp_if_include"] == "eth0"
    assert (plan(asking).launcher, plan(asking).rank_hosts) == (
        "mpirun",
        ("n4", "n4", "n1", "n1"),
    )


def test_once_is_the_program_itself() -> None:
    (process,) = plan(make_config("torchrun", "--nnodes={nodes}", start="once")).processes
    assert process.argv == ("torchrun", "--nnodes=2")
    assert "RANK" not in process.env
    assert process.log.name == "rank-0.log"


def test_keys_are_parameters_settings_and_what_every_trial_has() -> None:
    words = ("p", "{lr}", "{optimizer.beta}", "{training.steps}", "{attempt}", "{checkpoints}", "{flags}", "{{x}}")
    parameters = {"lr": 1e-05, "optimizer": {"beta": 0.9}, "flags": ["a", True, None]}
    (process,) = plan(make_config(*words, start="once", parameters=parameters)).processes
    checkpoints = "/store/trials/abc/checkpoints"
    assert process.argv[1:] == ("1e-05", "0.9", "3", "2", checkpoints, '["a", true, null]', "{x}")


def test_a_key_that_nothing_explains_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"\{learning\} is no parameter and no setting"):
        plan(make_config("p", "{learning}"))


def test_the_settings_file_holds_what_a_program_may_want_and_no_more() -> None:
    found = describe_settings(make_config("p", parameters={"lr": 0.1}), FILES)
    assert (found["parameters"], found["attempt"], found["training"]["steps"]) == ({"lr": 0.1}, 2, 3)
    assert not {"workload", "model", "task", "dataset", "features"} & set(found)


def test_ports_lie_below_those_of_outgoing_connections_and_differ_by_attempt() -> None:
    ports = [choose_port("abc", attempt) for attempt in range(1, 50)]
    assert all(20000 <= port < 30000 for port in ports)
    assert len(set(ports)) > 45


def in_container(cluster: ClusterSettings, **container: Any) -> ClusterSettings:
    return cluster.model_copy(update={"container": ContainerSettings(**container)})


def test_pyxis_is_told_through_sruns_options() -> None:
    cluster = in_container(
        SLURM, kind="pyxis", image="/img/torch.sqsh", mounts=["/scratch"], options=["--container-writable"]
    )
    (process,) = plan(make_config("./bench", cluster=cluster)).processes
    assert [word for word in process.argv if word.startswith("--container")] == [
        "--container-image=/img/torch.sqsh",
        "--container-mounts=/home/me:/home/me,/store/trials/abc:/store/trials/abc,/scratch",
        "--container-workdir=/home/me",
        "--container-writable",
    ]
    assert process.argv[-1] == "./bench"


@pytest.mark.parametrize("start", ["ranks", "mpiexec", "once"])
def test_apptainer_stands_before_the_program_whoever_starts_it(start: str) -> None:
    cluster = in_container(SLURM, image="/img/torch.sif", mounts=["/a:/b:ro"], options=["--nv"])
    (process,) = plan(make_config("./bench", cluster=cluster, start=start)).processes
    argv = process.argv[process.argv.index("apptainer") :]
    binds = ("--bind", "/home/me:/home/me", "--bind", "/store/trials/abc:/store/trials/abc", "--bind", "/a:/b:ro")
    assert argv == ("apptainer", "exec", *binds, "--pwd", "/home/me", "--nv", "/img/torch.sif", "./bench")


def test_our_own_trainer_runs_in_a_container_too() -> None:
    cluster = in_container(LOCAL, image="/img/torch.sif")
    config = make_config("p", cluster=cluster, nodes=1, ranks=1)
    settings = {**config.trial.settings, "workload": {"kind": "train"}}
    config = replace(
        config, trial=replace(config.trial, settings=settings), features_manifest="/store/features/k/M.json"
    )
    made = plan_attempt(
        config, Grant(("here",), "", slurm=False), files=FILES, rank_command=("python3", "-m", "x"), path="/src"
    )
    argv = made.processes[0].argv
    mounts = [argv[index + 1] for index, word in enumerate(argv) if word == "--bind"]
    folders = ("/store/trials/abc", "/store/features/k", "/home/me", "/src")
    assert mounts == [f"{folder}:{folder}" for folder in folders]
    assert argv[-9:-2] == ("python3", "-m", "x", "--trial-dir", "/store/trials/abc", "--attempt", "2")
