from torch import nn

from windtunnel.models.tcn import TCN
from windtunnel.models.transformer import Block, CausalTransformer
from windtunnel.training.parallelize import find_blocks


def test_the_blocks_of_our_models_are_found():
    transformer = CausalTransformer(5, 2, 12, layers=3)
    assert list(find_blocks(transformer)) == list(transformer.blocks)
    assert all(isinstance(block, Block) for block in find_blocks(transformer))
    assert len(list(find_blocks(TCN(5, 2, 12, levels=2)))) == 2


def test_a_sequence_of_unlike_members_is_no_row_of_blocks():
    assert list(find_blocks(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))) == []


def test_blocks_further_down_are_found():
    stages = nn.ModuleDict({"stage": nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 3)])})
    assert list(find_blocks(stages)) == list(stages["stage"])
