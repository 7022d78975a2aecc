"""The model of a stage: where it is, how it is loaded, and what of it the output depends on."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from training_jobs.stages.command import positive
from training_jobs.stages.digests import file_digest
from training_jobs.stages.errors import StageError

Precision = Literal["float32", "bfloat16", "float16"]


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A Hugging Face checkpoint in ``path``, to be computed on ``device`` in ``precision`` with so many ``threads`` a
    worker. All of it belongs to the output: sums in another order differ in the last digit, and a sample with them."""

    path: Path
    device: str = "cpu"
    precision: Precision = "float32"
    threads: int = 1

    def settings(self) -> dict[str, Any]:
        """What the output depends on; the path has no part in it, what is there has.

        Raises:
            StageError: if no checkpoint is there.
        """
        if not (self.path / "config.json").is_file():
            raise StageError(f"--model: {self.path} holds no checkpoint (config.json); name a folder that does")
        files = sorted(path for path in self.path.iterdir() if path.is_file() and not path.name.endswith(".md"))
        return {
            "model": {path.name: file_digest(path) for path in files},
            "device": self.device.partition(":")[0],
            "precision": self.precision,
            "threads": self.threads,
        }

    def load(self) -> tuple[Any, Any]:
        """The model and its tokenizer, for many texts at once; torch computes with ``threads`` from now on.

        Raises:
            StageError: if they cannot be loaded.
        """
        # Here, not above: the command's options and a stage without a model need no torch.
        import torch

        from language_model.bulk.loading import load_bulk
        from language_model.config import CheckpointError

        torch.set_num_threads(self.threads)
        try:
            return load_bulk(self.path, dtype=getattr(torch, self.precision), device=self.device)
        except (CheckpointError, RuntimeError, AssertionError) as error:
            raise StageError(f"--model: {error}") from error


def add_model(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Options that say which model, computed how."""
    group = parser.add_argument_group("the model")
    group.add_argument("--model", type=Path, required=required, metavar="DIR", help="a Hugging Face checkpoint: M")
    group.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N (cpu)")
    group.add_argument("--precision", choices=("float32", "bfloat16", "float16"), default="float32")
    group.add_argument("--threads", type=positive, default=1, help="threads of each worker (1); part of the output")


def model_choice(options: argparse.Namespace) -> ModelChoice:
    """What `add_model`'s options say."""
    return ModelChoice(options.model, options.device, options.precision, options.threads)
