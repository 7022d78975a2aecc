"""Which way a model does the work of many texts, and loading it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import torch

from language_model import checkpoint
from language_model.bulk.bulk_gptj import BulkGPTJ
from language_model.bulk.interface import BulkModel
from language_model.bulk.rows import BulkRows
from language_model.config import CheckpointError, model_type
from language_model.gptj import GPTJ
from language_model.native.compiled import CompiledGPTJ
from language_model.native.compiling import Unavailable
from language_model.native.packing import Weights
from language_model.other_models.base import OtherCausalLM
from language_model.other_models.from_transformers import load_other
from language_model.tokenizer import ByteLevelTokenizer

AnyModel: TypeAlias = GPTJ | OtherCausalLM[Any] | BulkModel[Any]
"""A model as it was loaded, or one that does the work of many texts already."""


def as_bulk(model: AnyModel, tokenizer: ByteLevelTokenizer) -> BulkModel[Any]:
    """``model`` for many texts at once."""
    if isinstance(model, GPTJ):
        return BulkGPTJ(model, tokenizer.token_bytes)
    if isinstance(model, OtherCausalLM):
        return BulkRows(model, tokenizer.token_bytes, model.begin_id)
    return model


def load_bulk(
    directory: Path, *, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
) -> tuple[BulkModel[Any], ByteLevelTokenizer]:
    """The model and the tokenizer in ``directory``, a Hugging Face checkpoint: GPT-J the fast way, others through
    transformers.

    Raises:
        CheckpointError: if a file is missing, damaged, or of a model or vocabulary that cannot be used.
    """
    tokenizer = ByteLevelTokenizer.from_pretrained(directory)
    load = checkpoint.load if model_type(directory) == "gptj" else load_other
    return as_bulk(load(directory, dtype=dtype, device=device), tokenizer), tokenizer


def load_quantized_bulk(directory: Path, weights: Weights, device: str) -> tuple[BulkModel[Any], ByteLevelTokenizer]:
    """As :func:`load_bulk`, a GPT-J of int8 or int4 weights, from their own files; these are made now if there are
    none.

    Raises:
        CheckpointError: as there, or if it is another model or device, or there is no compiled step here.
    """
    name = weights.name.lower()
    if device != "cpu" or model_type(directory) != "gptj":
        raise CheckpointError(f"precision {name} is for GPT-J in compiled code on a CPU: take bfloat16")
    tokenizer = ByteLevelTokenizer.from_pretrained(directory)
    try:
        model = CompiledGPTJ.load(directory, weights)
    except Unavailable as why:
        raise CheckpointError(f"precision {name}: {why}") from None
    return BulkRows(model, tokenizer.token_bytes, model.config.bos_token_id), tokenizer
