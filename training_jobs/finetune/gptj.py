"""transformers' GPT-J with fast attention, for training: the same parameters under the same names.

transformers computes GPT-J's attention in eager operations, in float32, and makes logits for every token. Here
attention is torch's ``scaled_dot_product_attention``, which never holds the square of scores, rotations are one complex
product, and logits are made only where the loss counts, a piece at a time where the vocabulary is large.

Rows are texts, padded at their ends: with causal attention no token sees what is behind it, so no mask is needed
and boundaries are kept apart by themselves (docs/decisions/021-texts-of-like-length.md)."""

from __future__ import annotations

from typing import Any, Final, cast

import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812, the field's name for it
from torch.utils.checkpoint import checkpoint
from transformers.modeling_outputs import CausalLMOutput
from transformers.models.gptj.modeling_gptj import GPTJAttention, GPTJBlock, GPTJModel, GPTJPreTrainedModel

from language_model.block import rotate, rotation_table
from language_model.causal_attention import causal_attention

IGNORED: Final = -100
"""The label of tokens that the loss does not count."""


def in_product_precision(x: Tensor) -> Tensor:
    """``x`` in the precision that autocast gives products, once for the four that read it."""
    kind = x.device.type
    return x.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else x


class FastAttention(GPTJAttention):  # type: ignore[misc]
    """Attention of a layer over rows without a mask."""

    def forward(self, normed: Tensor, rotations: Tensor) -> Tensor:
        """The attention's output for ``normed`` ``[batch, tokens, n_embd]``."""
        split = (*normed.shape[:2], self.num_attention_heads, self.head_dim)
        queries = rotate(self.q_proj(normed).view(split), rotations).transpose(1, 2)
        keys = rotate(self.k_proj(normed).view(split), rotations).transpose(1, 2)
        values = self.v_proj(normed).view(split).transpose(1, 2)
        dropout = self.attn_dropout.p if self.training else 0.0
        if dropout:
            attended = F.scaled_dot_product_attention(queries, keys, values, dropout_p=dropout, is_causal=True)
        else:
            attended = causal_attention(queries, keys, values)
        return cast(Tensor, self.resid_dropout(self.out_proj(attended.transpose(1, 2).flatten(2))))


class FastBlock(GPTJBlock):  # type: ignore[misc]
    """A layer with :class:`FastAttention`; activation checkpointing works as in transformers' own."""

    def __init__(self, config: Any, layer_idx: int) -> None:
        super().__init__(config, layer_idx)
        self.attn = FastAttention(config, layer_idx)
        self.mlp.act = nn.GELU(approximate="tanh")  # gelu_new in one operation instead of eight

    def forward(self, x: Tensor, rotations: Tensor) -> Tensor:
        """The layer's output ``[batch, tokens, n_embd]``."""
        normed = in_product_precision(self.ln_1(x))
        return cast(Tensor, x + self.attn(normed, rotations) + self.mlp(normed))


class FastGPTJModel(GPTJModel):  # type: ignore[misc]
    """Embedding and layers."""

    _no_split_modules = ["FastBlock"]  # noqa: RUF012

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.h = nn.ModuleList(FastBlock(config, number) for number in range(config.n_layer))
        self._rotations: dict[torch.device, Tensor] = {}
        self.post_init()

    def forward(self, ids: Tensor) -> Tensor:
        """What the vocabulary head reads, ``[batch, tokens, n_embd]``."""
        device = ids.device
        if device not in self._rotations:  # no buffer: it must neither be sharded nor cast
            self._rotations[device] = rotation_table(self.config, device)
        rotations = self._rotations[device][: ids.shape[1]].unsqueeze(0)
        x = self.drop(self.wte(ids))
        for block in self.h:
            x = block(x, rotations)
        return cast(Tensor, self.ln_f(x))


class GPTJForCausalLM(transformers.GPTJForCausalLM):  # type: ignore[misc]
    """transformers' class of this name, of which it differs in how it computes. It has its name so that what it saves
    is transformers' model."""

    _no_split_modules = ["FastBlock"]  # noqa: RUF012
    logits_at_once = 2**26
    """Logits that are held at once; where the loss needs more they are made in pieces, and again for the gradient."""

    def __init__(self, config: Any) -> None:
        GPTJPreTrainedModel.__init__(self, config)
        self.transformer = FastGPTJModel(config)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **_: Any,
    ) -> CausalLMOutput:
        """With ``labels`` ``[batch, tokens]`` (ids, or ``IGNORED``) the loss alone: the sum of the cross-entropies in
        nats of the tokens from the second on, over ``num_items_in_batch``, or else over their number. Without, the
        logits."""
        hidden = self.transformer(input_ids)
        if labels is None:
            return CausalLMOutput(logits=self.lm_head(hidden))
        targets = labels[:, 1:]
        wanted = targets != IGNORED
        total = self._summed(hidden[:, :-1][wanted], targets[wanted])
        count = wanted.sum().clamp(min=1) if num_items_in_batch is None else num_items_in_batch
        return CausalLMOutput(loss=total / count)

    def _summed(self, hidden: Tensor, targets: Tensor) -> Tensor:
        piece = max(1, self.logits_at_once // self.config.vocab_size)
        if len(targets) <= piece:
            return self._cross_entropy(hidden, targets)
        pieces = zip(_split(hidden, piece), _split(targets, piece), strict=True)
        sums = [checkpoint(self._cross_entropy, *one, use_reentrant=False) for one in pieces]
        return torch.stack(cast("list[Tensor]", sums)).sum()

    def _cross_entropy(self, hidden: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(self.lm_head(hidden).float(), targets, reduction="sum")


def _split(rows: Tensor, size: int) -> list[Tensor]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]
