"""How fast finetuning is beside transformers' own GPT-J under the same Trainer.

    python -m benchmarks.finetune [--batch 128] [--steps 3] [--threads 1]
    python -m benchmarks.finetune --device cuda --shape gptj-6b --length 1024 [--layers 6] [--peak-tflops 989]

On a CPU: the bundled model's shape and texts of the demo world with a call in each. Three ways, in float32 and with
bfloat16 products, each the same number of texts a step and the same AdamW:

- ``transformers``: its GPT-J, its Trainer with eight texts a micro-batch drawn at random, padded to the longest
- ``like lengths``: its GPT-J with the micro-batches of `training_jobs.finetune`
- ``finetune``: those, and the GPT-J of `training_jobs.finetune`

Each runs in a process of its own, as its user gets it: `training_jobs` asks torch for huge pages, and a plain
Trainer's script does not. A rate is tokens (no padding) per second that the processor worked for this process: what
else runs there hardly matters. The first step is not counted. With ``--length`` all texts are random ids of that
length. On a GPU rates are by the clock, and the share of its peak is reported: 6 operations a weight and token, and
attention's."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import tempfile
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import torch
import transformers
from transformers import Trainer, TrainerCallback, TrainingArguments

from benchmarks.devices import SHAPES, card, check_device, settle, transformers_config
from benchmarks.reports import RESULTS, write_report
from demo_world.articles import prose
from language_model.config import GPTJConfig
from language_model.tokenizer import ByteLevelTokenizer
from toolformer.tools import ToolRegistry
from training_jobs.finetune.curves import StepClock
from training_jobs.finetune.finetuning import MICRO_BATCH_TOKENS
from training_jobs.finetune.gptj import GPTJForCausalLM
from training_jobs.finetune.steps import StepPlan
from training_jobs.finetune.trainer import FinetuneTrainer, collate
from training_jobs.records import CallSegment
from training_jobs.text_encoder import Encoded, TextEncoder

BUNDLED: Final = Path(__file__).parents[1] / "models" / "gptj-tools"
WAYS: Final = ("transformers", "like lengths", "finetune")
USUAL_TEXTS: Final = 8
"""Texts of a micro-batch by the Trainer's default."""


def demo_texts(count: int) -> list[Encoded]:
    """Texts of the demo world, each with the call that its first truth is the answer to."""
    encoder = TextEncoder(ByteLevelTokenizer.from_pretrained(BUNDLED), ToolRegistry.load(), end_id=0)
    rng = random.Random(0)
    found: list[Encoded] = []
    while len(found) < count:
        text, truths, _ = prose(rng)
        if truths:
            call = CallSegment(truths[0].tool, truths[0].input, truths[0].answer)
            at = truths[0].offset
            found.append(encoder.encode([text[:at], call, text[at:]], begin=True).cut(1_024))
    return found


def random_texts(count: int, length: int, vocabulary: int) -> list[Encoded]:
    rng = random.Random(0)
    return [Encoded(tuple(rng.choices(range(vocabulary), k=length)), (True,) * length) for _ in range(count)]


class StepSeconds(TrainerCallback):  # type: ignore[misc]
    """Seconds of the steps behind the first: of the clock on a GPU, else those that the processor worked."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.seconds: list[float] = []

    def _now(self) -> float:
        settle(self._device)
        return time.perf_counter() if self._device.type == "cuda" else time.process_time()

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self._began = self._now()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.seconds.append(self._now() - self._began)


def rate(way: str, precision: str, config: GPTJConfig, texts: Sequence[Encoded], options: argparse.Namespace) -> float:
    """Tokens per second of a way; see the module's text."""
    os.environ["THP_MEM_ALLOC_ENABLE"] = "0" if way == "transformers" else "1"
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawning, initializer=prepare, initargs=(options.threads,)) as own:
        return own.submit(_rate, way, precision, config, texts, options).result()


def prepare(threads: int) -> None:
    """Settings of a process that measures."""
    torch.set_num_threads(threads)
    transformers.logging.set_verbosity_error()
    warnings.simplefilter("ignore")


