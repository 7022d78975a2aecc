"""The model of a stage: where it is, how it is loaded, and what of it the output depends on."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from toolformer.model_files.digests import quick_digest
from training_jobs.errors import StageError
from training_jobs.runner.work import Needs
from training_jobs.settings import positive

Precision = Literal["float32", "bfloat16", "float16", "int8", "int4"]

_KEY = "TOOLFORMER_MODEL_SERVER_API_KEY"
_ON_SERVER = ("config.json", "tokenizer.json", "tokenizer.model", "generation_config.json")


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A Hugging Face checkpoint in ``path``, to be computed on ``device`` in ``precision`` with so many ``threads`` a
    worker. All of it belongs to the output: sums in another order differ in the last digit, and a sample with them.

    With ``server`` the model called ``served_as`` is asked at that address (vLLM's ``/v1/completions``), and ``path``
    needs only its ``config.json`` and ``tokenizer.json``. The same bytes come again as far as the server gives them.
    """

    path: Path
    device: str = "cpu"
    precision: Precision = "float32"
    threads: int = 1
    server: str | None = None
    served_as: str = ""
    server_key: str | None = field(default=None, repr=False)

    @property
    def needs(self) -> Needs:
        """What a worker with this model takes of a machine."""
        return Needs(self.threads, gpus=int(self.server is None and self.device.startswith("cuda")))

    def settings(self) -> dict[str, Any]:
        """What the output depends on; paths and addresses have no part in it, what is there has.

        Raises:
            StageError: if no checkpoint is there.
        """
        if not (self.path / "config.json").is_file():
            raise StageError(f"--model: {self.path} holds no checkpoint (config.json); name a folder that does")
        files = sorted(path for path in self.path.iterdir() if path.is_file() and path.suffix not in (".md", ".lock"))
        if self.server is not None:
            digests = {path.name: quick_digest(path) for path in files if path.name in _ON_SERVER}
            return {"model": digests, "served_as": self.served_as}
        if not any(path.suffix in (".safetensors", ".bin") for path in files):
            files += self.path.glob(f"{self.precision}/SHA256SUMS")  # quantized weights without those they are made of
        return {
            "model": {path.relative_to(self.path).as_posix(): quick_digest(path) for path in files},
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

        from language_model.bulk.loading import load_bulk, load_quantized_bulk
        from language_model.config import CheckpointError
        from language_model.native.packing import Weights
        from language_model.tokenizer import ByteLevelTokenizer

        torch.set_num_threads(self.threads)
        try:
            if self.server is not None:
                return self._on_server(self.server), ByteLevelTokenizer.from_pretrained(self.path)
            loaded: tuple[Any, Any]
            if self.precision in ("int8", "int4"):
                loaded = load_quantized_bulk(self.path, Weights[self.precision.upper()], self.device)
            else:
                loaded = load_bulk(self.path, dtype=getattr(torch, self.precision), device=self.device)
        except (CheckpointError, RuntimeError, AssertionError) as error:
            raise StageError(f"--model: {error}") from error
        return loaded

    @contextlib.contextmanager
    def opened(self) -> Iterator[tuple[Any, Any]]:
        """What `load` gives; at the end a server's connections are let go of.

        Raises:
            StageError: if it cannot be loaded, or, in the block, a model server does not answer.
        """
        from language_model.bulk.server import BulkServer, ServerTrouble

        model, tokenizer = self.load()
        try:
            yield model, tokenizer
        except ServerTrouble as error:
            raise StageError(f"{error}. What was done is kept: run again to go on") from error
        finally:
            if isinstance(model, BulkServer):
                model.close()

    def _on_server(self, url: str) -> Any:
        from language_model.bulk.server import BulkServer, ServerSettings

        try:
            config = json.loads((self.path / "config.json").read_bytes())
            positions = config.get("max_position_embeddings") or config["n_positions"]
            settings = ServerSettings(url, self.served_as, positions, config.get("bos_token_id"), self.server_key)
        except KeyError as error:
            raise StageError(
                f"{self.path / 'config.json'}: {error}: is missing; it says how long texts may be"
            ) from None
        except ValueError as error:
            raise StageError(f"--server: {error}") from error
        return BulkServer(settings)


def add_model(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Options that say which model, computed how."""
    group = parser.add_argument_group("the model")
    group.add_argument("--model", type=Path, required=required, metavar="DIR", help="a Hugging Face checkpoint: M")
    group.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N (cpu); under torchrun cuda is one for each")
    what = "of its products (float32); int8 and int4 for GPT-J on a CPU, from what `toolformer quantize` makes"
    group.add_argument("--precision", choices=get_args(Precision), default="float32", help=what)
    group.add_argument("--threads", type=positive, default=1, help="threads of each worker (1); part of the output")
    group.add_argument(
        "--server", metavar="URL", help=f"ask this vLLM server instead; its key, if any, is in {_KEY}; --model then "
        "holds its config.json and tokenizer.json",
    )  # fmt: skip
    group.add_argument("--served-as", metavar="NAME", help="the model's name there (by default the path)")


def model_choice(options: argparse.Namespace) -> ModelChoice:
    """What `add_model`'s options say."""
    served_as = options.served_as or str(options.model)
    local_rank = os.environ.get("LOCAL_RANK")  # torchrun sets it, and RANK and WORLD_SIZE, which make a shard of each
    device = f"cuda:{local_rank}" if options.device == "cuda" and local_rank else options.device
    key = os.environ.get(_KEY) or None
    return ModelChoice(options.model, device, options.precision, options.threads, options.server, served_as, key)
