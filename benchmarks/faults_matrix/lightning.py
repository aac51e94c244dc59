"""`python -m benchmarks.faults_matrix.lightning ORDER`: the same training by Lightning's Trainer.

As its documentation has it: `ModelCheckpoint` every few steps with the newest two and `last.ckpt` kept,
`ckpt_path="last"`, everything seeded, and a data loader whose state is saved (torchdata's).
"""

import logging

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Callback, ModelCheckpoint
from torch.nn.functional import mse_loss
from torch.utils.data import TensorDataset
from torchdata.stateful_dataloader import StatefulDataLoader

from benchmarks.faults_matrix.journal import DONE, RESUMED, SAVED, STEP, Journal, Order, read_order
from benchmarks.faults_matrix.model import BATCH, SAMPLES, Net, digest_state, make_data

KEPT = 2


class Module(pl.LightningModule):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.net = Net(dropout=dropout)

    def training_step(self, batch: list[torch.Tensor], batch_idx: int) -> torch.Tensor:
        return mse_loss(self.net(batch[0]), batch[1])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.net.parameters(), lr=1e-3)


class Reporter(Callback):
    """Keeps the journal."""

    def __init__(self, order: Order) -> None:
        self.journal = Journal(order)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.journal.add(RESUMED, trainer.global_step, digest=digest(trainer, pl_module))

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: object, batch: list[torch.Tensor], _: int
    ) -> None:
        self.journal.add(STEP, trainer.global_step, rows=batch[2].tolist())

    def on_save_checkpoint(self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: object) -> None:
        self.journal.add(SAVED, trainer.global_step, digest=digest(trainer, pl_module))


def main() -> None:
    logging.getLogger("pytorch_lightning").setLevel(logging.INFO)
    torch.set_num_threads(1)
    order = read_order()
    pl.seed_everything(3, workers=True)
    module, reporter = Module(order.dropout), Reporter(order)
    saver = ModelCheckpoint(
        dirpath=order.checkpoints,
        every_n_train_steps=order.save_every,
        save_last=True,
        save_top_k=KEPT,
        monitor="step",
        mode="max",
    )
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=order.ranks,
        strategy="ddp" if order.ranks > 1 else "auto",
        max_steps=order.steps,
        default_root_dir=order.folder,
        callbacks=[saver, reporter],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data = TensorDataset(*make_data(), torch.arange(SAMPLES))
    trainer.fit(module, StatefulDataLoader(data, batch_size=BATCH, shuffle=True), ckpt_path="last")
    finite = all(bool(weight.isfinite().all()) for weight in module.parameters())
    reporter.journal.add(DONE, trainer.global_step, digest=digest(trainer, module), finite=finite)


def digest(trainer: pl.Trainer, module: pl.LightningModule) -> str:
    """Of weights and optimizer."""
    return digest_state(module.net, trainer.optimizers[0])


if __name__ == "__main__":
    main()
