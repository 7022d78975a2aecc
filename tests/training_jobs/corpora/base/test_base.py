"""The base model's training text: its kinds in their shares, ids as the filter and the annotator make them, what is
learned, and what tools really say in headings."""

import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from demo_world.articles import Truth
from demo_world.texts import CallSlot, Text
from language_model.token_file import Tokens
from language_model.tokenizer import ByteLevelTokenizer
from tests.training_jobs.servers import tool_services
from toolformer.api_call import ApiCall, call_ids
from toolformer.tools import ToolRegistry
from training_jobs.corpora.base.__main__ import main, make_base_corpus
from training_jobs.corpora.base.drawing import CorpusText, Heading, Shown, rows
from training_jobs.corpora.base.random_calls import Placed, random_calls
from training_jobs.corpora.base.row_encoder import RowEncoder, texts_for_vocabulary
from training_jobs.pretrain.tokenizer import END_OF_TEXT, train_tokenizer

COUNT = 300
REGISTRY = ToolRegistry.load(environ={})


@pytest.fixture(scope="module")
def drawn() -> list[CorpusText]:
    return list(rows(COUNT, tuple(REGISTRY), seed=0))


@pytest.fixture(scope="module")
def tokenizer(drawn: list[CorpusText]) -> Tokenizer:
    return train_tokenizer(texts_for_vocabulary(drawn, REGISTRY, lambda heading: heading.answer))


def test_rows_depend_on_seed_and_number_alone(drawn: list[CorpusText]) -> None:
    assert list(rows(5, tuple(REGISTRY), seed=0)) == drawn[:5]
    assert list(rows(5, tuple(REGISTRY), seed=1)) != drawn[:5]


def test_kinds_have_their_shares_and_half_of_the_calls_are_misplaced(drawn: list[CorpusText]) -> None:
    kinds = Counter(row.kind for row in drawn)
    assert kinds["plain"] > 80
    assert kinds["heading"] > 60
    assert kinds["prompt"] > 65
    calls = [call for row in drawn for part in row.parts if isinstance(part, Shown) for call in part.calls]
    assert {call.tool for call in calls} == set(REGISTRY.names())
    misplaced = sum(call.offset is None for call in calls)
    assert 0.35 < misplaced / len(calls) < 0.65


def test_random_calls_say_neither_where_they_belong_nor_what_to_ask(drawn: list[CorpusText]) -> None:
    some = list(rows(COUNT, tuple(REGISTRY), seed=0, calls="random"))
    assert Counter(row.kind for row in some) == Counter(row.kind for row in drawn)
    assert not [part for row in some for part in row.parts if isinstance(part, Heading)]
    shown = [part for row in some for part in row.parts if isinstance(part, Shown) and part.calls]
    calls = [call for part in shown for call in part.calls]
    assert {call.tool for call in calls} == set(REGISTRY.names())
    assert all(call.offset is None for call in calls), "a place that the generator knows"
    # Of what stands in the text, but not what the text would ask.
    sums = [(part.text, call.input) for part in shown for call in part.calls if call.tool == "Calculator"]
    taken = [number in text for text, asked in sums for number in re.findall(r"\d+(?:\.\d+)?", asked)]
    assert sum(taken) > 0.8 * len(taken) > 20
    true_inputs = {call.input for row in drawn for part in row.parts if isinstance(part, Shown) for call in part.calls}
    assert not {asked for _, asked in sums} & true_inputs
    pieces = [(part.text, call.input) for part in shown for call in part.calls if call.tool == "MT"]
    assert pieces
    assert all(asked in " ".join(text.split()) for text, asked in pieces)


def test_random_calls_keep_the_inputs_form() -> None:
    text = "Each of the 24 boxes from Novo Mesto holds 17 books."
    likes = {"Calculator": "(8 + 91) / 2", "QA": "What is the population of Ségou?", "WikiSearch": "Ségou population"}
    for seed in range(20):
        for tool, like in likes.items():
            [call] = random_calls(random.Random(seed), text, [Truth(tool, 5, like, "x")])
            form = {
                "Calculator": r"\((24|17) \+ (24|17)\) / (24|17)",
                "QA": r"What is the population of (Each|Novo Mesto)\?",
                "WikiSearch": r"(Each|Novo Mesto) population",
            }[tool]
            assert re.fullmatch(form, call.input)
            assert call.offset is None
    [asked] = random_calls(random.Random(0), text, [Truth("Calendar", 5, "", "x")])
    assert asked.input == ""


def test_a_corpus_with_random_calls_needs_no_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in REGISTRY.names():
        monkeypatch.setenv(f"TOOLFORMER_TOOL_{name.upper()}_URL", "http://127.0.0.1:9")
    main(["--out", str(tmp_path), "--texts", "40", "--calls", "random"])
    manifest = json.loads(capsys.readouterr().out)
    assert manifest["calls"] == "random"
    assert not [why for why in manifest["texts"] if "placed" in why and "misplaced" not in why]
    assert "->" not in ByteLevelTokenizer.from_pretrained(tmp_path).decode(
        [int(one) for one in Tokens.load(tmp_path).ids]
    ), "a call with a result"


