"""A gateway in front of a gateway: the second has no model, and completes as the first one's engine does by itself."""

import copy
import functools
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from inference_gateway.app import create_app
from inference_gateway.backends.local import LocalBackend
from inference_gateway.backends.model_server import ServerAddress
from inference_gateway.backends.openai import OpenAIServer
from inference_gateway.backends.remote import RemoteBackend, RemoteLimits
from inference_gateway.completion import Completer
from inference_gateway.core import SamplingParams
from inference_gateway.engine.limits import EngineLimits
from inference_gateway.serving.planning import plan
from inference_gateway.serving.protocol import CompletionBody
from inference_gateway.settings import BUNDLED_MODEL, GatewaySettings
from language_model import checkpoint
from language_model.gptj import GPTJ
from language_model.tokenizer import ByteLevelTokenizer
from services.calculator.app import build_app as calculator
from services.calendar.app import build_app as calendar
from tests.inference_gateway.backend_harness import NO_CIRCUIT, Completed, run_prompt
from tests.inference_gateway.http_harness import serving, tools_at
from tests.support.marked_checkpoint import move_marks
from tests.support.models import SMALL, random_model
from tests.support.vocabularies import marked_tokenizer, small_tokenizer
from toolformer.http_api import ApiError
from toolformer.tool_client import ToolClient

PROMPTS: Final = [
    "There are 24 boxes with 17 books each. How many books are there altogether? The answer is",
    "Today is",
    "The capital of Peru is",
    "A train with 13 cars of 42 seats has",
]


SAMPLED: Final[list[dict[str, Any]]] = [
    {},
    {"repetition_penalty": 1.6},
    {"repetition_penalty": 1.2, "min_tokens": 30, "stop_token_ids": tuple(range(100, 140))},
    {"stop_token_ids": tuple(range(10, 150, 2))},
    {"ignore_eos": True, "repetition_penalty": 3.0},
]


@functools.cache
def bundled_model() -> GPTJ:
    """Loaded once: both gateways only read it."""
    return checkpoint.load(BUNDLED_MODEL)


def bundled() -> LocalBackend:
    tokenizer = ByteLevelTokenizer.from_pretrained(BUNDLED_MODEL)
    return LocalBackend(bundled_model(), tokenizer, "bundled", EngineLimits(max_model_len=256, max_sequences=4))


def random(tokenizer: ByteLevelTokenizer | None = None, *, seed: int = 0, opening: float = 1) -> LocalBackend:
    """Random weights, leaning to what begins a call (by ``opening`` nats) and to what breaks it off."""
    tokenizer = tokenizer or small_tokenizer()
    # A model whose vocabulary is padded may choose an id that no text has; a trained one never does.
    model = copy.deepcopy(random_model(replace(SMALL, vocab_size=tokenizer.vocab_size), seed))
    model.lm_head.bias.data[[tokenizer.encode(text)[0] for text in ("1", " ", "(", ".", "-")]] += 1
    model.lm_head.bias.data[list(tokenizer.marks.opening)] += opening
    return LocalBackend(model, tokenizer, "random", EngineLimits(max_model_len=200, max_sequences=4))


def marked() -> LocalBackend:
    """The same with special tokens for a call's marks; one token has to begin all calls."""
    return random(marked_tokenizer(), seed=1, opening=3)


@dataclass(frozen=True)
class Chain:
    """``alone``: the engine in this process; ``chained``: a gateway that serves the same, and this one in front."""

    alone: Completer
    chained: Completer

    async def agree(self, prompt: str, **fields: Any) -> Completed:
        """What both return, which must be one and the same."""
        wanted: dict[str, Any] = {
            "tools": ("Calculator", "Calendar"),
            "tokenizer": self.alone.backend.tokenizer,
        } | fields
        expected = await run_prompt(self.alone, prompt, **wanted)
        result = await run_prompt(self.chained, prompt, **wanted)
        assert (result.text, result.ids, result.calls) == (expected.text, expected.ids, expected.calls), prompt
        assert result.end == expected.end, prompt
        return result


