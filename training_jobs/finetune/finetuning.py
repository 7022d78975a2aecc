"""One run, from files to a published checkpoint."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import torch
from rich.console import Console
from transformers import TrainerState, TrainingArguments
from transformers.utils import logging as transformers_logging

from toolformer.api_call import opening_id
from toolformer.model_files.digests import quick_digest
from toolformer.tools import ToolRegistry
from training_jobs.errors import StageError
from training_jobs.finetune.checkpoints import checkpoint, forget_halves, whole_steps
from training_jobs.finetune.curves import PERPLEXITY, CurveFiles, SaveWhatIsMeasured, StepClock, stopped
from training_jobs.finetune.models import MODEL_FOLDER, load_model, load_vocabulary, publish
from training_jobs.finetune.processes import Sharding, configuration, join_on_cpu, processes
from training_jobs.finetune.recipe import FinetuneRecipe, begin_run
from training_jobs.finetune.steps import StepPlan
from training_jobs.finetune.trainer import FinetuneTrainer
from training_jobs.finetune.training_texts import (
    encode_texts,
    examples_of,
    read_held_out,
    read_texts,
    repeated,
    tool_counts,
)
from training_jobs.text_encoder import TextEncoder

MICRO_BATCH_TOKENS: Final = {"cpu": 2_048, "cuda": 16_384}
"""Tokens that are computed at once: on a CPU so few that a layer's stay in the caches."""


@dataclass(frozen=True, slots=True)
class How:
    """How a run is computed; of no part in its curve but for the last digits.

    ``save_every``: steps between checkpoints to go on from. ``micro_batch_tokens``: tokens computed at once, padding
    and all. ``checkpoint_activations``: compute activations again for the gradient instead of holding them.
    """

    save_every: int = 100
    micro_batch_tokens: int = MICRO_BATCH_TOKENS["cpu"]
    device: str = "cpu"
    checkpoint_activations: bool = False
    sharding: Sharding = "none"
    sharding_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Texts:
    """The files of a run: ``learned`` is C*, on the texts of ``as_before`` the model is to stay as it was, and
    perplexity is measured on ``held_out``."""

    learned: Sequence[Path]
    as_before: Sequence[Path]
    held_out: Sequence[Path]


def finetune(model_folder: Path, files: Texts, out: Path, recipe: FinetuneRecipe, how: How) -> Path:
    """Train (or go on training) the model in ``model_folder`` in ``out``; the folder of the best checkpoint, a Hugging
    Face checkpoint as the one it was given.

    Raises:
        StageError: if the input cannot be used, or ``out`` holds another run.
    """
    console = Console(stderr=True, quiet=processes()[0] != 0)
    rank, world = processes()
    sharding = configuration(how.sharding, how.sharding_file)
    if how.sharding != "none" and world == 1 and "RANK" not in os.environ:
        raise StageError(f"--sharding {how.sharding}: there is one process: start it with torchrun")
    tokenizer, end_id = load_vocabulary(model_folder, recipe)
    encoder = TextEncoder(tokenizer, ToolRegistry.load(), end_id=end_id, mask_results=recipe.mask_results)
    if files.as_before and world > 1:
        raise StageError("--as-before: the model as it was is held whole: give it to a single process")
    read, often = read_texts([*files.learned, *files.as_before], recipe.times)
    stays = {text.id for text in read_texts(files.as_before)[0]} if files.as_before else set()
    texts = examples_of(read, recipe)
    plain = read_held_out(files.held_out, recipe.held_out_texts, texts)
    encoded, counts = encode_texts(texts, encoder, recipe)
    encoded = [replace(one, as_before=text.id in stays) for one, text in zip(encoded, texts, strict=True)]
    encoded = repeated(encoded, texts, often)
    held_out = [encoder.encode((text,), begin=True).cut(recipe.sequence_length) for text in plain]
    if world > min(len(held_out), recipe.batch):
        raise StageError(f"{world} processes need at least as many texts in --batch and --held-out")
    steps = recipe.steps_for(len(encoded))
    plan = StepPlan.of(
        [len(one.ids) for one in encoded], batch=recipe.batch, steps=steps, seed=recipe.seed, processes=world,
        micro_batch_tokens=how.micro_batch_tokens,
    )  # fmt: skip
    if rank == 0:
        begin_run(out, recipe, _inputs(model_folder, files))
        forget_halves(out)
    if (out / MODEL_FOLDER).is_dir():
        _say(console, f"the run is done: {out / MODEL_FOLDER}")
        return out / MODEL_FOLDER
    of_tools = ", ".join(f"{tool} {texts:,}" for tool, texts in tool_counts(texts).items())
    _say(console, f"{counts}" + (f" (texts of each tool: {of_tools})" if of_tools else ""))
    _say(console, f"{len(held_out):,} held-out texts; {steps:,} steps of {recipe.batch} texts, {plan.accumulation} "
                  f"micro-batches of each of {world} process{'es' if world > 1 else ''}")  # fmt: skip
    done = whole_steps(out)
    resume = checkpoint(out, done[-1]) if done else None
    state = TrainerState.load_from_json(str(resume / "trainer_state.json")) if resume else None
    if state is None or not (state.global_step >= steps or stopped(state.log_history, recipe.patience)):
        if how.device == "cpu" and "RANK" in os.environ:
            join_on_cpu(how.sharding)
        transformers_logging.set_verbosity_error()
        transformers_logging.disable_progress_bar()
        clock = StepClock(plan.tokens())
        trainer = FinetuneTrainer(
            args=_arguments(out, recipe, how, plan, sharding, first=resume is None),
            model=load_model(model_folder, recipe),
            texts=encoded,
            held_out=held_out,
            plan=plan,
            evaluation_tokens=how.micro_batch_tokens,
            opening=opening_id(tokenizer),
            clock=clock,
            callbacks=[SaveWhatIsMeasured(recipe.patience), CurveFiles(out, steps, console)],
            before=load_model(model_folder, replace(recipe, lora_rank=0)).to(how.device).eval() if stays else None,
            before_weight=recipe.as_before_weight,
        )
        trainer.train(resume_from_checkpoint=str(resume) if resume else None)
        state = trainer.state
    if rank == 0:
        best = state.best_global_step or state.global_step
        publish(out, best, model_folder, recipe)
        _say(console, f"best of the measures: step {best:,}, perplexity {state.best_metric}; {out / MODEL_FOLDER}")
    if torch.distributed.is_initialized():
        _part()
    return out / MODEL_FOLDER


