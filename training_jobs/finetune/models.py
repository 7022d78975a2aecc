"""The model as it is trained, and the checkpoint as it is published."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final

import torch
from transformers import AutoModelForCausalLM

from language_model.config import CheckpointError, model_type
from language_model.tokenizer import ByteLevelTokenizer, tokenizer_file
from toolformer.model_files.digests import record
from training_jobs.errors import StageError
from training_jobs.finetune.checkpoints import checkpoint
from training_jobs.finetune.gptj import GPTJForCausalLM
from training_jobs.finetune.recipe import FinetuneRecipe
from training_jobs.runner.parts import write_whole

MODEL_FOLDER: Final = "model"
ADAPTER_FOLDER: Final = "adapter"

_BESIDE: Final = (
    "tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.json", "merges.txt", "generation_config.json",
)  # fmt: skip
_GPTJ_LINEAR: Final = ["q_proj", "k_proj", "v_proj", "out_proj", "fc_in", "fc_out"]


def load_model(directory: Path, recipe: FinetuneRecipe) -> Any:
    """The model in ``directory``, a Hugging Face checkpoint, for training: GPT-J with fast attention, others as
    transformers has them; with adapters where the recipe has LoRA. No code in the folder is run, nothing is fetched.

    Raises:
        StageError: if it cannot be loaded.
    """
    # The frozen weights of LoRA are only read: half the memory for one small GPU.
    frozen = recipe.lora_rank > 0 and recipe.precision == "bfloat16"
    model = _load(directory, torch.bfloat16 if frozen else torch.float32)
    return _with_adapters(model, recipe) if recipe.lora_rank else model


def load_vocabulary(directory: Path, recipe: FinetuneRecipe) -> tuple[ByteLevelTokenizer, int]:
    """The tokenizer in ``directory`` and the id that ends a text.

    Raises:
        StageError: if there is none, or it is not the model's.
    """
    try:
        tokenizer, kind = ByteLevelTokenizer.from_pretrained(directory), model_type(directory)
    except CheckpointError as error:
        raise StageError(f"--model: {error}") from error
    path = directory / "config.json"
    config = json.loads(path.read_bytes())
    size, end = config.get("vocab_size"), config.get("eos_token_id")
    end = end[0] if isinstance(end, list) and end else end
    if isinstance(size, int) and tokenizer.vocab_size > size:
        raise StageError(
            f"--model: {tokenizer_file(directory)} has {tokenizer.vocab_size:,} ids but {path} a vocab_size of "
            f"{size:,}: it is another model's vocabulary"
        )
    if not isinstance(end, int) or not tokenizer.token_bytes(end):
        raise StageError(f"--model: {path}: eos_token_id {end} is no token of the vocabulary: this {kind} ends no text")
    positions = config.get("n_positions") or config.get("max_position_embeddings")
    if isinstance(positions, int) and recipe.sequence_length > positions:
        raise StageError(f"--sequence-length: {recipe.sequence_length} is more than the model's {positions} positions")
    return tokenizer, end


def publish(out: Path, step: int, directory: Path, recipe: FinetuneRecipe) -> Path:
    """Make ``out/model`` of the checkpoint after ``step`` steps: a Hugging Face checkpoint of the kind that is in
    ``directory``, with its tokenizer beside it; adapters are merged into the weights. A reader never sees half of it.
    """
    target, partial = out / MODEL_FOLDER, out / f"{MODEL_FOLDER}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        source = checkpoint(out, step)
        if recipe.lora_rank:
            _merged(directory, source).save_pretrained(partial)
            shutil.copytree(source, out / ADAPTER_FOLDER, ignore=_only_adapter, dirs_exist_ok=True)
        else:
            for path in source.glob("model*.safetensors*"):
                shutil.copyfile(path, partial / path.name)
        # The configuration is what it was: training changes weights only.
        config = json.loads((directory / "config.json").read_bytes())
        config.pop("torch_dtype", None)
        config["dtype"] = _dtype_in(partial)
        write_whole(partial / "config.json", json.dumps(config, indent=2, sort_keys=True) + "\n")
        for name in _BESIDE:
            if (directory / name).is_file():
                shutil.copyfile(directory / name, partial / name)
        record(partial, [path.name for path in partial.iterdir() if path.name != "config.json"])
        shutil.rmtree(target, ignore_errors=True)
        partial.replace(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def _load(directory: Path, dtype: torch.dtype) -> Any:
    kind: Any = GPTJForCausalLM if model_type(directory) == "gptj" else AutoModelForCausalLM
    try:
        return kind.from_pretrained(directory, dtype=dtype, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        said = str(error).strip().splitlines()[0]
        raise StageError(f"--model: {directory}: transformers cannot load it: {said}") from error


def _with_adapters(model: Any, recipe: FinetuneRecipe) -> Any:
    from peft import LoraConfig, get_peft_model

    targets: Any = _GPTJ_LINEAR if model.config.model_type == "gptj" else "all-linear"
    return get_peft_model(
        model,
        LoraConfig(
            task_type="CAUSAL_LM", r=recipe.lora_rank, lora_alpha=recipe.lora_alpha, lora_dropout=recipe.lora_dropout,
            target_modules=targets,
        ),
    )  # fmt: skip


def _merged(directory: Path, adapter: Path) -> Any:
    from peft import PeftModel

    return PeftModel.from_pretrained(_load(directory, torch.float32), str(adapter)).merge_and_unload()


def _only_adapter(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if not name.startswith("adapter_")}


def _dtype_in(folder: Path) -> str:
    from safetensors import safe_open

    path = min(folder.glob("*.safetensors"))
    with safe_open(path, framework="pt") as file:
        first = file.get_slice(next(iter(file.keys())))
        return {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}[first.get_dtype()]
