"""Section 2 of the paper over both forms of a call's marks, and with special tokens on to answers: texts that
name days, C*, a finetuned model, its evaluation behind a gateway."""

from __future__ import annotations

import asyncio
import json
import random
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from inference_gateway.backends.local import LocalBackend
from inference_gateway.engine.limits import EngineLimits
from language_model.tokenizer import ByteLevelTokenizer
from services.calendar.app import build_app as calendar_app
from tests.inference_gateway.http_harness import gateway
from tests.support.marked_checkpoint import move_marks
from tests.training_jobs.servers import serve
from training_jobs.corpora.real_text.generated_part import asked_days
from training_jobs.evaluate.__main__ import main as evaluate
from training_jobs.finetune.__main__ import main as finetune
from training_jobs.merge.putting import calls_in
from training_jobs.pipeline import main as stages
from training_jobs.records import Merged

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

BASE = Path(__file__).parents[2] / "models" / "base"
RECIPE = ("--steps", "120", "--batch", "16", "--rate", "1e-3", "--evaluate-every", "40")
COUNT = 5


def texts(path: Path, count: int, seed: int, but: str = "") -> Path:
    """So many texts in a file; none that ``but`` has: short texts come twice."""
    found = enumerate(islice((one for one in asked_days(random.Random(seed)) if one[0] not in but), count))
    rows = [{"id": str(number), "text": text, "date": day.isoformat()} for number, (text, day) in found]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def c_star(model: Path, run: Path, files: Path) -> Path:
    """C* of the calendar's calls, as the commands make it."""
    how = ("--tools", "Calendar", "--tau", "0.1", "--before-words")
    stages([str(files), "--run", str(run), "--model", str(model), *how])
    return run / "merge" / "with_calls.jsonl"


def calls(file: Path) -> set[tuple[str, str, str]]:
    found = [Merged.from_line(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return {(text.id, call.tool, call.output) for text in found for call in calls_in(text.segments)}


async def asked(model: Path, calendar: str, out: Path) -> tuple[dict[str, Any], str]:
    """The model's results on held-out prompts, by condition, and a completion."""
    backend = LocalBackend.load(model, limits=EngineLimits(max_sequences=8))
    async with gateway({"Calendar": calendar}, make=lambda: backend) as running:
        what = ("--suites", "tools-Calendar", "--tools", "Calendar", "--count", str(COUNT), "--out", str(out))
        await asyncio.to_thread(evaluate, ["--gateway", running.url, *what, "--k", "0", "10"])
        said = await running.complete("This was written on", tool_context={"date": "2026-11-20"}, max_tokens=24)
    scores = json.loads((out / "results.json").read_text(encoding="utf-8"))["scores"]
    return {score["condition"]: score for score in scores}, said["choices"][0]["text"]


async def test_both_forms_find_the_same_calls_and_special_marks_are_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked, files = move_marks(BASE, tmp_path / "base"), texts(tmp_path / "texts.jsonl", 160, seed=1)
    with serve(calendar_app()) as calendar:
        monkeypatch.setenv("TOOLFORMER_TOOL_CALENDAR_URL", calendar)
        stars = await asyncio.to_thread(c_star, marked, tmp_path / "marked", files)
        in_text = await asyncio.to_thread(c_star, BASE, tmp_path / "text", files)
        assert len(calls(stars) & calls(in_text)) >= 0.8 * len(calls(stars) | calls(in_text)) > 0
        held_out = texts(tmp_path / "held-out.jsonl", 10, seed=2, but=files.read_text(encoding="utf-8"))
        out, where = tmp_path / "out", ("--precision", "float32", "--device", "cpu")
        given = ("--model", marked, "--texts", stars, "--held-out", held_out, "--out", out)
        await asyncio.to_thread(finetune, [*map(str, given), *RECIPE, *where])
        assert ByteLevelTokenizer.from_pretrained(out / "model").marks.special
        scores, text = await asked(out / "model", calendar, tmp_path / "results")
    assert text.startswith(" [Calendar() -> Today is Friday, November 20, 2026.]")
    assert scores["k = 10"]["called"]["Calendar"] > COUNT
    assert scores["k = 10"]["all"]["right"] > scores["disabled"]["all"]["right"]
