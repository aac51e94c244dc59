"""The training benchmark: what its sides and its counts are, and the whole of it in short."""

import pytest
from benchmarks import training
from benchmarks.training_bed import MODELS, open_bed
from benchmarks.training_plain import PlainLoop


@pytest.mark.parametrize(("model", "args"), training.FLOP_CASES)
def test_declared_operations_are_those_that_torch_counts(model, args):
    assert training.find_flop_error(model, args) < 1e-9


@pytest.mark.parametrize("model", MODELS)
def test_both_sides_train_a_model_of_the_same_size(model):
    with open_bed(model, batch_size=8, log_every=2, discard_steps=1) as bed:
        phases = bed.train(3)
        plain = PlainLoop(bed, batch_size=8)
        assert plain.train(2) > 0
        sizes = [sum(p.numel() for p in net.parameters()) for net in (bed.state.model, plain._model)]
    assert phases.steps == 2
    assert sizes[0] == sizes[1]


def test_a_bed_goes_on_where_it_was():
    with open_bed("tcn", batch_size=8, log_every=2, discard_steps=0) as bed:
        assert [bed.train(2).steps, bed.train(3).steps, bed.state.step] == [2, 3, 5]


@pytest.mark.parametrize("part", training.PARTS, ids=lambda part: part.name)
def test_every_part_gives_its_figures_in_a_short_run(part):
    result = part.run(True)
    assert set(result.figures) == set(result.cases) == set(part.figures)
