"""A checkpoint with special tokens for a call's marks, served: what clients see is what the other form gives."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from inference_gateway.backends.local import LocalBackend
from inference_gateway.engine.limits import EngineLimits
from inference_gateway.settings import BUNDLED_MODEL
from language_model.tokenizer import ByteLevelTokenizer
from services.calculator.app import build_app as calculator
from services.calendar.app import build_app as calendar
from tests.inference_gateway.http_harness import Gateway, gateway, serving
from tests.support.marked_checkpoint import move_marks

PROMPTS = [
    "There are 24 boxes with 17 books each. How many books are there altogether? The answer is",
    "Of the 900 tickets 275 were sold, which leaves",
    "Today is",
    "A year has 12 months and a week 7 days, see [1]. The flat costs 940 and heating 85, so in all they cost",
    "Half of 86 is [Calculator(86 / 2) -> 43] 43. Today is",
]
DAY = {"date": "2026-11-20"}


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return move_marks(BUNDLED_MODEL, tmp_path_factory.mktemp("marked") / "model")


@asynccontextmanager
async def served(model: Path) -> AsyncIterator[Gateway]:
    async with serving(calculator()) as calculations, serving(calendar()) as days:
        backend = LocalBackend.load(model, limits=EngineLimits(max_sequences=4))
        tools = {"Calculator": calculations, "Calendar": days}
        async with gateway(tools, make=lambda: backend) as running:
            yield running


async def asked(model: Path, **fields: Any) -> list[dict[str, Any]]:
    """The choices of a model for `PROMPTS`."""
    async with served(model) as running:
        answers = [await running.complete(prompt, tool_context=DAY, max_tokens=24, **fields) for prompt in PROMPTS]
    return [answer["choices"][0] for answer in answers]


def without_times(choice: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(c["tool"], c["input"], c["output"], c["error"], c["offset"]) for c in choice["tool_calls"]]


def up_to_the_call(choice: dict[str, Any]) -> str:
    """The text to its last call's end; behind it the model, which was not trained further, may go on in other words:
    a result begins without a space."""
    text: str = choice["text"]
    return text[: text.rfind("]") + 1] if choice["tool_calls"] else text


@pytest.mark.parametrize("fields", [{}, {"api_top_k": 0}, {"stop": [" books", "."]}])
async def test_the_same_prompts_over_both_forms(marked: Path, fields: dict[str, Any]) -> None:
    in_text, special = await asked(BUNDLED_MODEL, **fields), await asked(marked, **fields)
    assert [without_times(choice) for choice in special] == [without_times(choice) for choice in in_text]
    alike = len(PROMPTS) - (fields == {"api_top_k": 0})  # the last prompt has a call itself
    assert [*map(up_to_the_call, special)][:alike] == [*map(up_to_the_call, in_text)][:alike]
    assert any(choice["tool_calls"] for choice in special) == (fields != {"api_top_k": 0})


async def test_clients_see_the_papers_text_and_the_tokens_that_are_there(marked: Path) -> None:
    tokenizer = ByteLevelTokenizer.from_pretrained(marked)
    call = " [Calculator(24 * 17) -> 408]"
    async with served(marked) as running:
        streamed = await running.stream(PROMPTS[0], max_tokens=24)
        fields: dict[str, Any] = {"logprobs": 1, "return_token_ids": True, "max_tokens": 24}
        [choice] = (await running.complete(PROMPTS[0], **fields))["choices"]
        assert streamed.text() == choice["text"]
        assert choice["text"].startswith(call)
        shown = choice["logprobs"]
        assert "".join(shown["tokens"]).removesuffix("<|endoftext|>") == choice["text"]
        assert shown["text_offset"] == [len("".join(shown["tokens"][:n])) for n in range(len(shown["tokens"]))]
        spliced = (*tokenizer.encode("408"), *tokenizer.marks.closing)
        written = (*tokenizer.marks.opening, *tokenizer.encode("Calculator(24 * 17)"), *tokenizer.marks.arrow, *spliced)
        assert tuple(choice["token_ids"][: len(written)]) == written
        [hidden] = (await running.complete(PROMPTS[0], show_calls=False, max_tokens=24))["choices"]
        assert hidden["text"] == choice["text"].removeprefix(call)


async def test_a_bias_on_the_opening_begins_a_call_where_none_would_be(marked: Path) -> None:
    """The start rule of the public checkpoints' authors."""
    [opening] = ByteLevelTokenizer.from_pretrained(marked).marks.opening
    async with served(marked) as running:
        plain = {"prompt": "The children were playing in the garden when", "api_top_k": 1, "max_tokens": 24}
        [without] = (await running.complete(**plain))["choices"]
        [with_bias] = (await running.complete(**plain, logit_bias={str(opening): 40}))["choices"]
    assert without["tool_calls"] == []
    assert [call["tool"] for call in with_bias["tool_calls"]] != []
