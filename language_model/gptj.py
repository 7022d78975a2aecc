"""GPT-J (Wang and Komatsuzaki, 2021) on torch, with fast attention and a cache that can be kept, cut and extended.

A block computes attention and the feed-forward layer from the same normalised input and adds both to the residual.
Queries, keys and values come from one matrix product; attention is torch's ``scaled_dot_product_attention``.
Weights are those of a Hugging Face ``GPTJForCausalLM`` checkpoint (``checkpoint.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from language_model.block import Block, rotation_table
from language_model.causal_attention import causal_attention
from language_model.config import GPTJConfig
from language_model.kv_cache import KVCache, require_room
from language_model.stepper import Stepper
from language_model.where import Run, Where


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
        self.register_buffer("rotations", rotation_table(config, self.wte.weight.device), persistent=False)
        self.stepper: Stepper | None = None
        """What computes :meth:`extend`; without one torch does. It is chosen before the first cache is made."""

    @classmethod
    def from_config(
        cls,
        config: GPTJConfig,
        *,
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> GPTJ:
        """A fresh model with GPT-J's initialisation (normal, deviation 0.02), repeatable under ``seed`` on one kind of
        device. It is made where it stays."""
        usual = torch.get_default_dtype()
        try:
            torch.set_default_dtype(dtype)
            with torch.device(device):
                model = cls(config)
        finally:
            torch.set_default_dtype(usual)
        generator = torch.Generator(device).manual_seed(seed)
        for module in model.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02, generator=generator)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        return model

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

    def expect_step(self) -> None:
        """Let what sleeps between steps wake up: one will come in a moment. Any thread may call this."""
        if self.stepper is not None:
            self.stepper.expect()

    def prepare(self, cache: KVCache, rows: int) -> None:
        """Do now what steps of up to ``rows`` rows would else wait for at first: recording them takes seconds."""
        if self.stepper is not None:
            self.stepper.prepare(cache, rows)

    def new_cache(self, rows: int, max_length: int | None = None) -> KVCache:
        """A cache for ``rows`` sequences of at most ``max_length`` tokens (default: all the model's positions)."""
        return KVCache(
            self.config,
            rows,
            max_length or self.config.n_positions,
            dtype=self.dtype,
            device=self.device,
            spare_column=self.stepper is not None and self.stepper.spare_column,
        )

    def forward(self, ids: Tensor) -> Tensor:
        """Logits ``[batch, tokens, vocabulary]`` of ``ids`` ``[batch, tokens]``, each token seeing those before it."""
        return cast(Tensor, self.lm_head(self.hidden(ids)))

    def hidden(self, ids: Tensor) -> Tensor:
        """What the vocabulary head reads, ``[batch, tokens, n_embd]``: for callers that need few of its rows."""
        x: Tensor = self.wte(ids)
        rotations = self.rotations[: ids.shape[1]].unsqueeze(0)
        for block in self.layers():
            normed = block.ln_1(x)
            queries, keys, values = block.project(normed, rotations)
            attended = causal_attention(queries, keys, values)
            x = block.finish(x, normed, attended)
        return cast(Tensor, self.ln_f(x))

    def extend(self, cache: KVCache, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> Tensor:
        """Append ``ids[i]`` to row ``rows[i]`` of ``cache``; logits ``[len(rows), vocabulary]`` after each row's
        last token.

        Rows may get different numbers of tokens (at least one).

        Raises:
            ValueError: if a row would outgrow the cache or gets no token.
        """
        require_room(cache, rows, ids)
        return (self.stepper.extend if self.stepper else self.extend_by_torch)(cache, rows, ids)

    @torch.inference_mode()
    def extend_by_torch(self, cache: KVCache, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> Tensor:
        """As :meth:`extend`, for a stepper that leaves rows to torch; there is room in the rows.

        Each run of rows that get the same number of tokens is computed by itself: neighbouring, ascending rows are
        read in place, others are gathered first."""
        runs = [list(run) for _, run in groupby(range(len(rows)), key=lambda at: len(ids[at]))]
        last = [self._extend(cache, [rows[at] for at in run], [ids[at] for at in run])[:, -1] for run in runs]
        return cast(Tensor, self.lm_head(torch.cat(last) if len(last) > 1 else last[0]))

    @torch.inference_mode()
    def extend_every(self, cache: KVCache, row: int, ids: Sequence[int]) -> Tensor:
        """Append ``ids`` to ``row``; logits ``[len(ids), vocabulary]`` after each of them.

        Raises:
            ValueError: if the row would outgrow the cache or gets no token.
        """
        require_room(cache, [row], [ids])
        return cast(Tensor, self.lm_head(self._extend(cache, [row], [ids])[0]))

    def _extend(self, cache: KVCache, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> Tensor:
        """What the vocabulary head reads, ``[len(rows), tokens, n_embd]``; each row gets the same number of tokens."""
        tokens = len(ids[0])
        run = Run.of(cache, rows, tokens)
        new = torch.tensor([list(of_row) for of_row in ids], device=self.device)
        mask, causal = run.sight()
        x = self.through_cache(new, self.rotations[run.where.columns], cache, run.where, mask, causal=causal)
        for row in rows:
            cache.lengths[row] += tokens
        return x.view(len(rows), tokens, -1)

    def through_cache(
        self, ids: Tensor, rotations: Tensor, cache: KVCache, where: Where, mask: Tensor | None, *, causal: bool
    ) -> Tensor:
        """What the vocabulary head reads, ``[batch * tokens, n_embd]``, of new tokens ``ids`` ``[batch, tokens]`` that
        join the cache at ``where``. ``rotations`` are those of their positions; they see what ``mask`` says, the tokens
        before them if they are ``causal``, or else all of their rows."""
        x = F.embedding(ids, self.wte.weight).flatten(0, 1)
        for layer, block in enumerate(self.layers()):
            x = block.extend(x, rotations, cache, layer, where, mask, causal)
        return cast(Tensor, self.ln_f(x))

    def layers(self) -> Sequence[Block]:
        """The blocks, in order."""
        return cast(Sequence[Block], self.blocks)
