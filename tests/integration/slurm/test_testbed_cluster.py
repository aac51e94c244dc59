import shutil
import time
from pathlib import Path

import pytest
from virtual_cluster import Testbed, read_if_there, wait_for

SEND = """
import os, socket, time
rank, size = int(os.environ["SLURM_PROCID"]), 8 << 20
if rank == 1:
    with socket.create_server(("0.0.0.0", 7000), backlog=1) as server:
        open("listening", "w").close()
        peer, _ = server.accept()
        while peer.recv(1 << 20): pass
else:
    while not os.path.exists("listening"): time.sleep(0.01)
    peer = socket.create_connection((os.environ["PEER"], 7000))
    started = time.perf_counter()
    peer.sendall(bytes(size)); peer.shutdown(socket.SHUT_WR); peer.recv(1)
    print(time.perf_counter() - started)
"""


def read_order(text: str) -> list[str]:
    return [line.split()[1] for line in sorted(text.splitlines(), key=lambda line: int(line.split()[0]))]


def test_all_nodes_are_idle_on_their_leaves(testbed: Testbed) -> None:
    nodes = testbed.run("sinfo", "-h", "-N", "-p", "main", "-o", "%N %T %G").stdout.split("\n")[:-1]
    assert nodes == [f"n{index} idle gpu:4" for index in range(8)]
    topology = testbed.run("scontrol", "show", "topology").stdout
    assert "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1,3,5,7]" in topology


def test_step_sees_its_gpus_and_its_place_in_the_tree(testbed: Testbed) -> None:
    show = "echo $(hostname) $CUDA_VISIBLE_DEVICES $SLURM_TOPOLOGY_ADDR"
    lines = testbed.run("srun", "-N2", "-w", "n4,n5", "--gres=gpu:2", "sh", "-c", show).stdout.splitlines()
    assert sorted(lines) == ["n4 0,1 spine.leaf0.n4", "n5 0,1 spine.leaf1.n5"]


def test_array_of_two_node_jobs_ends_up_in_accounting(testbed: Testbed, tmp_path: Path) -> None:
    job = testbed.submit("-N2", "--array=1-3", "--output=%a.out", "--wrap", "srun hostname", cwd=tmp_path)
    assert testbed.wait(job) == ["COMPLETED"] * 3
    assert all(len(set((tmp_path / f"{task}.out").read_text().split())) == 2 for task in (1, 2, 3))
    ask = ("sacct", "-n", "-X", "-j", job, "-o", "state")
    wait_for(lambda: testbed.run(*ask).stdout.split() == ["COMPLETED"] * 3)  # accounting is told a moment later


def test_step_follows_a_host_file_in_any_order(testbed: Testbed, tmp_path: Path) -> None:
    order = ["n6", "n0", "n3", "n1"]
    (tmp_path / "hosts").write_text("\n".join(order) + "\n")
    step = "srun -n4 --distribution=arbitrary sh -c 'echo $SLURM_PROCID $(hostname)'"
    wrap = f"export SLURM_HOSTFILE=$PWD/hosts; {step}"
    job = testbed.submit("-N4", "-w", "n0,n1,n3,n6", "--output=out", "--wrap", wrap, cwd=tmp_path)
    assert testbed.wait(job) == ["COMPLETED"]
    assert read_order((tmp_path / "out").read_text()) == order


def test_urgent_job_requeues_one_of_main(testbed: Testbed, tmp_path: Path) -> None:
    wrap = "trap 'echo TERM; exit 1' TERM; echo start $SLURM_RESTART_COUNT; sleep 300 & wait"
    options = ("-N8", "--exclusive", "--requeue", "--open-mode=append", "--output=out", "--wrap", wrap)
    job = testbed.submit(*options, cwd=tmp_path)
    testbed.wait(job, ("RUNNING",))
    wait_for(lambda: "start" in read_if_there(tmp_path / "out"))
    assert testbed.run("srun", "-p", "urgent", "-N8", "hostname").stdout.split()
    testbed.wait(job, ("RUNNING",), deadline_s=60)
    wait_for(lambda: "start 1" in read_if_there(tmp_path / "out"))
    testbed.run("scancel", job)
    lines = [line for line in (tmp_path / "out").read_text().splitlines() if "error" not in line]
    assert lines[:3] == ["start", "TERM", "start 1"]


def test_step_that_lost_its_environment_still_finds_the_configuration(testbed: Testbed, tmp_path: Path) -> None:
    wrap = "env -u SLURM_CONF srun env -u SLURM_CONF scontrol ping"
    job = testbed.submit("-N1", "--output=out", "--wrap", wrap, cwd=tmp_path)
    assert testbed.wait(job) == ["COMPLETED"]
    assert "login is UP" in (tmp_path / "out").read_text()


def test_unknown_name_fails_at_once(testbed: Testbed) -> None:
    script = "import socket\ntry: socket.gethostbyname('nowhere.example')\nexcept OSError: print('refused')"
    started = time.monotonic()
    assert testbed.run("srun", "-N1", "python3", "-c", script).stdout.strip() == "refused"
    assert time.monotonic() - started < 8


def test_node_reaches_other_nodes_and_nothing_else(testbed: Testbed) -> None:
    links = testbed.run("srun", "-N1", "-w", "n2", "ip", "-o", "-4", "addr").stdout
    assert "10.77.1.3/16" in links
    assert len(links.splitlines()) == 2
    assert "default" not in testbed.run("srun", "-N1", "ip", "route").stdout


def test_uplink_of_a_leaf_is_slower_than_links_below_it(testbed: Testbed, tmp_path: Path) -> None:
    (tmp_path / "send.py").write_text(SEND)
    seconds = {}
    for peer in ("n2", "n1"):
        (tmp_path / "listening").unlink(missing_ok=True)
        nodes = f"n0,{peer}"
        step = ("srun", "-N2", "-n2", "-w", nodes, f"--chdir={tmp_path}", f"--export=ALL,PEER={peer}")
        seconds[peer] = float(testbed.run(*step, "python3", "send.py").stdout)
    assert seconds["n1"] >= 0.9 * 8 * (8 << 20) / 200e6  # 8 MiB at 200 Mbit/s, less the bucket
    assert seconds["n2"] < 0.7 * seconds["n1"]


def test_pmix_steps_span_nodes(testbed: Testbed, tmp_path: Path) -> None:
    compiler = shutil.which("mpicc.openmpi")
    if compiler is None:
        pytest.skip("no mpicc.openmpi on PATH")
    (tmp_path / "sum.c").write_text(
        "#include <mpi.h>\n#include <stdio.h>\nint main(int c, char **v) { int r, s; MPI_Init(&c, &v);"
        "MPI_Comm_rank(MPI_COMM_WORLD, &r); MPI_Allreduce(&r, &s, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);"
        'printf("%d\\n", s); MPI_Finalize(); return 0; }\n'
    )
    testbed.run(compiler, "sum.c", "-o", "sum", cwd=tmp_path)
    assert testbed.run("srun", "-N2", "-n4", "--mpi=pmix", "./sum", cwd=tmp_path).stdout.split() == ["6"] * 4
