"""Candidates a second of annotating and calls a second of filtering, beside the plain way on the same model.

    python -m benchmarks.annotate_filter [--model models/gptj-tools] [--lengths 64 128 256]
    python -m benchmarks.annotate_filter --device cuda --dtype bfloat16 --shape gptj-6b --price 2.5
    python -m benchmarks.annotate_filter --shape small --lengths 16        proves that path, measures nothing

The plain way computes the whole prompt again for every sample, and for every call three whole sequences one by one:
no call, the call, the call with its result, each before the whole text. Both draw from the same random streams, so in
float32 they must find the same calls and losses; the script stops if they do not.

With `--model` the model writes real calls, which end when they are whole. With `--shape` the weights are random and a
sample is always 12 tokens of which no two share more than the beginning: nothing is gained by equal samples.
Filtering scores calls that are all different, so nothing is gained by equal calls either (all calls of the calendar
are equal: there, a document's positions share one pass)."""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.devices import DTYPES, SHAPES, card, check_device, settle
from benchmarks.reports import RESULTS, memory_mib, write_report
from demo_world.articles import article
from language_model import checkpoint
from language_model.block import rotation_table
from language_model.bulk.bulk_gptj import BulkGPTJ
from language_model.gptj import GPTJ
from language_model.tokenizer import ByteLevelTokenizer
from toolformer.api_call import ApiCall, call_ids, empty_call_ids
from toolformer.tools import Tool, ToolRegistry
from training_jobs.annotate import AnnotateSettings, Annotator
from training_jobs.annotate.prompted import prompted
from training_jobs.annotate.sampled import SampledCalls
from training_jobs.filter import Scorer
from training_jobs.filter.scorer import weighted_loss, window
from training_jobs.records import Annotated, Candidate, Document

POSITIONS: Final = 2_048
"""Of the model: the bundled one has fewer, but rotary positions reach as far as one likes."""
SAMPLE_TOKENS: Final = 12
CLOSE: Final = 2e-4


class FixedLength(SampledCalls):
    """For random weights: every sample is as long as a call may be."""

    def __init__(self, tool: Tool, tokenizer: ByteLevelTokenizer) -> None:
        super().__init__(tool, tokenizer)
        self.limit = SAMPLE_TOKENS

    def ended(self, written: bytes) -> bool:
        return False

    def read(self, written: bytes) -> tuple[str | None, str]:
        return written.hex(), ""


def documents(tokenizer: ByteLevelTokenizer, tokens: int, count: int) -> list[Document]:
    """Generated articles, put together until they have so many tokens."""
    made, number = [], 0
    for name in range(count):
        text = ""
        while len(ids := tokenizer.encode(text)) < tokens:
            text += (" " if text else "") + article(number, seed=1).text
            number += 1
        made.append(Document(str(name), tokenizer.decode(ids[:tokens]).replace("\ufffd", "")))
    return made


@torch.inference_mode()
def annotate_plainly(
    model: GPTJ, tokenizer: ByteLevelTokenizer, tool: Tool, calls: SampledCalls, document: Document, seed: int
) -> dict[int, list[str]]:
    """Inputs by position, the whole prompt computed for each sample."""
    asked = prompted(document.text, tokenizer, room=10_000)
    assert asked is not None
    head, [opening] = tokenizer.encode(tool.prompt_head), tokenizer.encode(" [")
    whole = [*head, *asked.text.ids]
    likely = torch.log_softmax(model(torch.tensor([whole], device=model.device))[0].float(), -1)[:, opening]
    first = len(head) + asked.text.first
    by_probability = sorted(asked.positions, key=lambda one: -float(likely[first + one.place - 1]))
    found: dict[int, list[str]] = {}
    for position in sorted(by_probability[: tool.max_positions], key=lambda one: one.place):
        inputs: list[str] = []
        for number in range(tool.max_samples):
            stream = random.Random(repr((seed, document.id, tool.name, position.position, number)))
            cache, written = model.new_cache(1), b""
            new = [*whole[: first + position.place], opening]
            for _ in range(calls.limit):
                shares = torch.softmax(model.extend(cache, [0], [new])[0].double(), -1).cumsum(-1)
                token = int(torch.searchsorted(shares, stream.random() * float(shares[-1]), right=True))
                if token in model.end_ids:
                    break
                new, written = [token], written + tokenizer.token_bytes(token)
                if calls.ended(written):
                    break
            input_, _ = calls.read(written)
            if input_ is not None and input_ not in inputs:
                inputs.append(input_)
        if inputs:
            found[position.position] = inputs
    return found


