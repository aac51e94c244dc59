"""The doctor's pair of nodes, here two threads and one folder."""

import time
from concurrent.futures import ThreadPoolExecutor

from windtunnel.cli.doctor.node import RACES, run_node


def test_two_nodes_meet_race_and_report(tmp_path):
    with ThreadPoolExecutor(2) as pool:
        ranks = [pool.submit(run_node, tmp_path, ["localhost"], rank=rank, ranks=2) for rank in (0, 1)]
        deadline = time.monotonic() + 20
        while not all((tmp_path / f"here-{rank}").exists() for rank in (0, 1)):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        (tmp_path / "ask").write_text("")
        first, second = (rank.result() for rank in ranks)
    assert first.problems == second.problems == []
    assert sorted(first.won + second.won) == list(range(RACES))
    assert first.lines_kept == second.lines_kept == 100
    assert first.file_turn_s is not None
    assert second.mtime_turn_s is not None
    assert second.connect_s is not None
    assert first.torch["kernels_agree"]
