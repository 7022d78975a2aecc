"""BERT's encoder on torch, as Contriever uses it: token states and nothing above them.

Parameters have the names of published BERT checkpoints. There is no dropout, and one segment: retrieval encodes one
text at a time.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812, the field's name for it

from toolformer.model_files.config import read_config, require_number, require_sizes

_FIELDS: Final = {
    "vocab_size": "vocab_size", "hidden_size": "width", "intermediate_size": "inner_width",
    "num_hidden_layers": "layers", "num_attention_heads": "heads", "max_position_embeddings": "positions",
    "type_vocab_size": "segments", "layer_norm_eps": "epsilon", "pad_token_id": "pad_id",
    "uncentred_layer_norm": "uncentred_norm",
}  # fmt: skip

_SIZES: Final = {
    "layers": ("layers",),
    "width": ("width", "inner_width", "heads"),
    "tokens": ("vocab_size", "positions", "segments"),
}


@dataclass(frozen=True, slots=True)
class BertConfig:
    """A BERT's shape; ``positions`` is its longest text in tokens, ``uncentred_norm`` says which norm it has
    (`UncentredNorm`).

    Raises:
        ValueError: a size that cannot hold.
    """

    vocab_size: int
    width: int
    inner_width: int
    layers: int
    heads: int
    positions: int = 512
    segments: int = 2
    epsilon: float = 1e-12
    pad_id: int = 0
    uncentred_norm: bool = False

    def __post_init__(self) -> None:
        require_sizes(asdict(self), _SIZES)
        require_number("epsilon", self.epsilon)
        if self.width % self.heads:
            raise ValueError(f"hidden_size {self.width} cannot be split among {self.heads} attention heads")

    @classmethod
    def read(cls, path: Path) -> BertConfig:
        """The configuration in a Hugging Face ``config.json``.

        Raises:
            ValueError: the file is no JSON object, a field is missing or does not hold.
            OSError: it cannot be read.
        """
        fields = read_config(path)
        if fields.get("hidden_act", "gelu") != "gelu":
            raise ValueError(f"hidden_act is {fields['hidden_act']!r}; a retriever's must be 'gelu'")
        try:
            return cls(**{ours: fields[theirs] for theirs, ours in _FIELDS.items() if theirs in fields})
        except TypeError as error:
            raise ValueError(f"{path} lacks a field of BERT: {error}") from error

    def write(self, path: Path) -> None:
        """Write it as a Hugging Face ``config.json``."""
        fields = {theirs: getattr(self, ours) for theirs, ours in _FIELDS.items()}
        fields |= {"model_type": "bert", "architectures": ["BertModel"], "hidden_act": "gelu"}
        path.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")


class UncentredNorm(nn.Module):
    """The layer norm of Atlas' own BERT: it subtracts the mean, but divides by the root mean square of the values
    *before* that. Atlas' retrievers were trained with it, so a plain layer norm gives them other vectors."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.epsilon = epsilon

    def forward(self, hidden: Tensor) -> Tensor:
        """Normalise the last dimension, in float32."""
        exact = hidden.float()
        scale = torch.rsqrt(exact.square().mean(-1, keepdim=True) + self.epsilon)
        return self.weight * ((exact - exact.mean(-1, keepdim=True)) * scale).type_as(self.weight) + self.bias


def _norm(config: BertConfig) -> nn.Module:
    kind = UncentredNorm if config.uncentred_norm else nn.LayerNorm
    return kind(config.width, config.epsilon)


class Embeddings(nn.Module):
    """Token, position and segment vectors, added and normalised."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.width)
        self.position_embeddings = nn.Embedding(config.positions, config.width)
        self.token_type_embeddings = nn.Embedding(config.segments, config.width)
        self.LayerNorm = _norm(config)

    def forward(self, ids: Tensor) -> Tensor:
        """Vectors (batch, length, width)."""
        positions = self.position_embeddings.weight[: ids.shape[1]]
        hidden: Tensor = self.LayerNorm(self.word_embeddings(ids) + positions + self.token_type_embeddings.weight[0])
        return hidden


class Projections(nn.Module):
    """Queries, keys and values of one layer."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.query = nn.Linear(config.width, config.width)
        self.key = nn.Linear(config.width, config.width)
        self.value = nn.Linear(config.width, config.width)

    def forward(self, hidden: Tensor, bias: Tensor) -> Tensor:
        """Every token's mixture of the others' values; ``bias`` masks."""
        queries, keys, values = (
            projection(hidden).view(*hidden.shape[:2], self.heads, -1).transpose(1, 2)
            for projection in (self.query, self.key, self.value)
        )
        mixed = F.scaled_dot_product_attention(queries, keys, values, attn_mask=bias)
        return mixed.transpose(1, 2).flatten(2)


class Output(nn.Module):
    """A projection that is added to what went into the step, and normalised."""

    def __init__(self, config: BertConfig, inner_width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(inner_width, config.width)
        self.LayerNorm = _norm(config)

    def forward(self, inner: Tensor, before: Tensor) -> Tensor:
        """The step's result."""
        hidden: Tensor = self.LayerNorm(before + self.dense(inner))
        return hidden


class Layer(nn.Module):
    """Self-attention and feed-forward, each with its norm after it."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = nn.ModuleDict({"self": Projections(config), "output": Output(config, config.width)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(config.width, config.inner_width)})
        self.output = Output(config, config.inner_width)

    def forward(self, hidden: Tensor, bias: Tensor) -> Tensor:
        """The states after this layer."""
        hidden = self.attention["output"](self.attention["self"](hidden, bias), hidden)
        inner = F.gelu(self.intermediate["dense"](hidden))
        result: Tensor = self.output(inner, hidden)
        return result


class Bert(nn.Module):
    """The encoder."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(Layer(config) for _ in range(config.layers))})

    @torch.no_grad()
    def initialise(self, seed: int) -> Bert:
        """Random weights as BERT draws them, the same for the same ``seed``."""
        random = torch.Generator().manual_seed(seed)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                parameter.normal_(0.0, 0.02, generator=random)
            elif name.endswith("bias"):
                parameter.zero_()
        return self

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """States (batch, length, width); ``mask`` (batch, length) is true on tokens."""
        hidden: Tensor = self.embeddings(ids)
        bias = torch.zeros_like(mask, dtype=hidden.dtype)
        bias = bias.masked_fill_(~mask, torch.finfo(hidden.dtype).min)[:, None, None]
        for layer in cast(nn.ModuleList, self.encoder["layer"]):
            hidden = layer(hidden, bias)
        return hidden
