"""A transformer's size and work: parameters, and floating-point operations of its parts. Exact counts, no hardware.

A multiplication with an addition is 2 operations. The backward pass takes twice the forward pass: the gradient of
the input and of the weight are each a product of the same size (Kaplan et al. 2020, arXiv:2001.08361, section 2.1).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Transformer:
    """A decoder of equal layers; counts leave out norms and biases, which are below one in a thousand."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    ffn_width: int
    vocab: int
    seq: int
    gated: bool = False
    """Three matrices in the feed-forward part (SwiGLU) instead of two."""
    tied: bool = True
    """One matrix for the embedding and the output."""

    @property
    def kv_width(self) -> int:
        """Width of keys, and of values, of all their heads together."""
        return self.width * self.kv_heads // self.heads

    @property
    def layer_params(self) -> int:
        """Matrix parameters of one layer."""
        attention = 2 * self.width * self.width + 2 * self.width * self.kv_width
        return attention + (3 if self.gated else 2) * self.width * self.ffn_width

    @property
    def embedding_params(self) -> int:
        """Of one embedding matrix."""
        return self.vocab * self.width

    @property
    def params(self) -> int:
        """All matrix parameters; a tied embedding counts once."""
        return self.layers * self.layer_params + (1 if self.tied else 2) * self.embedding_params


def count_matmul_flops(model: Transformer, tokens: float) -> float:
    """Forward operations of one layer's weight matrices over so many tokens."""
    return 2.0 * tokens * model.layer_params


def count_attention_flops(model: Transformer, tokens: float, *, causal: bool = False) -> float:
    """Forward operations of one layer's scores and their weighted sum; half where those of the future are skipped."""
    full = 4.0 * tokens * model.seq * model.width
    return full / 2 if causal else full


def count_head_flops(model: Transformer, tokens: float) -> float:
    """Forward operations of the output matrix."""
    return 2.0 * tokens * model.embedding_params


def count_model_flops(model: Transformer, tokens: float, *, causal: bool = False) -> float:
    """Operations of a training step over so many tokens, three times the forward pass: what MFU counts.

    What is computed anew in the backward pass is no part of it.
    """
    layer = count_matmul_flops(model, tokens) + count_attention_flops(model, tokens, causal=causal)
    return 3.0 * (model.layers * layer + count_head_flops(model, tokens))