@torch.inference_mode()
def score_plainly(model: GPTJ, tokenizer: ByteLevelTokenizer, tool: Tool, one: Annotated) -> list[list[float]]:
    """The three losses of each candidate, from three whole sequences each."""
    ids = tokenizer.encode(one.document.text)
    begin = [model.config.bos_token_id]
    losses = []
    for candidate in one.candidates:
        call = ApiCall(tool.name, candidate.input)
        of_candidate = []
        for result in (None, "", candidate.output):
            prefix = []
            if result is not None:
                prefix = (
                    call_ids(call, tokenizer, quoted=tool.quoted, result=result)
                    if result
                    else empty_call_ids(call, tokenizer, quoted=tool.quoted)
                )
            before = [*begin, *prefix]
            logits = model(torch.tensor([[*before, *ids]], device=model.device))[0].float().log_softmax(-1)
            tokens = window(candidate.position, len(ids))
            values = [float(logits[len(before) + token - 1, ids[token]]) for token in tokens]
            of_candidate.append(weighted_loss(candidate.position, tokens, values))
        losses.append(of_candidate)
    return losses


def calls_to_score(document: Document, tokenizer: ByteLevelTokenizer, count: int) -> Annotated:
    """Different calls, spread over a document."""
    last = len(tokenizer.encode(document.text)) - 1
    spread = [last * (number + 1) // (count + 1) for number in range(count)]
    made = [Candidate(at, 0, 0.1, f"{at} * {n + 11}", f"{at * (n + 11)}") for n, at in enumerate(spread)]
    return Annotated(document, "Calculator", tuple(made))


class Measured:
    """Seconds of some work (on a CPU, of the processor), and what memory it took at most."""

    def __init__(self, work: Callable[[], Any], device: torch.device) -> None:
        # On a processor that others use too, what counts is how long it worked for this, not how long that took.
        clock = time.process_time if device.type == "cpu" else time.perf_counter
        before = _start_counting(device)
        started = clock()
        self.result = work()
        settle(device)
        self.seconds = clock() - started
        self.mib = max(0.0, _most(device) - before)


def _start_counting(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device) / 2**20
    forget = Path("/proc/self/clear_refs")
    if forget.exists():
        forget.write_text("5")  # the highest resident size starts again
    return memory_mib("self")


def _most(device: torch.device) -> float:
    return torch.cuda.max_memory_allocated(device) / 2**20 if device.type == "cuda" else memory_mib("self", peak=True)


def compare(
    model: GPTJ, tokenizer: ByteLevelTokenizer, tool: Tool, options: argparse.Namespace, length: int
) -> dict[str, Any]:
    """Both ways at documents of ``length`` tokens; the plain way on the first few of them."""
    device, exact = model.device, model.dtype == torch.float32 and model.device.type == "cpu"
    texts = documents(tokenizer, length, options.documents)
    few = texts[: options.plain_documents]
    bulk = BulkGPTJ(model, tokenizer.token_bytes)
    annotator = Annotator(bulk, tokenizer, tool, AnnotateSettings(batch_tokens=options.batch_tokens))
    if options.shape:
        annotator._calls = FixedLength(tool, tokenizer)
    annotator.annotate(texts[:1], seed=1)
    ours = Measured(lambda: annotator.annotate(texts, seed=0), device)
    plain = Measured(
        lambda: [annotate_plainly(model, tokenizer, tool, annotator._calls, one, seed=0) for one in few], device
    )
    found = sum(len(one.candidates) for one in ours.result)
    if exact:
        for one, want in zip(ours.result, plain.result, strict=False):
            got: dict[int, list[str]] = {}
            for candidate in one.candidates:
                got.setdefault(candidate.position, []).append(candidate.input)
            assert got == want, f"the two ways differ: {got} and {want}"
    samples = tool.max_positions * tool.max_samples
    asked = [calls_to_score(one, tokenizer, options.calls) for one in texts]
    scorer = Scorer(bulk, tokenizer, ToolRegistry([tool]))
    scorer.score(asked[:1])
    scored = Measured(lambda: scorer.score(asked), device)
    plainly = Measured(lambda: [score_plainly(model, tokenizer, tool, one) for one in asked[: len(few)]], device)
    for one, wanted in zip(scored.result, plainly.result, strict=False) if exact else ():
        for candidate, losses in zip(one.candidates, wanted, strict=True):
            kept = (candidate.loss_empty, candidate.loss_call, candidate.loss_result)
            assert max(abs(a - b) for a, b in zip(kept, losses, strict=True)) < CLOSE, f"{kept} and {losses} differ"
    rates = {
        "samples a second": samples * len(texts) / ours.seconds,
        "samples a second, plain": samples * len(few) / plain.seconds,
        "calls scored a second": options.calls * len(texts) / scored.seconds,
        "calls scored a second, plain": options.calls * len(few) / plainly.seconds,
    }
    return {
        "tokens": length,
        **rates,
        "annotate / plain": rates["samples a second"] / rates["samples a second, plain"],
        "filter / plain": rates["calls scored a second"] / rates["calls scored a second, plain"],
        "candidates a document": found / len(texts),
        "candidates a second": found / ours.seconds,
        "documents an hour": 3600 * len(texts) / (ours.seconds + scored.seconds),
        "MiB more while annotating": ours.mib,
        "MiB more while filtering": scored.mib,
    }


def load(options: argparse.Namespace) -> tuple[GPTJ, ByteLevelTokenizer]:
    dtype = DTYPES[options.dtype]
    tokenizer = ByteLevelTokenizer.from_pretrained(options.tokenizer or options.model)
    if options.shape:
        config = SHAPES[options.shape]
        if config.n_positions < POSITIONS or config.vocab_size < tokenizer.vocab_size:
            size, end = tokenizer.vocab_size, 0
            config = dataclasses.replace(
                config, n_positions=POSITIONS, vocab_size=size, bos_token_id=end, eos_token_id=end
            )
        model = GPTJ.from_config(config, dtype=dtype, device=torch.device(options.device))
        return model.eval().requires_grad_(False), tokenizer
    model = checkpoint.load(options.model, dtype=dtype, device=options.device)
    model.config = dataclasses.replace(model.config, n_positions=POSITIONS)
    model.rotations = rotation_table(model.config, model.device)
    return model, tokenizer


def show(rows: Sequence[dict[str, Any]], price: float | None) -> None:
    table = Table(title="a second; in brackets the plain way")
    for name in ("tokens", "samples", "times", "calls scored", "times", "MiB", "documents an hour", "for a million"):
        table.add_column(name, justify="right")
    for row in rows:
        hours = 1e6 / row["documents an hour"]
        table.add_row(
            str(row["tokens"]),
            f"{row['samples a second']:,.0f} ({row['samples a second, plain']:,.1f})",
            f"{row['annotate / plain']:.1f}",
            f"{row['calls scored a second']:,.0f} ({row['calls scored a second, plain']:,.1f})",
            f"{row['filter / plain']:.1f}",
            f"{row['MiB more while annotating']:,.0f}, {row['MiB more while filtering']:,.0f}",
            f"{row['documents an hour']:,.0f}",
            f"{hours:,.0f} h" + (f", {hours * price:,.0f}" if price else ""),
        )
    Console(width=140).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path("models/gptj-tools"))
    parser.add_argument("--shape", choices=sorted(SHAPES), help="random weights of that shape instead of --model's")
    parser.add_argument("--tokenizer", type=Path, help="folder of a tokenizer.json, by default --model's")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1")
    parser.add_argument("--dtype", choices=sorted(DTYPES), default="float32")
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 128, 256], help="tokens of a document")
    parser.add_argument("--documents", type=int, default=32)
    parser.add_argument("--plain-documents", type=int, default=2, help="of them, for the plain way")
    parser.add_argument("--positions", type=int, default=5, help="k, of each document")
    parser.add_argument("--samples", type=int, default=5, help="m, at each position")
    parser.add_argument("--calls", type=int, default=10, help="to score, of each document")
    parser.add_argument("--batch-tokens", type=int, default=AnnotateSettings().batch_tokens)
    parser.add_argument("--threads", type=int, default=1, help="of torch; more than the free cores only wait")
    parser.add_argument("--price", type=float, help="of an hour of the machine: prices a million documents")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    check_device(parser, options.device, options.shape)
    torch.set_num_threads(options.threads)
    tool = ToolRegistry.load(files=[], environ={}).get("Calculator")
    tool = tool.model_copy(
        update={"sampling_threshold": 0.0, "max_positions": options.positions, "max_samples": options.samples}
    )
    model, tokenizer = load(options)
    rows = [compare(model, tokenizer, tool, options, length) for length in options.lengths]
    show(rows, options.price)
    report = {
        "processor or card": card(options.device),
        "model": options.shape or str(options.model),
        "dtype": options.dtype,
        "prompt tokens": len(tokenizer.encode(tool.prompt_head)),
        "positions": options.positions,
        "samples": options.samples,
        "threads": torch.get_num_threads(),
        "rows": rows,
    }
    print(f"\nwritten to {write_report('annotate_filter', report, ('torch',), options.results)}", file=sys.stderr)


if __name__ == "__main__":
    main()
