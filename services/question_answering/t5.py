"""T5 on torch: an encoder and a decoder that attends to any number of encoded texts at once.

Parameters have the names of published T5 checkpoints, so a state dictionary loads as it is; version 1.0 (``relu``,
tied output) and 1.1 (``gated-gelu``, as in Atlas) differ by configuration only. There is no dropout: this code serves,
and what trains here sees no text twice.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812, the field's name for it

from toolformer.model_files.config import read_config, require_number, require_sizes

KeysValues = tuple[Tensor, Tensor]
"""Keys and values, each (batch, heads, length, head width)."""

_FEED_FORWARDS: Final = ("gated-gelu", "relu")
_FIELDS: Final = {
    "vocab_size": "vocab_size", "d_model": "width", "d_kv": "head_width", "d_ff": "inner_width",
    "num_layers": "encoder_layers", "num_decoder_layers": "decoder_layers", "num_heads": "heads",
    "relative_attention_num_buckets": "buckets", "relative_attention_max_distance": "max_distance",
    "layer_norm_epsilon": "epsilon", "feed_forward_proj": "feed_forward", "tie_word_embeddings": "tied",
    "pad_token_id": "pad_id", "eos_token_id": "eos_id",
}  # fmt: skip

_SIZES: Final = {
    "layers": ("encoder_layers", "decoder_layers"),
    "width": ("width", "head_width", "inner_width", "heads", "buckets"),
    "tokens": ("vocab_size", "max_distance"),
}


@dataclass(frozen=True, slots=True)
class T5Config:
    """A T5's shape. ``width`` is the residual stream's, ``head_width`` one head's, ``inner_width`` the feed-forward's;
    decoding starts with ``pad_id``, as T5 does.

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
        fields = {theirs: getattr(self, ours) for theirs, ours in _FIELDS.items()}
        fields |= {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]}
        fields |= {"decoder_start_token_id": self.pad_id, "is_encoder_decoder": True, "dropout_rate": 0.0}
        path.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")


