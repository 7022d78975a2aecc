"""Attention by bands, against torch's own."""

import pytest
import torch
from torch.nn import functional as F  # noqa: N812, the field's name for it

from language_model.causal_attention import causal_attention


@pytest.mark.parametrize("tokens", [1, 7, 128, 300])
def test_attention_by_bands_is_attention(tokens: int) -> None:
    torch.manual_seed(0)
    queries, keys, values = inputs = [torch.randn(2, tokens, 3, 8).transpose(1, 2).requires_grad_() for _ in range(3)]
    weight = torch.randn(2, 3, tokens, 8)
    expected = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
    with torch.autocast("cpu", torch.bfloat16):
        found = causal_attention(queries, keys, values)
    assert found.dtype == torch.bfloat16
    pairs = zip(
        [found, *torch.autograd.grad((found * weight).sum(), inputs)],
        [expected, *torch.autograd.grad((expected * weight).sum(), inputs)],
        strict=True,
    )
    for one, other in pairs:
        # Of one token the gradients of queries and keys are nothing, but for torch's rounding.
        assert torch.linalg.vector_norm(one.float() - other) <= 0.01 * torch.linalg.vector_norm(other) + 1e-5


def test_without_autocast_it_is_torchs_own() -> None:
    queries, keys, values = (torch.randn(1, 2, 200, 8) for _ in range(3))
    expected = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
    assert torch.equal(causal_attention(queries, keys, values), expected)
