from benchmarks.faults_stale_slurm import SUPERVISOR, Pair, judge
from benchmarks.faults_state import save_state

from windtunnel.ledger.layout import trial_folder


def succeeded(root, *, resumed):
    """A pair of writers of which the second says from where it goes on; its checkpoints follow."""
    folder = trial_folder(root, "a" * 16)
    folder.attempt(2).mkdir(parents=True)
    (folder.attempt(2) / "rank-0.log").write_text(f"resumed from step-{resumed:08d}\n")
    return Pair(SUPERVISOR, folder, "7")


def test_what_the_first_publishes_beyond_the_seconds_choice_is_stale(tmp_path):
    pair = succeeded(tmp_path, resumed=8)
    for step in (8, 12):
        save_state(pair.checkpoints, step, mib=0.1)
    pair.seen = {1: (1, 8), 2: (2, 12), 3: (1, 12)}
    found = judge(pair, ended=True)
    assert found.published == (12,)
    assert not found.harmed


def test_a_checkpoint_of_the_firsts_among_the_newest_and_a_missing_one_are_harm(tmp_path):
    pair = succeeded(tmp_path, resumed=8)
    save_state(pair.checkpoints, 12, mib=0.1)
    assert judge(pair, ended=False).harmed == ("its newest are ['step-00000012']",)