class RMSNorm(nn.Module):
    """T5's layer norm: scaled by the root of the mean square, without mean or bias; computed in float32."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, hidden: Tensor) -> Tensor:
        """Normalise the last dimension."""
        scale = torch.rsqrt(hidden.float().square().mean(-1, keepdim=True) + self.epsilon)
        return self.weight * (hidden * scale).type_as(self.weight)


class Attention(nn.Module):
    """Attention of several heads, unscaled as in T5; the first of a stack also holds the relative positions' biases."""

    def __init__(self, config: T5Config, *, positions: bool) -> None:
        super().__init__()
        inner = config.heads * config.head_width
        self.config = config
        self.q = nn.Linear(config.width, inner, bias=False)
        self.k = nn.Linear(config.width, inner, bias=False)
        self.v = nn.Linear(config.width, inner, bias=False)
        self.o = nn.Linear(inner, config.width, bias=False)
        if positions:
            self.relative_attention_bias = nn.Embedding(config.buckets, config.heads)

    def keys_values(self, hidden: Tensor) -> KeysValues:
        """Keys and values of ``hidden`` (batch, length, width), each (batch, heads, length, head width)."""
        return self._heads(self.k(hidden)), self._heads(self.v(hidden))

    def forward(self, hidden: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
        """Attend from ``hidden`` to ``keys`` and ``values``; ``bias`` (which masks, too) broadcasts to (batch, heads,
        queries, keys)."""
        queries = self._heads(self.q(hidden))
        mixed = F.scaled_dot_product_attention(queries, keys, values, attn_mask=bias, scale=1.0)
        out: Tensor = self.o(mixed.transpose(1, 2).flatten(2))
        return out

    def _heads(self, projected: Tensor) -> Tensor:
        return projected.view(*projected.shape[:2], self.config.heads, self.config.head_width).transpose(1, 2)


class FeedForward(nn.Module):
    """Two layers with a gate (``wi_0`` through GELU times ``wi_1``), or plain with ReLU."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.gated = config.feed_forward == "gated-gelu"
        if self.gated:
            self.wi_0 = nn.Linear(config.width, config.inner_width, bias=False)
            self.wi_1 = nn.Linear(config.width, config.inner_width, bias=False)
        else:
            self.wi = nn.Linear(config.width, config.inner_width, bias=False)
        self.wo = nn.Linear(config.inner_width, config.width, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """Transform each position apart."""
        inner = F.gelu(self.wi_0(hidden), approximate="tanh") * self.wi_1(hidden) if self.gated else self.wi(hidden)
        out: Tensor = self.wo(inner if self.gated else F.relu(inner))
        return out


class SelfAttentionStep(nn.Module):
    """Residual self-attention: norm, attend, add."""

    def __init__(self, config: T5Config, *, positions: bool) -> None:
        super().__init__()
        self.SelfAttention = Attention(config, positions=positions)
        self.layer_norm = RMSNorm(config.width, config.epsilon)

    def forward(self, hidden: Tensor, bias: Tensor, past: KeysValues | None = None) -> tuple[Tensor, KeysValues]:
        """The new residual stream, and the keys and values up to here (``past`` first)."""
        normed = self.layer_norm(hidden)
        keys, values = self.SelfAttention.keys_values(normed)
        if past is not None:
            keys, values = torch.cat([past[0], keys], dim=2), torch.cat([past[1], values], dim=2)
        return hidden + self.SelfAttention(normed, keys, values, bias), (keys, values)


class CrossAttentionStep(nn.Module):
    """Residual attention of the decoder to what was encoded, whose keys and values are computed once."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.EncDecAttention = Attention(config, positions=False)
        self.layer_norm = RMSNorm(config.width, config.epsilon)

    def forward(self, hidden: Tensor, encoded: KeysValues, bias: Tensor) -> Tensor:
        """The new residual stream."""
        attended: Tensor = self.EncDecAttention(self.layer_norm(hidden), *encoded, bias)
        return hidden + attended


class FeedForwardStep(nn.Module):
    """Residual feed-forward."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.DenseReluDense = FeedForward(config)
        self.layer_norm = RMSNorm(config.width, config.epsilon)

    def forward(self, hidden: Tensor) -> Tensor:
        """The new residual stream."""
        transformed: Tensor = self.DenseReluDense(self.layer_norm(hidden))
        return hidden + transformed


class Block(nn.Module):
    """One layer of a stack: self-attention, in a decoder cross-attention, feed-forward."""

    def __init__(self, config: T5Config, *, decoder: bool, positions: bool) -> None:
        super().__init__()
        cross = [CrossAttentionStep(config)] if decoder else []
        self.layer = nn.ModuleList([SelfAttentionStep(config, positions=positions), *cross, FeedForwardStep(config)])

    @property
    def self_attention(self) -> SelfAttentionStep:
        """Its first step."""
        return cast(SelfAttentionStep, self.layer[0])

    @property
    def cross_attention(self) -> CrossAttentionStep:
        """A decoder's second step."""
        return cast(CrossAttentionStep, self.layer[1])

    @property
    def feed_forward(self) -> FeedForwardStep:
        """Its last step."""
        return cast(FeedForwardStep, self.layer[-1])


class Stack(nn.Module):
    """Layers and a final norm. The first layer holds the biases of relative positions, which all layers share."""

    def __init__(self, config: T5Config, *, decoder: bool) -> None:
        super().__init__()
        self.config = config
        self.decoder = decoder
        layers = config.decoder_layers if decoder else config.encoder_layers
        self.block = nn.ModuleList(Block(config, decoder=decoder, positions=number == 0) for number in range(layers))
        self.final_layer_norm = RMSNorm(config.width, config.epsilon)

    @property
    def blocks(self) -> list[Block]:
        """Its layers in order."""
        return [cast(Block, block) for block in self.block]

    def position_bias(self, queries: int, keys: int) -> Tensor:
        """Biases (1, heads, queries, keys) of the last ``queries`` of ``keys`` positions; in a decoder later keys are
        masked."""
        table = self.blocks[0].self_attention.SelfAttention.relative_attention_bias
        device = table.weight.device
        distance = torch.arange(keys, device=device)[None] - torch.arange(keys - queries, keys, device=device)[:, None]
        bucket = _bucket(distance, self.config.buckets, self.config.max_distance, both_ways=not self.decoder)
        bias: Tensor = table(bucket).permute(2, 0, 1)[None]
        return bias.masked_fill(distance > 0, _masked(bias)) if self.decoder else bias


class T5(nn.Module):
    """An encoder and a decoder over one vocabulary."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.config = config
        self.shared = nn.Embedding(config.vocab_size, config.width)
        self.encoder = Stack(config, decoder=False)
        self.decoder = Stack(config, decoder=True)
        if not config.tied:
            self.lm_head = nn.Linear(config.width, config.vocab_size, bias=False)

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

    def encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        """States (batch, length, width) of texts, each encoded apart; ``mask`` (batch, length) is true on tokens."""
        hidden: Tensor = self.shared(ids)
        bias = self.encoder.position_bias(ids.shape[1], ids.shape[1]).to(hidden.dtype)
        bias = bias.masked_fill(~mask[:, None, None], _masked(bias))
        for block in self.encoder.blocks:
            hidden, _ = block.self_attention(hidden, bias)
            hidden = block.feed_forward(hidden)
        normed: Tensor = self.encoder.final_layer_norm(hidden)
        return normed

    def remember(self, encoded: Tensor, mask: Tensor) -> DecoderMemory:
        """What the decoder needs of ``encoded`` (batch, length, width), computed once for all its steps."""
        bias = torch.zeros_like(mask, dtype=encoded.dtype).masked_fill_(~mask, _masked(encoded))[:, None, None]
        keys_values = [block.cross_attention.EncDecAttention.keys_values(encoded) for block in self.decoder.blocks]
        return DecoderMemory(keys_values, bias, [None] * len(keys_values))

    def decode(self, ids: Tensor, memory: DecoderMemory) -> Tensor:
        """Logits (batch, length, vocabulary) after each of ``ids`` (batch, length), which follow those decoded before;
        ``memory`` grows by them."""
        hidden: Tensor = self.shared(ids)
        bias = self.decoder.position_bias(ids.shape[1], memory.length + ids.shape[1]).to(hidden.dtype)
        for number, block in enumerate(self.decoder.blocks):
            hidden, memory.decoded[number] = block.self_attention(hidden, bias, memory.decoded[number])
            hidden = block.cross_attention(hidden, memory.encoded[number], memory.bias)
            hidden = block.feed_forward(hidden)
        hidden = self.decoder.final_layer_norm(hidden)
        if self.config.tied:
            return F.linear(hidden * self.config.width**-0.5, self.shared.weight)
        logits: Tensor = self.lm_head(hidden)
        return logits


@dataclass(slots=True)
class DecoderMemory:
    """Keys and values by layer: of the encoded texts, and of what has been decoded so far."""

    encoded: list[KeysValues]
    bias: Tensor
    decoded: list[KeysValues | None]

    @property
    def length(self) -> int:
        """Tokens decoded so far."""
        first = self.decoded[0]
        return 0 if first is None else first[0].shape[2]


def _masked(like: Tensor) -> float:
    """The score that takes a key out of attention."""
    return torch.finfo(like.dtype).min


def _bucket(distance: Tensor, buckets: int, max_distance: int, *, both_ways: bool) -> Tensor:
    """The bucket of each relative position: near ones have their own, far ones share logarithmically wider ones."""
    offset = torch.zeros_like(distance)
    if both_ways:
        buckets //= 2
        offset = (distance > 0) * buckets
        distance = distance.abs()
    else:
        distance = (-distance).clamp(min=0)
    exact = buckets // 2
    spread = torch.log(distance.clamp(min=1).float() / exact) / math.log(max_distance / exact) * (buckets - exact)
    far = (exact + spread.long()).clamp(max=buckets - 1)
    return offset + torch.where(distance < exact, distance, far)