def test_a_prompt_row_shows_a_text_twice_in_the_form_of_the_tools_prompt(drawn: list[CorpusText]) -> None:
    full = 0
    for row in (row for row in drawn if row.kind == "prompt"):
        head, *examples = [part for part in row.parts if isinstance(part, Shown)]
        [tool] = [tool for tool in REGISTRY if head.text.startswith(tool.task)]
        full += tool.prompt_for("").startswith(head.text) and len(head.text) > len(tool.task) + 2
        texts = examples[1::4]
        assert [part.text for part in examples[3::4]] == [part.text for part in texts]
        assert all(call.tool == tool.name for part in examples[3::4] for call in part.calls)
        plain = "".join(part.text for part in examples)
        assert plain.startswith("Input: ")
        assert "\nOutput:" in plain
    assert 3 < full < 40


def test_a_call_stands_before_the_token_that_begins_its_answer(tokenizer: Tokenizer) -> None:
    encoder = RowEncoder(tokenizer, REGISTRY, lambda heading: None)
    wrapped = ByteLevelTokenizer(tokenizer)
    text = "24 boxes of 17 naïve books are 408 books."
    call = call_ids(ApiCall("Calculator", "24 * 17"), wrapped, quoted=False)
    ids, learned = encoder.encode(
        CorpusText("prompt", (Shown(text, (Placed("Calculator", "24 * 17", text.index(" 408")),)),))
    )
    before, after = wrapped.encode("24 boxes of 17 naïve books are"), wrapped.encode(" 408 books.")
    assert ids == [*before, *call, *after, tokenizer.token_to_id(END_OF_TEXT)]
    assert all(learned)


def test_a_misplaced_call_leaves_the_texts_tokens_as_they_are(tokenizer: Tokenizer) -> None:
    encoder = RowEncoder(tokenizer, REGISTRY, lambda heading: None)
    wrapped = ByteLevelTokenizer(tokenizer)
    text = "Он сказал: 早上好 — naïve."
    call = call_ids(ApiCall("QA", "Who?"), wrapped, quoted=True)
    plain = wrapped.encode(text)
    seen = set()
    for step in range(50):
        ids, _ = encoder.encode(CorpusText("prompt", (Shown(text, (Placed("QA", "Who?", None, step / 50),)),)))
        at = next(at for at in range(len(ids)) if ids[at : at + len(call)] == call)
        assert [*ids[:at], *ids[at + len(call) : -1]] == plain
        wrapped.decode(ids[:at]).encode()
        assert "\ufffd" not in wrapped.decode(ids[:at]), "inside a character"
        seen.add(at)
    assert len(seen) > 5


def test_headings_and_prompts_are_read_not_learned(tokenizer: Tokenizer) -> None:
    heading = Heading("Calculator", "1 + 2", "3")
    encoder = RowEncoder(tokenizer, REGISTRY, {heading: "3"}.get)
    wrapped = ByteLevelTokenizer(tokenizer)
    ids, learned = encoder.encode(CorpusText("heading", (heading, Shown("1 and 2 make 3."))))
    call = call_ids(ApiCall("Calculator", "1 + 2"), wrapped, quoted=False, result="3")
    assert ids[: len(call)] == call
    assert learned == [False] * len(call) + [True] * (len(ids) - len(call))
    empty, _ = encoder.encode(CorpusText("heading", (Heading("Calculator", "1 + 2", None), Shown("x"))))
    bare = call_ids(ApiCall("Calculator", "1 + 2"), wrapped, quoted=False)
    assert empty[: len(bare)] == bare


@pytest.mark.slow
def test_the_corpus_holds_what_the_services_say(drawn: list[CorpusText], tmp_path: Path) -> None:
    headings = [part for row in drawn[:60] for part in row.parts if isinstance(part, Heading) and part.answer]
    known = [Text((CallSlot("QA", one.input),), str(one.answer)) for one in headings[1:] if one.tool == "QA"]
    with tool_services(known) as registry:
        manifest = make_base_corpus(tmp_path / "a", count=60, seed=0, registry=registry)
        again = make_base_corpus(tmp_path / "b", count=60, seed=0, registry=registry)
    assert manifest == again
    assert json.loads((tmp_path / "a/manifest.json").read_text()) == manifest
    tokens = Tokens.load(tmp_path / "a")
    assert tokens.documents == sum(number for why, number in manifest["texts"].items() if why.startswith("kept"))
    assert manifest["learned_tokens"] < manifest["tokens"]
    wrapped = ByteLevelTokenizer.from_pretrained(tmp_path / "a")
    text = wrapped.decode(tokens.ids.tolist())
    sums = [one for one in headings if one.tool == "Calculator"]
    assert sum(f"[Calculator({one.input}) -> {one.answer}]" in text for one in sums) > 0.9 * len(sums) > 1
