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
from training_jobs.finetune.recipe import Precision, Recipe, Schedule
from training_jobs.stages.command import positive, run_command

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
    parser = argparse.ArgumentParser(
        prog="python -m training_jobs.finetune",
        description="Finetune a causal language model on texts with tool calls. Goes on where it was ended.",
        epilog="examples:\n" + "".join(f"  {line}\n" for line in _EXAMPLES.strip().splitlines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", type=Path, required=True, metavar="DIR", help="Hugging Face checkpoint to train: M")
    parser.add_argument(
        "--texts", type=Path, required=True, nargs="+", metavar="FILE", help="C* or C, as the stage merge writes it"
    )
    parser.add_argument(
        "--held-out", type=Path, required=True, nargs="+", metavar="FILE",
        help="plain texts to measure perplexity on: CCNet .json.gz, .jsonl or .parquet",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder of this run; the best checkpoint is DIR/model"
    )
    _add_recipe(parser.add_argument_group("the recipe"))
    lora = parser.add_argument_group("LoRA: train small adapters only, for one small GPU")
    lora.add_argument("--lora-rank", type=int, default=Recipe().lora_rank, help="of the adapters; 0 trains all (0)")
    lora.add_argument("--lora-alpha", type=float, default=Recipe().lora_alpha, help="their scale times rank (32)")
    lora.add_argument("--lora-dropout", type=float, default=Recipe().lora_dropout, help="before them (0.05)")
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


def _add_recipe(group: argparse._ArgumentGroup) -> None:
    usual = Recipe()
    group.add_argument("--steps", type=int, default=usual.steps, help="of the optimizer, at most (2,000)")
    group.add_argument("--epochs", type=float, help="passes over the texts, at most; by default --steps decides")
    group.add_argument(
        "--times", type=int, nargs="+", default=(), metavar="N",
        help="how often a pass goes over each file of --texts, a number for each; by default once",
    )  # fmt: skip
    group.add_argument("--batch", type=int, default=usual.batch, help="texts of a step, over all processes (128)")
    group.add_argument("--rate", type=float, default=usual.rate, help="learning rate (1e-5)")
    group.add_argument("--warmup", type=float, default=usual.warmup, help="share of the steps it rises in (0.1)")
    group.add_argument("--schedule", choices=get_args(Schedule), default=usual.schedule, help="then (constant)")
    group.add_argument("--weight-decay", type=float, default=usual.weight_decay, help="of AdamW (0)")
    group.add_argument("--clip", type=float, default=usual.clip, help="largest norm of a gradient; 0 for any (1)")
    group.add_argument("--sequence-length", type=int, default=usual.sequence_length, help="tokens, at most (1,024)")
    group.add_argument(
        "--examples-per-tool", type=int, default=usual.examples_per_tool, help="texts with its calls, at most (25,000)"
    )
    group.add_argument("--held-out-texts", type=int, default=usual.held_out_texts, help="the first so many (1,000)")
    group.add_argument("--evaluate-every", type=int, default=usual.evaluate_every, help="steps (500)")
    group.add_argument("--patience", type=int, help="end after so many measures without a better one; by default never")
    group.add_argument(
        "--begin-share", type=float, default=usual.begin_share, help="of texts begin with the end-of-text mark (0.5)"
    )
    group.add_argument("--mask-results", action="store_true", help="leave what tools answered out of the loss")
    group.add_argument("--precision", choices=get_args(Precision), default=usual.precision, help="(bfloat16)")
    group.add_argument("--seed", type=int, default=usual.seed, help="draws the order of the texts (0)")


def _run(options: argparse.Namespace) -> None:
    options.times = tuple(options.times)
    recipe = Recipe(**{name: getattr(options, name) for name in Recipe.__dataclass_fields__})
    import torch

    from training_jobs.finetune.run import MICRO_BATCH_TOKENS, How, finetune
    from training_jobs.stages.errors import StageError

    has_gpu = torch.cuda.is_available()
    if options.device == "cuda" and not has_gpu:
        raise StageError("--device cuda: torch finds no GPU here; leave it out, or install requirements/torch-cuda.txt")
    if options.threads:
        torch.set_num_threads(options.threads)
    device = options.device or ("cuda" if has_gpu else "cpu")
    how = How(
        options.save_every, options.micro_batch_tokens or MICRO_BATCH_TOKENS[device], device,
        options.checkpoint_activations, options.sharding, options.sharding_file,
    )  # fmt: skip
    print(f"model: {finetune(options.model, options.texts, options.held_out, options.out, recipe, how)}")


if __name__ == "__main__":
    main()
