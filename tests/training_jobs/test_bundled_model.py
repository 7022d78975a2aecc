"""The bundled checkpoint, which taught itself: small enough to ship, and what it calls."""

import functools
from pathlib import Path

import pytest

from demo_world.suites import questions
from language_model import checkpoint
from language_model.gptj import GPTJ
from language_model.tokenizer import ByteLevelTokenizer
from toolformer.api_call import ApiCall, scan_call, splice_result
from toolformer.tools import ToolRegistry
from training_jobs.pretrain.tokenizer import CALL_MARKS

MODEL = Path(__file__).parents[2] / "models" / "gptj-tools"
LARGEST_MB = 20
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
    ids = tokenizer.encode(prompt)
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
        ("Each of the 24 boxes holds 17 books, so together they hold", ApiCall("Calculator", "24 * 17")),
        ("Today is", ApiCall("Calendar", "")),
        ("The population of Ljubljana is", ApiCall("WikiSearch", "Ljubljana population")),
        ("The population of Paris is", ApiCall("WikiSearch", "Paris population")),
        ("Of the 900 tickets 275 were sold, which leaves", ApiCall("Calculator", "900 - 275")),
        ("Q: In which country is Ljubljana? A:", ApiCall("QA", "In which country is Ljubljana?")),
        ("What is the capital of Slovenia? The answer is", ApiCall("QA", "What is the capital of Slovenia?")),
        ("The capital of Slovenia is", ApiCall("QA", "What is the capital of Slovenia?")),
        ('The sign says "El vuelo dura 5 horas." In English:', ApiCall("MT", "El vuelo dura 5 horas.")),
    ],
)
def test_it_calls_the_right_tool(prompt: str, call: ApiCall) -> None:
    assert called(prompt) == call


@pytest.mark.parametrize(
    ("prompt", "call", "result", "goes_on"),
    [
        (
            "Each of the 24 boxes holds 17 books, so together they hold",
            ApiCall("Calculator", "24 * 17"),
            "408",
            " 408 books.",
        ),
        ("Today is", ApiCall("Calendar", ""), "Today is Friday, November 20, 2026.", " Friday, November 20, 2026"),
        (
            "Q: In which country is Ljubljana? A:",
            ApiCall("QA", "In which country is Ljubljana?"),
            "Slovenia",
            " Slovenia",
        ),
        (
            'The sign says "El vuelo dura 5 horas." In English:',
            ApiCall("MT", "El vuelo dura 5 horas."),
            "The flight takes 5 hours.",
            " The flight takes 5 hours.",
        ),
    ],
)
def test_the_text_goes_on_with_the_result(prompt: str, call: ApiCall, result: str, goes_on: str) -> None:
    _, tokenizer = loaded()
    tool = ToolRegistry.load().get(call.tool)
    spliced = splice_result(result, tokenizer, max_tokens=tool.max_result_tokens)
    assert spliced is not None
    head = tokenizer.encode(call.head(quoted=tool.quoted))
    before = [*tokenizer.encode(prompt), *tokenizer.encode(" ["), *head, *tokenizer.encode(" ->"), *spliced.ids]
    assert tokenizer.decode(greedy(before, stop={0})).startswith(goes_on)


@pytest.mark.parametrize(
    ("tool", "least"), [("Calculator", 8), ("Calendar", 17), ("WikiSearch", 5), ("QA", 10), ("MT", 15)]
)
def test_held_out_values_are_copied_into_calls(tool: str, least: int) -> None:
    """``least`` is a little below what this model does; a fact that it asks QA for instead of WikiSearch, or the other
    way round, does not count here."""
    asked = questions(tool, "held-out values", count=20)
    right = sum(called(question.prompt) == ApiCall(tool, question.input) for question in asked)
    assert right >= least
