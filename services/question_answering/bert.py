"""BERT's encoder of transformers' parts, as Contriever uses it: token states and nothing above them.

Parameters have the names of published BERT checkpoints. There is no dropout, and one segment: retrieval encodes one
text at a time.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn
from transformers import BertConfig as EncoderConfig
from transformers.models.bert.modeling_bert import BertEmbeddings, BertEncoder

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
_UNUSED: Final = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "pad_token_id": None}
"""What transformers' parts would do besides; padding is masked here."""


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
        fields = self.published() | {"model_type": "bert", "architectures": ["BertModel"], "hidden_act": "gelu"}
        path.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")

    def published(self) -> dict[str, Any]:
        """Its fields by the names that published configurations have."""
        return {theirs: getattr(self, ours) for theirs, ours in _FIELDS.items()}


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


class Bert(nn.Module):
    """The encoder."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        fields = config.published() | _UNUSED | {"layer_norm_eps": float(config.epsilon)}
        theirs = EncoderConfig(**fields, attn_implementation="sdpa")
        self.embeddings = BertEmbeddings(theirs)
        self.encoder = BertEncoder(theirs)
        if config.uncentred_norm:
            for module in [module for module in self.modules() if hasattr(module, "LayerNorm")]:
                module.LayerNorm = UncentredNorm(config.width, config.epsilon)

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
        # Both given, since buffers of a model that was made on the meta device hold nothing.
        positions = torch.arange(ids.shape[1], device=ids.device)[None]
        hidden = self.embeddings(ids, position_ids=positions, token_type_ids=torch.zeros_like(ids))
        states: Tensor = self.encoder(hidden, attention_mask=mask[:, None, None]).last_hidden_state
        return states
