"""GPT-J (Wang and Komatsuzaki, 2021) on torch, with fast attention and a cache that can be kept, cut and extended.

A block computes attention and the feed-forward layer from the same normalised input and adds both to the residual.
Queries, keys and values come from one matrix product; attention is torch's ``scaled_dot_product_attention``.
Weights are those of a Hugging Face ``GPTJForCausalLM`` checkpoint (``checkpoint.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from language_model.config import GPTJConfig
from language_model.kv_cache import KVCache


def rotation_table(config: GPTJConfig, device: torch.device | str = "cpu") -> Tensor:
    """Rotary position embedding as unit complex numbers ``[n_positions, rotary_dim / 2]`` (Su et al., 2021).

    GPT-J rotates neighbouring pairs of dimensions, so a pair is a complex number and a rotation is one product.
    """
    exponents = torch.arange(0, config.rotary_dim, 2, dtype=torch.float32, device=device) / config.rotary_dim
    angles = torch.outer(torch.arange(config.n_positions, dtype=torch.float32, device=device), 10000.0**-exponents)
    return torch.polar(torch.ones_like(angles), angles)


def rotate(x: Tensor, rotations: Tensor) -> Tensor:
    """Rotate the first dimensions of ``x`` ``[batch, tokens, heads, head_dim]`` by ``rotations`` ``[batch or 1,
    tokens, pairs]``."""
    width = 2 * rotations.shape[-1]
    pairs = torch.view_as_complex(x[..., :width].float().reshape(*x.shape[:-1], -1, 2))
    turned = torch.view_as_real(pairs * rotations.unsqueeze(2)).flatten(-2).to(x.dtype)
    return torch.cat([turned, x[..., width:]], dim=-1)


def rotate_in_place(x: Tensor, rotations: Tensor) -> None:
    """As :func:`rotate`, into ``x`` itself: for inference, where a token's time goes into the number of operations."""
    turned = x[..., : 2 * rotations.shape[-1]]
    if x.dtype == torch.float32:
        torch.view_as_complex(turned.view(*turned.shape[:-1], -1, 2)).mul_(rotations.unsqueeze(2))
    else:
        turned.copy_(rotate(turned, rotations))


class Block(nn.Module):
    """One layer of GPT-J: ``x + attention(norm(x)) + feed_forward(norm(x))``."""

    def __init__(self, config: GPTJConfig) -> None:
        super().__init__()
        self.heads, self.width = config.n_head, config.head_dim
        self.ln_1 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.qkv_proj = nn.Linear(config.n_embd, 3 * config.n_embd, bias=False)
        self.out_proj = nn.Linear(config.n_embd, config.n_embd, bias=False)
        self.fc_in = nn.Linear(config.n_embd, config.inner_dim)
        self.fc_out = nn.Linear(config.inner_dim, config.n_embd)

    def project(self, normed: Tensor, rotations: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys (both rotated) and values ``[batch, heads, tokens, head_dim]`` of ``normed``."""
        batch, tokens, _ = normed.shape
        qkv = self.qkv_proj(normed).view(batch, tokens, 3 * self.heads, self.width)
        queries_keys, values = qkv.split([2 * self.heads, self.heads], dim=2)
        turned = rotate(queries_keys, rotations).transpose(1, 2)
        return turned[:, : self.heads], turned[:, self.heads :], values.transpose(1, 2)

    def extend(
        self, x: Tensor, rotations: Tensor, cache: KVCache, layer: int, where: Where, mask: Tensor | None, causal: bool
    ) -> Tensor:
        """The layer's output for new tokens ``x`` ``[batch, tokens, n_embd]``, which join the cache."""
        batch, tokens, _ = x.shape
        normed = self.ln_1(x)
        qkv = self.qkv_proj(normed).view(batch, tokens, 3 * self.heads, self.width)
        rotate_in_place(qkv[:, :, : 2 * self.heads], rotations)
        cache.write(layer, where.row_of, where.columns, qkv[:, :, self.heads :])
        keys, values = cache.read(layer, where.rows, where.length)
        queries = qkv[:, :, : self.heads].transpose(1, 2)
        attended = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, is_causal=causal)
        return self.finish(x, normed, attended)

    def finish(self, x: Tensor, normed: Tensor, attended: Tensor) -> Tensor:
        """Add attention's output and the feed-forward layer's to the residual ``x``."""
        merged = attended.transpose(1, 2).flatten(2)
        hidden = F.gelu(self.fc_in(normed), approximate="tanh")
        return cast(Tensor, x + self.out_proj(merged) + self.fc_out(hidden))


@dataclass(frozen=True, slots=True)
class Where:
    """Where new tokens go in a cache: its ``rows`` as an index, ``row_of`` ``[batch, 1]`` and ``columns`` ``[batch,
    tokens]`` of each token, and the ``length`` of the longest row with them."""

    rows: slice | Tensor
    row_of: Tensor
    columns: Tensor
    length: int


