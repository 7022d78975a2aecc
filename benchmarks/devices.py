"""What the benchmarks of GPT-J on a processor or a GPU share: its shapes, and the device."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any, Final

import torch

from benchmarks.reports import machine
from language_model.config import GPTJConfig

SHAPES: Final = {
    "gptj-6b": GPTJConfig(),
    "bundled": GPTJConfig(vocab_size=2_048, n_positions=1_024, n_embd=256, n_layer=4, n_head=4, rotary_dim=32),
    "small": GPTJConfig(vocab_size=512, n_positions=512, n_embd=64, n_layer=2, n_head=2, rotary_dim=16),
}
DTYPES: Final = {"bfloat16": torch.bfloat16, "float32": torch.float32}


def check_device(parser: argparse.ArgumentParser, device: str, shape: str | None) -> None:
    """End with what is wrong if ``device`` is not there, or would take hours for ``shape``."""
    if device.startswith("cuda") and not torch.cuda.is_available():
        parser.error("--device: torch sees no CUDA device here; make setup TORCH=cuda, or --device cpu")
    if device == "cpu" and shape == "gptj-6b":
        parser.error("--shape: a processor would take hours for that; --shape small proves the script")


def settle(device: torch.device) -> None:
    """Wait for all that was started on ``device``."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def card(device: str) -> str:
    """The name of the GPU, or of the processor."""
    return str(machine()["processor"]) if device == "cpu" else torch.cuda.get_device_name(device)


def transformers_config(config: GPTJConfig) -> Any:
    """The same shape as transformers writes it."""
    import transformers

    return transformers.GPTJConfig(
        **{name: value for name, value in dataclasses.asdict(config).items() if name != "n_inner"}
    )
