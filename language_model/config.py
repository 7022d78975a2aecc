"""GPT-J's shape, read from and written to a Hugging Face ``config.json``."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from toolformer.model_files.config import ConfigError, read_config, require_number, require_sizes

_SIZES: Final = {
    "layers": ("n_layer",),
    "width": ("n_embd", "n_head", "rotary_dim"),
    "tokens": ("vocab_size", "n_positions"),
}


class CheckpointError(Exception):
    """A checkpoint cannot be used. The message names the file and the remedy."""


@dataclass(frozen=True, slots=True)
class GPTJConfig:
    """Sizes of a GPT-J; the defaults are GPT-J-6B's. Names are those of Hugging Face's ``GPTJConfig``.

    Raises:
        CheckpointError: if the sizes do not fit together.
    """

    vocab_size: int = 50400
    n_positions: int = 2048
    n_embd: int = 4096
    n_layer: int = 28
    n_head: int = 16
    rotary_dim: int = 64
    n_inner: int | None = None
    layer_norm_epsilon: float = 1e-5
    bos_token_id: int = 50256
    eos_token_id: int = 50256

    def __post_init__(self) -> None:
        try:
            require_sizes(asdict(self), _SIZES)
            if self.n_inner is not None:
                require_sizes(asdict(self), {"width": ("n_inner",)})
            require_number("layer_norm_epsilon", self.layer_norm_epsilon)
        except ConfigError as error:
            raise CheckpointError(f"config.json: {error}") from None
        if self.n_embd % self.n_head:
            raise CheckpointError(f"config.json: n_embd {self.n_embd} is not a multiple of n_head {self.n_head}")
        if self.rotary_dim % 2 or not 0 < self.rotary_dim <= self.head_dim:
            raise CheckpointError(
                f"config.json: rotary_dim {self.rotary_dim} must be even and at most the head's width {self.head_dim}"
            )

    @property
    def head_dim(self) -> int:
        return self.n_embd // self.n_head

    @property
    def inner_dim(self) -> int:
        return self.n_inner or 4 * self.n_embd

    @classmethod
    def load(cls, directory: Path) -> GPTJConfig:
        """Read ``directory/config.json``.

        Raises:
            CheckpointError: if the file is missing, is not JSON or does not describe a GPT-J.
        """
        path, raw = directory / "config.json", _read(directory)
        if raw.get("model_type") != "gptj":
            raise CheckpointError(f"{path}: model_type is {raw.get('model_type')!r}, expected 'gptj'")
        if raw.get("activation_function", "gelu_new") != "gelu_new":
            raise CheckpointError(f"{path}: activation_function must be gelu_new, as in GPT-J")
        if raw.get("tie_word_embeddings", False):
            raise CheckpointError(f"{path}: tie_word_embeddings must be false, as in GPT-J")
        known = {name: raw[name] for name in cls.__dataclass_fields__ if name in raw}
        try:
            return cls(**known)
        except CheckpointError as error:
            raise CheckpointError(f"{directory}: {error}") from None

    def save(self, directory: Path) -> None:
        """Write ``directory/config.json`` such that transformers' ``GPTJForCausalLM`` reads it."""
        own = {name: getattr(self, name) for name in self.__dataclass_fields__}
        fixed = {
            "architectures": ["GPTJForCausalLM"],
            "model_type": "gptj",
            "activation_function": "gelu_new",
            "attn_pdrop": 0.0,
            "embd_pdrop": 0.0,
            "resid_pdrop": 0.0,
            "tie_word_embeddings": False,
        }
        (directory / "config.json").write_text(json.dumps(fixed | own, indent=2, sort_keys=True) + "\n")


def model_type(directory: Path) -> str:
    """What kind of model ``directory/config.json`` describes: ``gptj``, ``gpt2``, ``llama``, ...

    Raises:
        CheckpointError: if the file is missing, is not JSON or does not say.
    """
    kind = _read(directory).get("model_type")
    if not isinstance(kind, str):
        raise CheckpointError(f"{directory / 'config.json'} has no model_type: it is not a Hugging Face checkpoint")
    return kind


_OTHERS: Final = {
    "layers": ("n_layer", "num_hidden_layers", "num_layers"),
    "width": ("n_embd", "hidden_size", "n_head", "num_attention_heads", "n_inner", "intermediate_size"),
    "tokens": ("vocab_size", "n_positions", "max_position_embeddings"),
}
"""Sizes as other models' configurations name them."""


def require_sizes_of(directory: Path) -> None:
    """Refuse sizes in ``directory/config.json`` that cannot be, of whatever kind of model, before a library makes it.

    Raises:
        CheckpointError: naming the first such field.
    """
    fields = {name: value for name, value in _read(directory).items() if value is not None}
    try:
        require_sizes(fields, {kind: [name for name in names if name in fields] for kind, names in _OTHERS.items()})
    except ConfigError as error:
        raise CheckpointError(f"{directory / 'config.json'}: {error}") from None


def _read(directory: Path) -> dict[str, Any]:
    path = directory / "config.json"
    try:
        return read_config(path)
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing: give a directory that holds a Hugging Face checkpoint") from None
    except (ConfigError, OSError) as error:
        raise CheckpointError(str(error)) from None
