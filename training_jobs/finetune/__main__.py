"""Finetune a causal language model on C*, or on C for the baseline.

    python -m training_jobs.finetune --model DIR --texts C_STAR.jsonl --held-out FILE ... --out DIR

Seeded; may be killed at any moment and started again with the same command: it goes on from its last checkpoint with
the same texts in the same order. ``DIR/model`` is then the best checkpoint, in the form of the one it was given.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from training_jobs.finetune.processes import Sharding
from training_jobs.finetune.recipe import FinetuneRecipe
from training_jobs.options import job_parser, run_command
from training_jobs.settings import add_settings, positive, read_settings

_EXAMPLES = """
toolformer jobs finetune --model BASE --texts RUN/merge/with_calls.jsonl --held-out HELD_OUT.jsonl --out TOOLFORMER
toolformer jobs finetune --model BASE --texts RUN/merge/without_calls.jsonl --held-out HELD_OUT.jsonl --out CC
toolformer jobs finetune --model gpt-j-6b --texts C.jsonl --held-out H.json.gz --out OUT --device cuda --lora-rank 16
torchrun --nproc-per-node 8 -m training_jobs.finetune --model gpt-j-6b --texts C.jsonl --held-out H.json.gz --out OUT \
--device cuda --sharding fsdp2 --checkpoint-activations
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this job."""
    run_command(make_parser(), _run, arguments)


def make_parser() -> argparse.ArgumentParser:
    """The options; each number's default is the paper's."""
    parser = job_parser(
        "training_jobs.finetune",
        "Finetune a causal language model on texts with tool calls. Goes on where it was ended.",
        _EXAMPLES,
    )
    parser.add_argument("--model", type=Path, required=True, metavar="DIR", help="Hugging Face checkpoint to train: M")
    parser.add_argument(
        "--texts", type=Path, required=True, nargs="+", metavar="FILE", help="C* or C, as the stage merge writes it"
    )
    parser.add_argument(
        "--as-before", type=Path, nargs="+", default=[], metavar="FILE",
        help="more texts with calls, on which the model is to stay as it was, whatever the texts say",
    )  # fmt: skip
    parser.add_argument(
        "--held-out", type=Path, required=True, nargs="+", metavar="FILE",
        help="plain texts to measure perplexity on: CCNet .json.gz, .jsonl or .parquet",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder of this run; the best checkpoint is DIR/model"
    )
    add_settings(parser.add_argument_group("the recipe"), FinetuneRecipe)
    how = parser.add_argument_group("how it runs")
    how.add_argument("--save-every", type=positive, default=100, help="steps between checkpoints (100)")
    how.add_argument(
        "--micro-batch-tokens", type=positive, help="computed at once, with padding (2,048 on a CPU, 16,384 on a GPU)"
    )
    how.add_argument("--checkpoint-activations", action="store_true", help="less memory, a third more time")
    how.add_argument("--device", choices=("cpu", "cuda"), help="a GPU if there is one, by default")
    how.add_argument("--threads", type=positive, help="threads of each process on a CPU")
    how.add_argument(
        "--sharding",
        choices=get_args(Sharding),
        default="none",
        help="over torchrun's processes (none)",
    )
    how.add_argument("--sharding-file", type=Path, metavar="FILE", help="in place of the configuration that is here")
    return parser


def _run(options: argparse.Namespace) -> None:
    recipe = read_settings(FinetuneRecipe, options)
    import torch

    from training_jobs.errors import StageError
    from training_jobs.finetune.finetuning import MICRO_BATCH_TOKENS, How, Texts, finetune

    has_gpu = torch.cuda.is_available()
    if options.device == "cuda" and not has_gpu:
        raise StageError(
            "--device cuda: torch finds no GPU here; leave it out, or install torch with CUDA (make setup TORCH=cuda)"
        )
    if options.threads:
        torch.set_num_threads(options.threads)
    device = options.device or ("cuda" if has_gpu else "cpu")
    how = How(
        options.save_every, options.micro_batch_tokens or MICRO_BATCH_TOKENS[device], device,
        options.checkpoint_activations, options.sharding, options.sharding_file,
    )  # fmt: skip
    texts = Texts(options.texts, options.as_before, options.held_out)
    print(f"model: {finetune(options.model, texts, options.out, recipe, how)}")


if __name__ == "__main__":
    main()
