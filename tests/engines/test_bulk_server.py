"""Annotating and filtering with a model on a real vLLM, beside the same model run locally."""

import asyncio
import math
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from language_model.bulk.interface import Place, PromptedText, SamplingRule, Targets
from language_model.bulk.loading import load_bulk
from language_model.bulk.server import BulkServer, ServerSettings
from services.calculator.app import build_app as calculator
from services.calendar.app import build_app as calendar
from tests.engines.harness import MODEL, SERVED_AS, TOKENIZER, prompts
from tests.support.serving import serving
from toolformer.tools import ToolRegistry
from training_jobs import pipeline
from training_jobs.annotate import Annotator
from training_jobs.corpora.web.generating import generate
from training_jobs.records import Annotated, Document, Merged

pytestmark = pytest.mark.vllm

POSITIONS: Final = 1024
LOCAL, _ = load_bulk(MODEL)
[OPENING] = TOKENIZER.encode(" [")
REPORTED_ABOVE: Final = math.log(1 / 21)
"""A likelier token is among the 20 likeliest, which are all that the server reports."""
TEXTS: Final = [TOKENIZER.encode(text) for text in prompts("word problems", 20)]


@pytest.fixture(scope="module")
def remote(vllm_server: str) -> Iterator[BulkServer]:
    with BulkServer(ServerSettings(vllm_server, SERVED_AS, POSITIONS, begin_id=0)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("without", "near"),
    [(None, 1e-4), (OPENING, -math.log1p(-math.exp(REPORTED_ABOVE)))],
    ids=["all tokens", "one taken out, if the server reports it"],
)
def test_prompts_are_scored_as_by_the_model(remote: BulkServer, without: int | None, near: float) -> None:
    targets = [Targets((0, *ids), tuple(range(1, len(ids) + 1))) for ids in TEXTS]
    expected = LOCAL.score(targets, without=without)
    for want, got in zip(expected, remote.score(targets, without=without), strict=True):
        assert got == pytest.approx(want, abs=near)


def test_places_for_calls_are_those_of_the_model(remote: BulkServer) -> None:
    texts = [PromptedText(tuple(ids), 1) for ids in TEXTS]
    expected = LOCAL.read(LOCAL.hold((0,)), texts, OPENING).log_probabilities
    reported = 0
    for want, got in zip(expected, remote.read(remote.hold((0,)), texts, OPENING).log_probabilities, strict=True):
        for a, b in zip(want, got, strict=True):
            assert b == pytest.approx(a, abs=1e-4) if b > -math.inf else a < REPORTED_ABOVE
            reported += b > -math.inf
    assert reported > len(TEXTS)


def test_samples_are_drawn_as_likely_as_the_model_finds_them(remote: BulkServer) -> None:
    [text] = [PromptedText(tuple(ids), len(ids)) for ids in TEXTS[:1]]
    reading = remote.read(remote.hold((0,)), [text], OPENING)
    places = [Place(0, len(text.ids))] * 8
    streams = [[random.Random(100 * place + number) for number in range(50)] for place in range(8)]
    rule = SamplingRule(limit=1, ended=bool)
    drawn = Counter(sample.decode() for of_place in reading.continuations(places, streams, rule) for sample in of_place)
    assert drawn.total() == 400
    for token, count in drawn.most_common(4):
        [id_] = TOKENIZER.encode(token)
        [[likely]] = LOCAL.score([Targets((0, *text.ids, OPENING, id_), (len(text.ids) + 2,))])
        assert count / 400 == pytest.approx(math.exp(likely), abs=0.1)  # four standard deviations and more


def test_a_seed_repeats_the_samples_and_another_draws_others(remote: BulkServer) -> None:
    tool = ToolRegistry.load(environ={}).get("Calculator").model_copy(update={"max_positions": 4, "max_samples": 4})
    documents = [Document(str(n), text) for n, text in enumerate(prompts("word problems", 10))]
    annotator = Annotator(remote, TOKENIZER, tool)
    first, again, other = (annotator.annotate(documents, seed=seed) for seed in (1, 1, 2))
    assert sum(bool(one.candidates) for one in first) > 5
    # Sums in another order may, once in a while, tip a draw.
    assert sum(a != b for a, b in zip(first, again, strict=True)) <= 1
    assert sum(a != b for a, b in zip(first, other, strict=True)) > 5


CALLED: Final = ("Calculator", "Calendar")
FEW_CALLS: Final = "sampling_threshold = 0.05\nmax_positions = 3\nmax_samples = 1\n"
"""At places that the server is sure to report."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def runs(vllm_server: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Forty generated documents from corpus to merge: with the model on the server, and with the model run locally."""
    root = tmp_path_factory.mktemp("runs")
    texts = generate(root / "web", count=40, seed=1)
    few = root / "few.toml"
    few.write_text("".join(f"[{tool}]\n{FEW_CALLS}" for tool in CALLED))
    # Hardly anything is left to chance at this temperature: the random numbers are others.
    options = ["--tools", *CALLED, "--temperature", "0.01", "--before-words", "--unchecked", "--tau", "0.1"]
    with pytest.MonkeyPatch.context() as environment:
        async with serving(calculator()) as calculates, serving(calendar()) as knows_the_day:
            environment.setenv("TOOLFORMER_TOOLS", str(few))
            environment.setenv("TOOLFORMER_TOOL_CALCULATOR_URL", calculates)
            environment.setenv("TOOLFORMER_TOOL_CALENDAR_URL", knows_the_day)
            for name, where in (("there", ["--server", vllm_server, "--served-as", SERVED_AS]), ("here", [])):
                run = ["--run", str(root / name), "--model", str(MODEL), *where]
                await asyncio.to_thread(pipeline.main, [*map(str, texts), *run, *options])
    return root / "there", root / "here"


def annotated(run: Path, stage: str, tool: str) -> list[Annotated]:
    lines = (run / stage / f"{tool}.jsonl").read_text(encoding="utf-8").splitlines()
    return [Annotated.from_line(line) for line in lines]


@pytest.mark.parametrize("tool", CALLED)
def test_a_run_proposes_and_scores_as_the_model_at_hand(runs: tuple[Path, Path], tool: str) -> None:
    there, here = (annotated(run, "score", tool) for run in runs)
    same = calls = 0
    for a, b in zip(there, here, strict=True):
        assert a.document == b.document
        asked = [[(one.position, one.input, one.output) for one in done.candidates] for done in (a, b)]
        if asked[0] != asked[1]:
            continue
        same += 1
        for got, want in zip(a.candidates, b.candidates, strict=True):
            calls += 1
            for name in ("start_probability", "loss_empty", "loss_call", "loss_result", "gain"):
                assert getattr(got, name) == pytest.approx(getattr(want, name), abs=1e-4), name
    assert same >= len(here) - 2
    assert calls > 10


def test_a_run_keeps_the_calls_that_the_model_at_hand_keeps(runs: tuple[Path, Path]) -> None:
    merged = [(run / "merge" / "with_calls.jsonl").read_text(encoding="utf-8").splitlines() for run in runs]
    there, here = ({one.id: one for one in map(Merged.from_line, lines)} for lines in merged)
    assert len(here) > 5
    differing = [id_ for id_ in there.keys() | here.keys() if _segments(there, id_) != _segments(here, id_)]
    assert len(differing) <= 2


def _segments(texts: dict[str, Merged], id_: str) -> object:
    return texts[id_].segments if id_ in texts else None
