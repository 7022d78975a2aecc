"""What each step counted, read from what it wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from training_jobs.merge.writing import SUMMARY
from training_jobs.run_folder import RunFolder

Counts = dict[str, Any]


def base_corpus(folder: Path) -> Counts:
    """Documents and tokens, and what became of the texts."""
    manifest = read(folder / "manifest.json")
    return {name: manifest[name] for name in ("drawn_texts", "documents", "tokens", "learned_tokens", "texts")}


def pretraining(model: Path) -> Counts:
    """Steps done, their last loss in nats, and the model's parameters."""
    from training_jobs.evaluate.perplexity import count_parameters  # here: it loads torch

    last = json.loads(_lines(model.parent / "loss.jsonl")[-1])
    return {"steps": last["step"], "last_loss": last["loss"], "parameters": count_parameters(model)}


def round_of_calls(folder: RunFolder) -> Counts:
    """Texts asked, calls proposed and kept of each tool, and the texts of C*."""
    summary = read(folder.merged / SUMMARY)
    tools = {
        tool: {
            "texts": one["texts"],
            "candidates": one["candidates"],
            "kept": one["verdicts"].get("kept", 0),
            "calls_in_c_star": one["calls of it in C*"],
        }
        for tool, one in summary["tools"].items()
    }
    return {"texts": summary["texts"], "tools": tools}


def finetuning(texts: Sequence[Path], out: Path) -> Counts:
    """Training examples, steps done, and the perplexity of held-out texts: before the first step, and the best after,
    which is that of the checkpoint that was taken."""
    curve: list[Mapping[str, Any]] = [json.loads(line) for line in _lines(out / "curve.jsonl")]
    measured = {line["step"]: line["eval_perplexity"] for line in curve if "eval_perplexity" in line}
    best = min((step for step in measured if step), key=lambda step: measured[step])
    return {
        "examples": sum(len(_lines(path)) for path in texts),
        "steps": max(line["step"] for line in curve),
        "perplexity_before": measured.get(0),
        "best_step": best,
        "best_perplexity": measured[best],
    }


def evaluation(out: Path) -> Counts:
    """Examples asked, under all conditions; requests that failed."""
    results = read(out / "results.json")
    return {
        "answers": sum(score["all"]["n"] for score in results["scores"]),
        "failed": sum(score["failed"] for score in results["scores"]),
        "texts": {name: loss["texts"] for name, loss in results["perplexity"].items()},
    }


def read(path: Path) -> Counts:
    """What a step wrote as JSON, such as how many calls are right."""
    content: Counts = json.loads(path.read_bytes())
    return content


def _lines(path: Path) -> list[bytes]:
    return [line for line in path.read_bytes().split(b"\n") if line]
