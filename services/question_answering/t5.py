"""T5 of transformers' parts: an encoder and a decoder that attends to any number of encoded texts at once.

Parameters have the names of published T5 checkpoints, so a state dictionary loads as it is; version 1.0 (``relu``,
tied output) and 1.1 (``gated-gelu``, as in Atlas) differ by configuration only. There is no dropout: this code serves,
and what trains here sees no text twice.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812, the field's name for it
from transformers import DynamicCache, EncoderDecoderCache
from transformers import T5Config as StackConfig
from transformers.models.t5.modeling_t5 import T5Stack

from toolformer.model_files.config import read_config, require_number, require_sizes

_FEED_FORWARDS: Final = ("gated-gelu", "relu")
_FIELDS: Final = {
    "vocab_size": "vocab_size", "d_model": "width", "d_kv": "head_width", "d_ff": "inner_width",
    "num_layers": "encoder_layers", "num_decoder_layers": "decoder_layers", "num_heads": "heads",
    "relative_attention_num_buckets": "buckets", "relative_attention_max_distance": "max_distance",
    "layer_norm_epsilon": "epsilon", "feed_forward_proj": "feed_forward", "tie_word_embeddings": "tied",
    "answer_pointer": "pointed", "pad_token_id": "pad_id", "eos_token_id": "eos_id",
}  # fmt: skip

_SIZES: Final = {
    "layers": ("encoder_layers", "decoder_layers"),
    "width": ("width", "head_width", "inner_width", "heads", "buckets"),
    "tokens": ("vocab_size", "max_distance"),
}
_UNUSED: Final = {"dropout_rate": 0.0, "pad_token_id": None, "eos_token_id": None}
"""What transformers' parts would do besides; padding is masked here, and what ends an answer is the reader's matter."""
_SHARPNESS: Final = 8.0
"""Scales the pointer's scores: it learns as fast as if its rate were so many times as high."""


@dataclass(frozen=True, slots=True)
class T5Config:
    """A T5's shape. ``width`` is the residual stream's, ``head_width`` one head's, ``inner_width`` the feed-forward's;
    decoding starts with ``pad_id``, as T5 does. A ``pointed`` one, which Atlas is not, also has a vector that finds in
    an encoded text where the answer begins.

    Raises:
        ValueError: a size that cannot hold, or a feed-forward this code does not know.
    """

    vocab_size: int
    width: int
    head_width: int
    inner_width: int
    encoder_layers: int
    decoder_layers: int
    heads: int
    buckets: int = 32
    max_distance: int = 128
    epsilon: float = 1e-6
    feed_forward: str = "gated-gelu"
    tied: bool = False
    pointed: bool = False
    pad_id: int = 0
    eos_id: int = 1

    def __post_init__(self) -> None:
        require_sizes(asdict(self), _SIZES)
        require_number("epsilon", self.epsilon)
        if self.feed_forward not in _FEED_FORWARDS:
            raise ValueError(f"feed_forward_proj is {self.feed_forward!r}; known are {', '.join(_FEED_FORWARDS)}")

    @classmethod
    def read(cls, path: Path) -> T5Config:
        """The configuration in a Hugging Face ``config.json``.

        Raises:
            ValueError: the file is no JSON object, a field is missing or does not hold.
            OSError: it cannot be read.
        """
        fields = read_config(path)
        try:
            return cls(**{ours: fields[theirs] for theirs, ours in _FIELDS.items() if theirs in fields})
        except TypeError as error:
            raise ValueError(f"{path} lacks a field of T5: {error}") from error

    def write(self, path: Path) -> None:
        """Write it as a Hugging Face ``config.json``."""
        fields = self.published() | {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]}
        fields |= {"decoder_start_token_id": self.pad_id, "is_encoder_decoder": True, "dropout_rate": 0.0}
        path.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")

    def published(self) -> dict[str, Any]:
        """Its fields by the names that published configurations have."""
        return {theirs: getattr(self, ours) for theirs, ours in _FIELDS.items()}


