"""How far a trial has got: the step that it would go on from."""

from windtunnel.checkpoints.manifest import find_newest_step
from windtunnel.ledger.layout import TrialFolder
from windtunnel.ledger.tail import read_last_record


def read_saved_step(folder: TrialFolder) -> int:
    """Step of the trial's newest checkpoint, verified or not; 0 when it has none, or its folder cannot be read.

    A user's own program names its checkpoints as it likes: then it is the newest step that it told of.
    """
    checkpoints = folder.path / "checkpoints"
    try:
        newest = find_newest_step(checkpoints)
        if newest is not None or not checkpoints.is_dir():
            return newest or 0
        own = any(not entry.name.startswith(".") for entry in checkpoints.iterdir())
    except OSError:
        return 0
    step = read_last_record(folder.metrics).get("step") if own else 0
    return step if isinstance(step, int) else 0