@asynccontextmanager
async def chain(load: Callable[[], LocalBackend]) -> AsyncIterator[Chain]:
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        urls = {"Calculator": await enter(serving(calculator())), "Calendar": await enter(serving(calendar()))}
        tools = tools_at(urls)
        client = await enter(ToolClient(tools, NO_CIRCUIT))
        alone = load()
        url = await enter(serving(create_app(load, tools_at({}), GatewaySettings())))
        server = OpenAIServer(ServerAddress(url), alone.tokenizer)
        limits = RemoteLimits(max_model_len=alone.max_model_len, probe_seconds=0.05)
        chained = RemoteBackend(server, alone.tokenizer, alone.vocabulary, limits)
        for backend in (alone, chained):
            await backend.start()
            stack.push_async_callback(backend.stop)
        while not chained.ready():
            await chained._look()
        assert chained.model_name == alone.model_name
        assert [notice for notice in chained.notices if "at most 20" not in notice] == []
        yield Chain(Completer(alone, tools, client), Completer(chained, tools, client))


async def test_the_bundled_model_calls_its_tools_through_a_second_gateway() -> None:
    async with chain(bundled) as both:
        results = [await both.agree(prompt, max_tokens=40) for prompt in PROMPTS]
        assert sum(len(one.calls) for one in results) >= 2
        hidden = await both.agree(PROMPTS[0], max_tokens=40, show_calls=False)
        assert "[" not in hidden.text


async def test_special_marks_come_through_a_second_gateway(tmp_path: Path) -> None:
    marked = move_marks(BUNDLED_MODEL, tmp_path / "model")
    limits = EngineLimits(max_model_len=256, max_sequences=4)
    async with chain(lambda: LocalBackend.load(marked, limits=limits)) as both:
        results = [await both.agree(prompt, max_tokens=40) for prompt in PROMPTS]
        assert sum(len(one.calls) for one in results) >= 2
        assert both.alone.backend.tokenizer.marks.opening[0] in results[0].ids


async def test_a_prompt_that_only_the_first_gateway_can_score_is_refused_by_the_second() -> None:
    body = CompletionBody.model_validate({"prompt": "Text", "echo": True, "logprobs": 1})
    async with chain(random) as both:
        planned = await plan(body, both.alone, GatewaySettings(), request_id="scored")
        assert planned.choices[0].request.prompt_logprobs
        with pytest.raises(ApiError, match="leave out one of the two") as refused:
            await plan(body, both.chained, GatewaySettings(), request_id="scored")
    assert (refused.value.status, refused.value.param, refused.value.code) == (400, "echo", "unsupported_parameter")


@pytest.mark.parametrize("load", [random, marked])
@pytest.mark.parametrize("api_top_k", [0, 1, 3, 10])
async def test_any_text_of_a_random_model_is_the_same(api_top_k: int, load: Callable[[], LocalBackend]) -> None:
    """Calls begin and fail all the time here, so that bans, rollbacks and penalties meet at every place."""
    async with chain(load) as both:
        sampling = SamplingParams(frequency_penalty=1.0)
        fields: dict[str, Any] = {"api_top_k": api_top_k, "sampling": sampling, "max_tokens": 40, "max_calls": 4}
        results = [await both.agree(f"Text {37 * number} begins", **fields) for number in range(4)]
        assert len({one.text for one in results}) > 2
        assert any(one.end.usage.rolled_back_tokens for one in results) is (api_top_k > 0)


async def test_vllm_s_sampling_fields_pass_to_the_first_gateway() -> None:
    async with chain(random) as both:
        [usual, *changed] = [
            await both.agree("A text begins", sampling=SamplingParams(**fields), max_tokens=40, max_calls=4)
            for fields in SAMPLED
        ]
        assert [SAMPLED[at + 1] for at, result in enumerate(changed) if result.text == usual.text] == []


async def test_a_seed_draws_the_same_as_long_as_nothing_is_cut() -> None:
    async with chain(random) as both:
        drawn = set()
        for seed in range(6):
            sampling = SamplingParams(temperature=0.8, top_p=0.9, seed=seed)
            result = await both.agree("A text begins", sampling=sampling, tools=(), max_tokens=30)
            drawn.add(result.text)
        assert len(drawn) > 1