class T5(nn.Module):
    """An encoder and a decoder over one vocabulary."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.config = config
        self.shared = nn.Embedding(config.vocab_size, config.width)
        self.encoder: Any = _stack(config, config.encoder_layers, decoder=False)
        self.decoder: Any = _stack(config, config.decoder_layers, decoder=True)
        if not config.tied:
            self.lm_head = nn.Linear(config.width, config.vocab_size, bias=False)
        if config.pointed:
            self.pointer = nn.Parameter(torch.zeros(config.width))

    @torch.no_grad()
    def initialise(self, seed: int) -> T5:
        """Random weights as T5 draws them, the same for the same ``seed``."""
        config, random = self.config, torch.Generator().manual_seed(seed)
        deviations = {
            "q": (config.width * config.head_width) ** -0.5, "o": (config.heads * config.head_width) ** -0.5,
            "wo": config.inner_width**-0.5, "shared": 1.0,
        }  # fmt: skip
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                deviation = deviations.get(name.rsplit(".", 2)[-2], config.width**-0.5)
                parameter.normal_(0.0, deviation, generator=random)
        return self

    def encode(self, ids: Tensor, mask: Tensor, marks: Tensor | None = None) -> Tensor:
        """States (batch, length, width) of texts, each encoded apart; ``mask`` (batch, length) is true on tokens.
        ``marks`` (batch, length) are second tokens at some places, whose embeddings are added; ``pad_id`` at others."""
        embedded = self.shared(ids)
        if marks is not None:
            embedded = embedded + self.shared(marks) * (marks != self.config.pad_id)[..., None]
        states: Tensor = self.encoder(inputs_embeds=embedded, attention_mask=mask).last_hidden_state
        return states

    def decode(self, ids: Tensor, memory: DecoderMemory) -> Tensor:
        """Logits (batch, length, vocabulary) after each of ``ids`` (batch, length), which follow those decoded before;
        ``memory`` grows by them."""
        return F.linear(self.hidden(ids, memory), self.head)

    def hidden(self, ids: Tensor, memory: DecoderMemory) -> Tensor:
        """What the ``head`` reads (batch, length, width) where `decode` gives logits."""
        hidden: Tensor = self.decoder(
            inputs_embeds=self.shared(ids),
            encoder_hidden_states=memory.encoded,
            encoder_attention_mask=memory.mask,
            past_key_values=memory.cache,
        ).last_hidden_state
        return hidden * self.config.width**-0.5 if self.config.tied else hidden

    def begins(self, states: Tensor, mask: Tensor) -> Tensor:
        """Log-probabilities (batch, length) that the answer begins at each of the encoded ``states`` (batch, length,
        width) where ``mask`` is true, of a ``pointed`` model."""
        scores = _SHARPNESS * (states.float() @ self.pointer.float())
        return scores.masked_fill(~mask, -torch.inf).log_softmax(-1)

    @property
    def head(self) -> Tensor:
        """Weights (vocabulary, width) of the output."""
        weight: Tensor = self.shared.weight if self.config.tied else self.lm_head.weight
        return weight


class DecoderMemory:
    """What one batch's decoding steps share: the ``encoded`` states (batch, length, width) that the decoder attends to
    where ``mask`` (batch, length) is true, and the keys and values of these and of what has been decoded so far."""

    def __init__(self, encoded: Tensor, mask: Tensor) -> None:
        self.encoded = encoded
        self.mask = mask
        self.cache = EncoderDecoderCache(DynamicCache(), DynamicCache())


def _stack(config: T5Config, layers: int, *, decoder: bool) -> Any:
    """transformers' layers without an embedding of their own: both stacks are given vectors of the shared one."""
    fields = config.published() | _UNUSED | {"layer_norm_epsilon": float(config.epsilon)}
    fields |= {"num_layers": layers, "is_decoder": decoder, "use_cache": decoder}
    stack = T5Stack(StackConfig(**fields))
    stack.embed_tokens = None
    return stack
