"""The command that makes quantized weights: ``toolformer quantize``."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from language_model.config import CheckpointError
from language_model.native.packing import Weights
from language_model.native.quantized import folder_of, quantize


def main(arguments: Sequence[str] | None = None) -> int:
    """Quantize a checkpoint; 1 with a word on standard error if that cannot be."""
    parser = argparse.ArgumentParser(
        description="Write a GPT-J checkpoint's weights as int8 or int4, once, for a gateway on a processor: "
        "TOOLFORMER_GATEWAY_DTYPE=int8. No more than a layer is in memory.",
        epilog="example: toolformer quantize /data/gpt-j-6b --to int8 --out /data/gpt-j-6b-int8",
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="a folder with a GPT-J checkpoint of Hugging Face")
    parser.add_argument("--to", choices=("int8", "int4"), default="int8", help="what a weight becomes (int8)")
    where = "a folder that can be served without the checkpoint; by default beside it"
    parser.add_argument("--out", type=Path, metavar="FOLDER", help=where)
    options = parser.parse_args(arguments)
    weights, target = Weights[options.to.upper()], options.out or options.model
    try:
        with Progress(console=Console(stderr=True)) as progress:
            bar = progress.add_task(f"{options.model.name} to {options.to}", total=None)
            made = quantize(
                options.model,
                weights,
                folder_of(target, weights),
                lambda done, of: progress.update(bar, completed=done, total=of),
            )
        if options.out is not None:
            for path in options.model.iterdir():
                if path.suffix in (".json", ".txt", ".jinja", ".md") and not path.name.endswith(".index.json"):
                    shutil.copy(path, options.out)
    except (CheckpointError, OSError) as error:
        print(f"toolformer quantize: {error}", file=sys.stderr)  # noqa: T201
        return 1
    size = sum(path.stat().st_size for path in made.iterdir())
    print(f"{made}: {size / 2**20:,.1f} MiB")  # noqa: T201
    print(f"serve it: TOOLFORMER_GATEWAY_DTYPE={options.to} toolformer up --model {target}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
