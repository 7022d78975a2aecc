"""The bundled checkpoint, which taught itself: small enough to ship, and what it calls."""

import functools
import random
from pathlib import Path

import pytest

from language_model import checkpoint
from language_model.gptj import GPTJ
from language_model.tokenizer import ByteLevelTokenizer
from toolformer.api_call import ApiCall, scan_call, splice_result
from toolformer.tools import ToolRegistry
from training_jobs.pretrain.tokenizer import CALL_MARKS

MODEL = Path(__file__).parents[2] / "models" / "gptj-tools"
LARGEST_MB = 48
BOXES = "There are 24 boxes with 17 books each. How many books are there altogether? The answer is"
K = 10


@functools.cache
def loaded() -> tuple[GPTJ, ByteLevelTokenizer]:
    return checkpoint.load(MODEL), ByteLevelTokenizer.from_pretrained(MODEL)


def greedy(ids: list[int], *, stop: set[int], limit: int = 120) -> list[int]:
    """What the model says after ``ids``, up to and with the first token of ``stop``."""
    model, _ = loaded()
    cache = model.new_cache(1)
    said: list[int] = []
    new = ids
    while len(said) < limit and not (said and said[-1] in stop):
        said.append(int(model.extend(cache, [0], [new])[0].argmax()))
        new = said[-1:]
    return said


def called(prompt: str) -> ApiCall | None:
    """The call that the model starts right after ``prompt``, if its opening is among the ten most likely tokens there
    (section 4.2 of the paper)."""
    model, tokenizer = loaded()
    [opening], [arrow] = tokenizer.encode(" ["), tokenizer.encode(" ->")
    ids = tokenizer.encode_prompt(prompt)
    likely = model.extend(model.new_cache(1), [0], [ids])[0]
    if int((likely > likely[opening]).sum()) >= K:
        return None
    said = greedy([*ids, opening], stop={arrow, 0})
    return scan_call(tokenizer.decode(said), ToolRegistry.load().quoted_names).call


def test_it_is_small_enough_to_ship() -> None:
    assert sum(path.stat().st_size for path in MODEL.iterdir()) < LARGEST_MB * 1_000_000


@pytest.mark.parametrize("mark", CALL_MARKS)
def test_call_marks_are_single_tokens(mark: str) -> None:
    _, tokenizer = loaded()
    assert len(tokenizer.encode(mark)) == 1


@pytest.mark.parametrize(
    ("prompt", "call"),
    [
        (BOXES, ApiCall("Calculator", "24 * 17")),
        ("What is 24 * 17?", ApiCall("Calculator", "24 * 17")),
        ("What is 15% of 460?", ApiCall("Calculator", "460 * 15 / 100")),
        ("Of the 900 tickets 275 were sold, which leaves", ApiCall("Calculator", "900 - 275")),
        ("Today is", ApiCall("Calendar", "")),
        ("What is the capital of Kenya?", ApiCall("QA", "What is the capital of Kenya?")),
        ("When did Albrecht Dürer die?", ApiCall("WikiSearch", "When did Albrecht Dürer die")),
        ("Mount Kilimanjaro is in", ApiCall("WikiSearch", "Mount Kilimanjaro is in")),
        ('How do you say "Ich verstehe dich nicht." in English?', ApiCall("MT", "Ich verstehe dich nicht.")),
        ('The sign says "El vuelo dura 5 horas." In English:', ApiCall("MT", "El vuelo dura 5 horas.")),
    ],
)
def test_it_calls_the_right_tool(prompt: str, call: ApiCall) -> None:
    assert called(prompt) == call


@pytest.mark.parametrize(
    ("prompt", "call", "result", "goes_on"),
    [
        (BOXES, ApiCall("Calculator", "24 * 17"), "408", " 408."),
        ("Today is", ApiCall("Calendar", ""), "Today is Friday, November 20, 2026.", " Friday"),
        ("What is the capital of Kenya?", ApiCall("QA", "What is the capital of Kenya?"), "Nairobi", " Nairobi"),
        (
            'How do you say "Ich verstehe dich nicht." in English?',
            ApiCall("MT", "Ich verstehe dich nicht."),
            "I don't understand you.",
            " I don't understand you.",
        ),
    ],
)
def test_the_text_goes_on_with_the_result(prompt: str, call: ApiCall, result: str, goes_on: str) -> None:
    _, tokenizer = loaded()
    tool = ToolRegistry.load().get(call.tool)
    spliced = splice_result(result, tokenizer, max_tokens=tool.max_result_tokens)
    assert spliced is not None
    head = tokenizer.encode(call.head(quoted=tool.quoted))
    before = [*tokenizer.encode_prompt(prompt), *tokenizer.encode(" ["), *head, *tokenizer.encode(" ->"), *spliced.ids]
    assert tokenizer.decode(greedy(before, stop={0})).startswith(goes_on)


def test_numbers_are_copied_into_calls() -> None:
    rng = random.Random(7)
    right = []
    for _ in range(20):
        first, second = rng.randint(12, 98), rng.randint(12, 98)
        prompt, sign = rng.choice(
            [
                (BOXES.replace("24", "{}").replace("17", "{}"), "*"),
                ("Tom has {} pens and buys {} more. How many pens does Tom have? The answer is", "+"),
                ("What is {} * {}?", "*"),
            ]
        )
        right.append(called(prompt.format(first, second)) == ApiCall("Calculator", f"{first} {sign} {second}"))
    assert sum(right) >= 15
