import torch

from saved_state import publish_tensors
from toy_trial import trial_settings, write_features, write_trial
from windtunnel.checkpoints.dcp import model_tensors
from windtunnel.models.build import build_model
from windtunnel.models.restore import restore_model


def test_a_restored_model_answers_as_the_one_that_was_saved(tmp_path):
    settings = trial_settings()
    config = write_trial(tmp_path / "t", write_features(tmp_path / "features"), settings)
    model = build_model(settings.model, n_features=6, n_outputs=2, window=settings.task.window).eval()
    restored = restore_model(config, settings, publish_tensors(tmp_path, 20, model_tensors(model)))
    x_btc = torch.randn(4, settings.task.window, 6)
    assert torch.equal(restored(x_btc), model(x_btc))
    assert not restored.training


def test_a_users_model_is_found_in_the_import_root(tmp_path):
    source = "from torch import nn\nclass Mine(nn.Linear):\n    def __init__(self, n_features, n_outputs, window):\n"
    (tmp_path / "restored_toy_model.py").write_text(source + "        super().__init__(n_features, n_outputs)\n")
    settings = trial_settings(model={"name": "mine", "_target_": "restored_toy_model.Mine"})
    features = write_features(tmp_path / "features")
    config = write_trial(tmp_path / "t", features, settings, import_root=str(tmp_path))
    weights = {"model.weight": torch.ones(2, 6), "model.bias": torch.zeros(2)}
    path = publish_tensors(tmp_path, 20, weights)
    assert torch.equal(restore_model(config, settings, path).weight, weights["model.weight"])