def _rate(way: str, precision: str, config: GPTJConfig, texts: Sequence[Encoded], options: argparse.Namespace) -> float:
    device = torch.device(options.device)
    most = options.micro_batch_tokens or MICRO_BATCH_TOKENS[device.type]
    lengths = [len(text.ids) for text in texts]
    plan = StepPlan.of(
        lengths, batch=options.batch, steps=options.steps, seed=0, processes=1, micro_batch_tokens=most
    )  # fmt: skip
    usual = way == "transformers"
    kind = GPTJForCausalLM if way == "finetune" else transformers.GPTJForCausalLM
    torch.manual_seed(0)
    model = kind(transformers_config(config))
    watch = StepSeconds(device)
    counted: list[int] = []

    def counting(texts: Sequence[Encoded]) -> dict[str, torch.Tensor]:
        counted.append(sum(len(text.ids) for text in texts))
        return collate(texts)

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=options.steps,
            per_device_train_batch_size=USUAL_TEXTS if usual else -(-options.batch // plan.accumulation),
            gradient_accumulation_steps=-(-options.batch // USUAL_TEXTS) if usual else plan.accumulation,
            bf16=precision == "bfloat16",
            activation_checkpointing=options.checkpoint_activations,
            use_cpu=device.type == "cpu",
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            remove_unused_columns=False,
        )
        if usual:
            trainer = Trainer(
                model=model, args=arguments, train_dataset=list(texts), data_collator=counting, callbacks=[watch]
            )
        else:
            trainer = FinetuneTrainer(
                model, arguments, texts=texts, held_out=texts[:1], plan=plan, evaluation_tokens=most,
                opening=None, clock=StepClock(plan.tokens()), callbacks=[watch],
            )  # fmt: skip
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
    first = arguments.gradient_accumulation_steps
    tokens = sum(counted[first : first * options.steps]) if usual else sum(plan.tokens()[1:])
    return tokens / sum(watch.seconds[1:])


def operations(config: GPTJConfig, length: int) -> float:
    """Floating-point operations of a token, forward and backward (Chowdhery et al., 2022, appendix B)."""
    layer = 4 * config.n_embd**2 + 2 * config.n_embd * config.inner_dim
    weights = config.n_layer * layer + config.n_embd * config.vocab_size
    return 6 * weights + 12 * config.n_layer * config.n_embd * length


def measure(options: argparse.Namespace) -> dict[str, Any]:
    config = SHAPES[options.shape]
    if options.layers:
        config = replace(config, n_layer=options.layers)
    count = options.batch * options.steps
    texts = random_texts(count, options.length, config.vocab_size) if options.length else demo_texts(count)
    lengths = sorted(len(text.ids) for text in texts)
    print(f"{count:,} texts of {lengths[0]} to {lengths[-1]} tokens, half of them up to {lengths[len(lengths) // 2]}")
    rates: dict[str, dict[str, float]] = {}
    for precision in options.precisions:
        rates[precision] = {}
        for way in WAYS:
            rates[precision][way] = found = rate(way, precision, config, texts, options)
            beside = found / rates[precision]["transformers"]
            share = ""
            if options.device == "cuda":
                share = f"   {found * operations(config, lengths[-1]) / options.peak_tflops / 1e12:.0%} of the peak"
            print(f"{precision:>9} {way:>13} {found:>10,.0f} tokens/s {beside:>6.2f}{share}", flush=True)
    first = rates[options.precisions[0]]["transformers"]
    best = rates[options.precisions[-1]]["finetune"]
    print(f"finetune in {options.precisions[-1]} / transformers in {options.precisions[0]}: {best / first:.2f}")
    return {
        "card": card(options.device),
        "shape": asdict(config),
        "texts": {"a step": options.batch, "tokens": sum(lengths), "longest": lengths[-1]},
        "threads": options.threads,
        "tokens a second": rates,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--shape", choices=sorted(SHAPES), default="bundled")
    parser.add_argument("--layers", type=int, help="in place of the shape's: 6 of GPT-J-6B's 28 fit one 80 GB GPU")
    parser.add_argument("--length", type=int, help="tokens of each text, of random ids; by default the demo world's")
    parser.add_argument("--batch", type=int, default=128, help="texts of a step")
    parser.add_argument("--steps", type=int, default=3, help="the first is not counted")
    parser.add_argument("--threads", type=int, default=1, help="on a CPU")
    parser.add_argument("--micro-batch-tokens", type=int)
    parser.add_argument("--checkpoint-activations", action="store_true")
    parser.add_argument("--precisions", nargs="+", choices=("float32", "bfloat16"), default=["float32", "bfloat16"])
    parser.add_argument("--peak-tflops", type=float, default=989.0, help="of the GPU in bfloat16 (H100, dense)")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    check_device(parser, options.device, options.shape)
    if options.shape != "bundled" and not options.length:
        parser.error("--length: the demo world's texts are of the bundled vocabulary; give a length for other shapes")
    if options.steps < 2:
        parser.error("--steps: the first is not counted; give at least 2")
    report = measure(options)
    print(f"\nwritten to {write_report('finetune', report, ('torch', 'transformers', 'accelerate'), options.results)}")


if __name__ == "__main__":
    main()
