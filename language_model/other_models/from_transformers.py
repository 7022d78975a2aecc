"""Loading a checkpoint through transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from language_model.checkpoint import require_numbers, require_recorded
from language_model.config import CheckpointError, model_type, require_sizes_of
from language_model.other_models.base import OtherCausalLM
from language_model.other_models.one_by_one import OneByOne
from language_model.other_models.together import Together


def wrap(model: Any) -> OtherCausalLM[Any]:
    """A ``PreTrainedModel`` with a vocabulary head, which is then this project's alone.

    Raises:
        CheckpointError: if it is a GPT-J, which ``gptj.py`` computes, or a model that can be computed in no way here.
    """
    if model.config.model_type == "gptj":
        raise CheckpointError("GPT-J is computed by language_model.gptj, not through transformers")
    return Together(model) if Together.takes(model.config) else OneByOne(model)


def load_other(
    directory: Path | str, *, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
) -> OtherCausalLM[Any]:
    """Load a Hugging Face checkpoint directory; no code in it is run, and nothing is fetched.

    Raises:
        CheckpointError: if transformers is not installed, or cannot load it, or the model is not one for this path.
    """
    kind = model_type(Path(directory))
    require_sizes_of(Path(directory))
    for file in Path(directory).glob("*.safetensors"):
        require_recorded(file)
    try:
        from transformers import AutoModelForCausalLM
    except ImportError:
        raise CheckpointError(
            f"{directory} holds a {kind}; all models but GPT-J need transformers: pip install transformers"
        ) from None
    try:
        model = AutoModelForCausalLM.from_pretrained(
            directory, dtype=dtype, local_files_only=True, trust_remote_code=False
        )
    # What a wrong field of config.json leads to in the library, it may be any of these.
    except (OSError, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise CheckpointError(f"{directory}: transformers cannot load this {kind}: {error}") from error
    for name, tensor in model.state_dict().items():
        require_numbers(Path(directory), name, tensor)
    return wrap(model.to(device))
