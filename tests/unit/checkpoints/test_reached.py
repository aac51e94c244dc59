import pytest

from windtunnel.checkpoints.reached import read_saved_step
from windtunnel.ledger.layout import TrialFolder


@pytest.mark.parametrize(
    ("saved", "step"),
    [
        ([], 0),
        ([".tmp-9-0-abc"], 0),
        (["step-00000003", "step-00000012", ".bad-step-00000020-a"], 12),
        (["my-own-weights"], 7),
    ],
    ids=["none", "unfinished", "ours", "a program's own"],
)
def test_the_step_to_go_on_from_is_the_newest_checkpoints(tmp_path, saved, step):
    folder = TrialFolder(tmp_path)
    folder.metrics.write_text('{"step": 7}\n')
    for name in saved:
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    assert read_saved_step(folder) == step
