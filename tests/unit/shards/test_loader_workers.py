import os
import signal
import subprocess
import sys

import pytest
import torch

from window_shards import FIELDS, write_dataset
from windtunnel.shards.dataset import make_loader, open_dataset
from windtunnel.shards.loader import Position, RankShare
from windtunnel.shards.windows import place_windows
from windtunnel.shards.workers import make_worker_loader


@pytest.fixture
def loader(tmp_path):
    dataset = open_dataset(write_dataset(tmp_path), ["features", "price"])
    windows = place_windows([(one.first_row, one.end_row) for one in dataset.series], FIELDS)
    return make_loader(
        dataset, windows, FIELDS, shuffle="buffered", seed=2, share=RankShare(200), buffer_bytes=60_000
    )


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_give_the_same_batches_in_the_same_order_and_outlive_sigterm(loader, start):
    position = Position(2, 1, 400)
    batches = iter(make_worker_loader(loader, position, workers=2, start=start))
    found = [next(batches), next(batches)]  # one of each worker: both are up
    for worker in batches._workers:
        os.kill(worker.pid, signal.SIGTERM)
    found += batches
    wanted = [(batch.samples.tolist(), batch.tensors[FIELDS[0]].clone()) for batch in loader.batches(position)]
    assert [batch.samples.tolist() for batch in found] == [samples for samples, _ in wanted]
    assert all(torch.equal(a.tensors[FIELDS[0]], b) for a, (_, b) in zip(found, wanted, strict=True))


def test_the_loader_imports_no_polars():
    program = "import sys, windtunnel.shards.workers, windtunnel.shards.dataset; sys.exit('polars' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
