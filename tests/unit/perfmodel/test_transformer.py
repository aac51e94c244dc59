from dataclasses import replace

import pytest

from windtunnel.perfmodel.transformer import Transformer, count_model_flops

LLAMA3_8B = Transformer(32, 4096, 32, 8, 14336, 128_256, 8192, gated=True, tied=False)


def test_published_sizes_are_met(gpt):
    assert gpt.params == pytest.approx(175e9, rel=0.01)
    assert LLAMA3_8B.params == pytest.approx(8.03e9, rel=0.001)


def test_operations_are_those_of_the_published_formula(gpt):
    # Narayanan et al. 2021 (arXiv:2104.04473), section 5.1, without its recomputation: 72 instead of 96.
    batch, layers, width, seq, vocab = 7, gpt.layers, gpt.width, gpt.seq, gpt.vocab
    formula = 72 * batch * seq * layers * width**2 * (1 + seq / (6 * width) + vocab / (12 * layers * width))
    assert count_model_flops(gpt, batch * seq) == pytest.approx(formula, rel=1e-12)


def test_causal_operations_are_those_of_another_published_count():
    # 51.5 GFLOP a token: 6 (parameters without the embedding) + 6 layers width sequence.
    assert count_model_flops(LLAMA3_8B, 1, causal=True) == pytest.approx(51.5e9, rel=0.001)


def test_fewer_heads_of_keys_and_values_are_fewer_parameters_of_theirs_alone(gpt):
    grouped = replace(gpt, kv_heads=8)
    spared = 2 * gpt.width * gpt.width * (1 - 8 / 96) * gpt.layers
    assert gpt.params - grouped.params == pytest.approx(spared)


def test_a_tied_embedding_counts_once_as_parameters_and_its_product_is_made_either_way(gpt):
    untied = replace(gpt, tied=False)
    assert untied.params - gpt.params == gpt.embedding_params
    assert count_model_flops(untied, 10) == count_model_flops(gpt, 10)