class GPTJ(nn.Module):
    """A causal language model of GPT-J's architecture."""

    rotations: Tensor

    def __init__(self, config: GPTJConfig) -> None:
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size)
        self.register_buffer("rotations", rotation_table(config), persistent=False)

    @classmethod
    def from_config(cls, config: GPTJConfig, *, seed: int = 0) -> GPTJ:
        """A fresh model with GPT-J's initialisation (normal, deviation 0.02), repeatable under ``seed``."""
        model = cls(config)
        generator = torch.Generator().manual_seed(seed)
        for module in model.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02, generator=generator)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        return model

    @classmethod
    def from_pretrained(
        cls, directory: Path | str, *, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
    ) -> GPTJ:
        """Load a Hugging Face checkpoint directory (see ``checkpoint.load``)."""
        from language_model import checkpoint

        return checkpoint.load(Path(directory), dtype=dtype, device=device)

    def save_pretrained(self, directory: Path | str) -> None:
        """Write a checkpoint that transformers' ``GPTJForCausalLM.from_pretrained`` loads."""
        from language_model import checkpoint

        checkpoint.save(self, Path(directory))

    @property
    def device(self) -> torch.device:
        return self.wte.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.wte.weight.dtype

    def new_cache(self, rows: int, max_length: int | None = None) -> KVCache:
        """A cache for ``rows`` sequences of at most ``max_length`` tokens (default: all the model's positions)."""
        return KVCache(self.config, rows, max_length or self.config.n_positions, dtype=self.dtype, device=self.device)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits ``[batch, tokens, vocabulary]`` of ``ids`` ``[batch, tokens]``, each token seeing those before it."""
        return cast(Tensor, self.lm_head(self.hidden(ids)))

    def hidden(self, ids: Tensor) -> Tensor:
        """What the vocabulary head reads, ``[batch, tokens, n_embd]``: for callers that need few of its rows."""
        x: Tensor = self.wte(ids)
        rotations = self.rotations[: ids.shape[1]].unsqueeze(0)
        for block in self._blocks():
            normed = block.ln_1(x)
            queries, keys, values = block.project(normed, rotations)
            attended = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
            x = block.finish(x, normed, attended)
        return cast(Tensor, self.ln_f(x))

    @torch.inference_mode()
    def extend(self, cache: KVCache, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> Tensor:
        """Append ``ids[i]`` to row ``rows[i]`` of ``cache``; logits ``[len(rows), vocabulary]`` after each row's
        last token.

        Rows may get different numbers of tokens (at least one). Neighbouring, ascending rows are read in place;
        others are gathered first.

        Raises:
            ValueError: if a row would outgrow the cache or gets no token.
        """
        hidden = self._extend(cache, rows, ids)
        counts = torch.tensor([len(new) for new in ids], device=self.device)
        last = hidden[torch.arange(len(rows), device=self.device), counts - 1]
        return cast(Tensor, self.lm_head(last))

    @torch.inference_mode()
    def extend_all(self, cache: KVCache, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> Tensor:
        """As :meth:`extend`, with the logits of every new token ``[len(rows), max tokens, vocabulary]`` (padding:
        garbage)."""
        return cast(Tensor, self.lm_head(self._extend(cache, rows, ids)))

    def _extend(self, cache: KVCache, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> Tensor:
        widest = max(map(len, ids))
        starts = [cache.lengths[row] for row in rows]
        ends = [start + len(new) for start, new in zip(starts, ids, strict=True)]
        if min(map(len, ids)) == 0:
            raise ValueError("every row must get at least one token")
        if max(ends) > cache.max_length:
            raise ValueError(f"{max(ends)} tokens do not fit a cache of {cache.max_length}")
        padded = torch.tensor([[*new, *[0] * (widest - len(new))] for new in ids], device=self.device)
        positions = torch.tensor(starts, device=self.device).unsqueeze(1) + torch.arange(widest, device=self.device)
        length = max(ends)
        # Padding is written past a row's end, where nothing reads it; the clamp keeps it inside the cache.
        columns = positions.clamp(max=cache.max_length - 1)
        padding = torch.arange(widest, device=self.device) >= torch.tensor(
            [[len(new)] for new in ids], device=self.device
        )
        if widest > 1 and bool((padding & (positions >= cache.max_length)).any()):
            raise ValueError("padding would overwrite the cache's last token: extend such rows apart")
        neighbours = list(rows) == list(range(rows[0], rows[0] + len(rows)))
        row_of = torch.tensor(list(rows), device=self.device)
        index = slice(rows[0], rows[0] + len(rows)) if neighbours else row_of
        where = Where(index, row_of.unsqueeze(1), columns, length)
        # One sequence from its beginning needs no mask but the causal one, which has the faster kernel.
        causal = starts == [0] * len(rows) and widest == length and widest > 1
        mask = None
        if not causal and (widest > 1 or min(ends) != length):
            mask = torch.arange(length, device=self.device) <= positions.unsqueeze(-1)
            mask = mask.unsqueeze(1)
        rotations = self.rotations[columns]
        x: Tensor = self.wte(padded)
        for layer, block in enumerate(self._blocks()):
            x = block.extend(x, rotations, cache, layer, where, mask, causal)
        for row, end in zip(rows, ends, strict=True):
            cache.lengths[row] = end
        return cast(Tensor, self.ln_f(x))

    def _blocks(self) -> Sequence[Block]:
        return cast(Sequence[Block], self.blocks)
