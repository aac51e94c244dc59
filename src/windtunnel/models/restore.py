"""A trained model, back from a checkpoint of its trial."""

import sys
from pathlib import Path

from torch import nn

from windtunnel.checkpoints.dcp import load_tensors, model_tensors
from windtunnel.models.build import build_model
from windtunnel.records.trial import TrialConfig
from windtunnel.settings.study import TrialSettings
from windtunnel.tasks.find import find_task
from windtunnel.tasks.table import count_features


def restore_model(config: TrialConfig, settings: TrialSettings, checkpoint: Path) -> nn.Module:
    """The model of a trial with the parameters of a verified checkpoint, on the CPU, in evaluation mode.

    The user's own models are imported from the trial's `import_root`.
    """
    if config.import_root and config.import_root not in sys.path:
        sys.path.insert(0, config.import_root)
    model = build_model(
        settings.model,
        n_features=count_features(Path(config.features_manifest)),
        n_outputs=find_task(settings.task.name).n_outputs,
        window=settings.task.window,
    )
    load_tensors(checkpoint, model_tensors(model))
    return model.eval()
