"""Rows fed piece by piece give the very bits of the whole series."""

from itertools import product

import pytest
import torch
from windows_oracle import FUNCTIONS, KINDS, make_series

from windtunnel.errors import SettingsError, UserError
from windtunnel.kernels.stream import begin, count_block_rows, update


def cut(rows: int, seed: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    pieces = []
    while sum(pieces) < rows:
        longest = int(torch.tensor([2, 200, 1500])[torch.randint(3, (1,), generator=generator)])
        pieces.append(min(int(torch.randint(0, longest, (1,), generator=generator)), rows - sum(pieces)))
    return pieces


def run_stream(moment: str, x: torch.Tensor, window: int, *, seed: int, backend: str = "auto") -> torch.Tensor:
    state, results = begin(moment, window, min_periods=min(2, window), backend=backend), []
    for piece in x.split(cut(x.shape[-2], seed), -2):
        state, result = update(state, piece)
        results.append(result)
    return torch.cat(results, -2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [1, 11])
@pytest.mark.parametrize("window", [1, 20, 300])
def test_pieces_give_the_bits_of_the_whole(kind: str, columns: int, window: int) -> None:
    seed = 31 * columns + window
    for (moment, function), dtype in product(FUNCTIONS.items(), (torch.float32, torch.float64)):
        x_tc = make_series(kind, 2600, columns, seed=seed).to(dtype)
        whole = function(x_tc, window, min_periods=min(2, window))
        pieces = run_stream(moment, x_tc, window, seed=seed)
        assert torch.equal(pieces.nan_to_num(9), whole.nan_to_num(9)), moment


@pytest.mark.parametrize("backend", ["cpp", "reference"])
def test_a_batch_is_streamed_as_well(backend: str) -> None:
    x_btc = make_series("gaps", 3 * 400, 5).reshape(3, 400, 5)
    whole = FUNCTIONS["zscore"](x_btc, 20, min_periods=2, backend=backend)
    pieces = run_stream("zscore", x_btc, 20, seed=1, backend=backend)
    assert torch.equal(pieces.nan_to_num(9), whole.nan_to_num(9))


def test_a_state_keeps_no_more_than_it_needs_and_may_be_used_twice() -> None:
    state = begin("std", 10)
    state, _ = update(state, torch.randn(5000, 2))
    assert state.recent is not None
    assert len(state.recent) < 10 + count_block_rows(10)
    x = torch.randn(3, 2)
    assert torch.equal(update(state, x)[1], update(state, x)[1])


def test_rows_that_do_not_follow_are_refused() -> None:
    state, _ = update(begin("mean", 3), torch.zeros(4, 2))
    with pytest.raises(UserError, match=r"rows of \(4, 3\) torch.float32 cannot follow"):
        update(state, torch.zeros(4, 3))
    with pytest.raises(UserError, match="cannot follow"):
        update(state, torch.zeros(4, 2).double())


def test_a_stream_of_nothing_known_is_refused() -> None:
    with pytest.raises(UserError, match="moment 'median': expected one of mean, sum"):
        begin("median", 3)
    with pytest.raises(SettingsError, match="window=0"):
        begin("mean", 0)


def test_rows_that_are_lacking_are_noticed() -> None:
    with pytest.raises(RuntimeError, match="x lacks rows"):
        torch.ops.windtunnel.rolling_resume(torch.zeros(10), 0, 5, 1, 1100, 2)