_LAST: Final[list[Any]] = []
"""The processes' last operation."""


def _part() -> None:
    """Wait for the other processes, and end what joined them.

    gloo's thread destroys an operation that nobody else holds, and needs Python's lock for it; the end of the group
    waits for that thread, with the lock. So the last operation is held here for good."""
    _LAST.append(torch.distributed.barrier(async_op=True))
    _LAST[-1].wait()
    torch.distributed.destroy_process_group()


def _arguments(
    out: Path, recipe: FinetuneRecipe, how: How, plan: StepPlan, sharding: dict[str, Any] | None, *, first: bool
) -> TrainingArguments:
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(out / "tensorboard")
    on_cpu = how.device == "cpu"
    joined = on_cpu and "RANK" in os.environ
    schedule = {"constant": "constant_with_warmup"}.get(recipe.schedule, recipe.schedule)
    return TrainingArguments(
        output_dir=str(out),
        max_steps=plan.steps,
        # A step's texts, on paper: micro-batches are of like cost, not of one number of texts.
        per_device_train_batch_size=-(-plan.batch // (plan.processes * plan.accumulation)),
        gradient_accumulation_steps=plan.accumulation,
        learning_rate=recipe.rate,
        lr_scheduler_type=schedule,
        warmup_steps=recipe.warmup_steps(plan.steps),
        weight_decay=recipe.weight_decay,
        max_grad_norm=recipe.clip,
        bf16=recipe.precision == "bfloat16",
        activation_checkpointing=how.checkpoint_activations,
        eval_strategy="steps",
        eval_steps=recipe.evaluate_every,
        eval_on_start=first,
        save_strategy="steps",
        save_steps=how.save_every,
        metric_for_best_model=PERPLEXITY,
        greater_is_better=False,
        logging_steps=1,
        logging_nan_inf_filter=False,
        report_to=["tensorboard"],
        seed=recipe.seed,
        use_cpu=on_cpu,
        accelerator_config={"use_configured_state": True} if joined else None,
        fsdp=True if how.sharding == "fsdp2" else None,
        fsdp_config=sharding if how.sharding == "fsdp2" else None,
        deepspeed=sharding if how.sharding == "zero3" else None,
        dataloader_pin_memory=not on_cpu,
        remove_unused_columns=False,
        disable_tqdm=True,
    )


def _inputs(model_folder: Path, files: Texts) -> dict[str, Any]:
    """Digests of what the run is made of; paths have no part in it."""
    weights = [path for path in sorted(model_folder.iterdir()) if path.suffix in {".json", ".safetensors", ".bin"}]
    return {
        "model": {path.name: quick_digest(path) for path in weights},
        "texts": [quick_digest(path) for path in files.learned],
        "held-out": [quick_digest(path) for path in files.held_out],
    } | ({"as-before": [quick_digest(path) for path in files.as_before]} if files.as_before else {})


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
