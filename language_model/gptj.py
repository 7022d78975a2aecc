"""GPT-J (Wang and Komatsuzaki, 2021) on torch, with fast attention and a cache that can be kept, cut and extended.

A block computes attention and the feed-forward layer from the same normalised input and adds both to the residual.
Queries, keys and values come from one matrix product; attention is torch's ``scaled_dot_product_attention``.
Weights are those of a Hugging Face ``GPTJForCausalLM`` checkpoint (``checkpoint.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from language_model.config import GPTJConfig
from language_model.kv_cache import KVCache

if TYPE_CHECKING:
    from language_model.native.step import NativeStep


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
        """The layer's output for new tokens ``x`` ``[batch * tokens, n_embd]``, which join the cache.

        The same arithmetic as :meth:`project` and :meth:`finish`, in as few operations as it takes and past the
        modules' own ``__call__``: of a single token's step on a CPU, more than half is overhead of that kind.
        """
        batch, tokens = where.columns.shape
        normed = F.layer_norm(x, self.ln_1.normalized_shape, self.ln_1.weight, self.ln_1.bias, self.ln_1.eps)
        qkv = F.linear(normed, self.qkv_proj.weight).view(batch, tokens, 3 * self.heads, self.width)
        rotate_in_place(qkv[:, :, : 2 * self.heads], rotations)
        cache.write(layer, where.row_of, where.columns, qkv[:, :, self.heads :])
        keys, values = cache.read(layer, where.rows, where.length)
        queries = qkv[:, :, : self.heads].transpose(1, 2)
        attended = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, is_causal=causal)
        x = torch.addmm(x, attended.transpose(1, 2).reshape(x.shape), self.out_proj.weight.t())
        hidden = F.gelu(F.linear(normed, self.fc_in.weight, self.fc_in.bias), approximate="tanh")
        return x.add_(F.linear(hidden, self.fc_out.weight, self.fc_out.bias))

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
        self._compiled: NativeStep | None = None

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

    @property
    def max_positions(self) -> int:
        """Tokens of the longest sequence."""
        return self.config.n_positions

    @property
    def end_ids(self) -> list[int]:
        """The token that ends a text."""
        return [self.config.eos_token_id]

    @property
    def cache_bytes_per_token(self) -> int:
        """Bytes that a token takes in a cache of :meth:`new_cache`."""
        return self.config.n_layer * 2 * self.config.n_embd * self.dtype.itemsize

    def use_compiled_step(self) -> None:
        """Let :meth:`extend` use compiled code from now on (``native/``), which has a copy of the weights: changing
        them no longer reaches it.

        Raises:
            Unavailable: if the model is not one for it, or no C compiler is at hand; the message says which.
        """
        from language_model.native.step import NativeStep

        self._compiled = NativeStep(self)

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

    def extend(self, cache: KVCache, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> Tensor:
        """Append ``ids[i]`` to row ``rows[i]`` of ``cache``; logits ``[len(rows), vocabulary]`` after each row's
        last token.

        Rows may get different numbers of tokens (at least one). torch computes each run of rows that get the same
        number by itself: neighbouring, ascending rows are read in place, others are gathered first.

        Raises:
            ValueError: if a row would outgrow the cache or gets no token.
        """
        _require_room(cache, rows, ids)
        if self._compiled is not None:
            return self._compiled.extend(cache, rows, ids)
        with torch.inference_mode():
            return self._extend_by_torch(cache, rows, ids)

    def _extend_by_torch(self, cache: KVCache, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> Tensor:
        runs = [list(run) for _, run in groupby(range(len(rows)), key=lambda at: len(ids[at]))]
        last = [self._extend(cache, [rows[at] for at in run], [ids[at] for at in run])[:, -1] for run in runs]
        return cast(Tensor, self.lm_head(torch.cat(last) if len(last) > 1 else last[0]))

    @torch.inference_mode()
    def extend_every(self, cache: KVCache, row: int, ids: Sequence[int]) -> Tensor:
        """Append ``ids`` to ``row``; logits ``[len(ids), vocabulary]`` after each of them.

        Raises:
            ValueError: if the row would outgrow the cache or gets no token.
        """
        _require_room(cache, [row], [ids])
        return cast(Tensor, self.lm_head(self._extend(cache, [row], [ids])[0]))

    def _extend(self, cache: KVCache, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> Tensor:
        """What the vocabulary head reads, ``[len(rows), tokens, n_embd]``; each row gets the same number of tokens."""
        tokens = len(ids[0])
        starts = [cache.lengths[row] for row in rows]
        length = max(starts) + tokens
        new = torch.tensor([list(of_row) for of_row in ids], device=self.device)
        columns = torch.tensor([range(start, start + tokens) for start in starts], device=self.device)
        row_of = torch.tensor([[row] for row in rows], device=self.device)
        neighbours = list(rows) == list(range(rows[0], rows[0] + len(rows)))
        where = Where(slice(rows[0], rows[0] + len(rows)) if neighbours else row_of.squeeze(1), row_of, columns, length)
        # From the beginning no mask is needed but the causal one, which has the faster kernel; one token each after
        # rows of one length needs none at all.
        causal = tokens > 1 and not any(starts)
        mask = None
        if not causal and (tokens > 1 or len(set(starts)) > 1):
            mask = (torch.arange(length, device=self.device) <= columns.unsqueeze(-1)).unsqueeze(1)
        rotations = self.rotations[columns]
        x = F.embedding(new, self.wte.weight).flatten(0, 1)
        for layer, block in enumerate(self._blocks()):
            x = block.extend(x, rotations, cache, layer, where, mask, causal)
        for row in rows:
            cache.lengths[row] += tokens
        return cast(Tensor, self.ln_f(x)).view(len(rows), tokens, -1)

    def _blocks(self) -> Sequence[Block]:
        return cast(Sequence[Block], self.blocks)


def _require_room(cache: KVCache, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> None:
    for row, new in zip(rows, ids, strict=True):
        if not new:
            raise ValueError("every row must get at least one token")
        if (needed := cache.lengths[row] + len(new)) > cache.max_length:
            raise ValueError(f"{needed} tokens do not fit a cache of {cache.max_length}")
