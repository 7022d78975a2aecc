"""What visitors type, asked of the bundled model over HTTP: no completion is empty or shorter than asked for."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from inference_gateway.backends.local import LocalBackend
from inference_gateway.engine.limits import EngineLimits
from services.calculator.app import build_app as calculator
from tests.inference_gateway.http_harness import Gateway, gateway, serving

MODEL: Final = Path(__file__).parents[2] / "models" / "gptj-tools"
TOKENS: Final = 24
PROMPTS: Final = [
    *("2 + 2 =", "What is 2+2?", "7 * 8 =", "17% of 340 is", "half of 86 is", "(3+4)*2 =", "€20 minus €5 is"),
    *("Anna has 5 apples and buys 3 more. She now has", "There are 12 rows with 10 chairs each, so there are"),
    *("Today is", "What year is it?", "Tomorrow will be", "May 5, 2020 was a"),
    *("The capital of France is", "The population of Ljubljana is", "Who wrote Hamlet?", "Water boils at"),
    *("merci beaucoup means", '"Guten Morgen" in English is', "谢谢 means", '"Heute ist Montag." means'),
    *(
        "Hello",
        "Once upon a time",
        "x = [1, 2, 3]\nprint(x",
        "See [1] and [2",
        "test",
        "?",
        "1",
        "Q: 3+3?\nA:",
        "💡 idea:",
    ),
]


@pytest.fixture
async def bundled() -> AsyncIterator[Gateway]:
    """The bundled model with its calculator; no other tool answers."""
    limits = EngineLimits(max_model_len=256, max_sequences=8)
    async with (
        serving(calculator()) as url,
        gateway({"Calculator": url}, make=lambda: LocalBackend.load(MODEL, limits=limits)) as served,
    ):
        yield served


async def completions(bundled: Gateway, **fields: Any) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each prompt, its choice and its usage."""
    answers = await asyncio.gather(*(bundled.complete(prompt, max_tokens=TOKENS, **fields) for prompt in PROMPTS))
    return [(prompt, answer["choices"][0], answer["usage"]) for prompt, answer in zip(PROMPTS, answers, strict=True)]


def closes_nothing(text: str) -> bool:
    """Whether a ``]`` is in ``text`` that closes no bracket of it."""
    while (shorter := re.sub(r"\[[^\[\]]*\]", "", text)) != text:
        text = shorter
    return "]" in text


@pytest.mark.parametrize(
    "fields", [{}, {"tools": ["QA", "Calculator"]}, {"tools": []}, {"stop_at": "sentence"}], ids=str
)
async def test_no_completion_is_empty_or_short(bundled: Gateway, fields: dict[str, Any]) -> None:
    dropped = 0
    for prompt, choice, usage in await completions(bundled, **fields):
        assert choice["text"].strip() or prompt == "?", prompt  # a mark alone may end at once
        assert choice["finish_reason"] == "stop" or usage["completion_tokens"] == TOKENS, prompt
        assert usage["completion_tokens"] <= TOKENS
        assert usage["rolled_back_tokens"] <= TOKENS
        assert not closes_nothing(prompt + choice["text"]), prompt
        assert {call["tool"] for call in choice["tool_calls"]} <= {"", *fields.get("tools", ["QA", "Calculator"])} or (
            "tools" not in fields
        )
        dropped += bool(usage["rolled_back_tokens"])
    assert bool(dropped) == (fields.get("tools") != []), "else nothing was tried here"


async def test_a_scored_prompt_has_each_of_its_tokens_and_one_more(bundled: Gateway) -> None:
    """What lm-evaluation-harness asks: it drops the last token and scores those before it."""
    for prompt in PROMPTS:
        asked = {"echo": True, "logprobs": 1, "seed": 1}
        scored, alone = [
            (await bundled.complete(prompt, max_tokens=tokens, **asked))["choices"][0]["logprobs"] for tokens in (1, 0)
        ]
        assert len(scored["tokens"]) == len(alone["tokens"]) + 1, prompt
        assert scored["tokens"][:-1] == alone["tokens"]
        assert scored["token_logprobs"][1:-1] == pytest.approx(alone["token_logprobs"][1:], abs=1e-3)


async def test_a_bias_can_write_a_bracket(bundled: Gateway) -> None:
    [bare] = bundled.backend.tokenizer.encode("[")
    off: list[dict[str, Any]] = [{"tools": []}, {"api_top_k": 0}]
    for fields in off:
        [choice] = (await bundled.complete("Hello", max_tokens=3, logit_bias={str(bare): 100}, **fields))["choices"]
        assert choice["text"] == "[[["
