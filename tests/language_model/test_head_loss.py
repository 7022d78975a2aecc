"""The loss by pieces of the vocabulary's head, against torch's over all logits."""

import pytest
import torch
from torch.nn import functional as F  # noqa: N812, the field's name for it

from language_model.head_loss import head_loss


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("tokens", [5, 1_300])
def test_the_loss_by_pieces_of_the_head_is_the_loss_over_all_logits(tokens: int, smoothing: float) -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(shape, requires_grad=True) for shape in ((tokens, 16), (40, 16), (40,))]
    targets = torch.randint(0, 40, (tokens,))
    hidden, weight, bias = inputs
    pieces = head_loss(hidden, weight, bias, targets, smoothing=smoothing)
    whole = F.cross_entropy(F.linear(hidden, weight, bias), targets, label_smoothing=smoothing)
    assert pieces.item() == pytest.approx(whole.item(), rel=1e-5)
    found, expected = torch.autograd.grad(2 * pieces, inputs), torch.autograd.grad(2 * whole, inputs)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)


def test_a_head_may_have_no_bias() -> None:
    hidden, weight = torch.randn(3, 4), torch.randn(7, 4)
    targets = torch.tensor([1, 2, 6])
    torch.testing.assert_close(head_loss(hidden, weight, None, targets), F.cross_entropy(hidden @ weight.t(), targets))
