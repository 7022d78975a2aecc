"""From a request's JSON to the completions to run: checked against the served model, the tools and the limits."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from inference_gateway.backends.base import Backend
from inference_gateway.completion import Completer
from inference_gateway.core import CompletionRequest, SamplingParams
from inference_gateway.serving.fields import Prompt
from inference_gateway.serving.logprobs import LogprobsWriter
from inference_gateway.serving.protocol import CompletionBody
from inference_gateway.serving.tool_prompting import Context, hidden_ids
from inference_gateway.settings import GatewaySettings
from toolformer.calls_in_text import encode_with_calls
from toolformer.http_api import ApiError
from toolformer.tools import Tool, ToolRegistry, UnknownTool

DEFAULT_MAX_TOKENS: Final = 16
"""OpenAI's default for completions."""

_QUICK_CHARACTERS: Final = 4096
"""Text that is tokenised at once; more would hold up the event loop and goes to a thread."""


@dataclass(frozen=True, slots=True)
class PlannedChoice:
    """A completion to run; ``echo`` is the prompt where the text shall begin with it, and empty otherwise."""

    request: CompletionRequest
    prompt: Prompt
    echo: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The choices in the order of their indices: ``per_prompt`` for the first prompt, then for the second.

    ``logprobs`` writes tokens where log probabilities are wanted; ``token_ids`` says whether ids are.
    """

    model: str
    choices: tuple[PlannedChoice, ...]
    per_prompt: int
    logprobs: LogprobsWriter | None = None
    token_ids: bool = False


async def plan(
    body: CompletionBody,
    completer: Completer,
    settings: GatewaySettings,
    *,
    request_id: str,
    client: str | None = None,
    default_max_tokens: int = DEFAULT_MAX_TOKENS,
) -> Plan:
    """What ``body`` asks for; ``client`` is the name of the key it came with.

    Raises:
        ApiError: 404 for another model; 400 for what this gateway cannot do or the model's length does not hold; 422
            for fields that do not go together, an unknown tool, too many choices, or a token the vocabulary lacks.
    """
    backend = completer.backend
    if misplaced := body.misplaced():
        field, remedy = misplaced
        raise ApiError(422, f"{field!r} {remedy}", param=field)
    _check_tokens(body, backend.tokenizer.vocab_size)
    check_model(body.model, backend)
    scored = bool(body.echo) and body.logprobs is not None
    if scored and not backend.scores_prompts:
        message = (
            "'echo' with 'logprobs' scores the prompt, which the model server behind this gateway is not asked for; "
            "leave out one of the two"
        )
        raise ApiError(400, message, param="echo", code="unsupported_parameter")
    per_prompt = body.n or 1
    wanted = len(body.prompt) * per_prompt
    most = min(settings.max_choices, settings.key_max_requests or settings.max_choices)
    if wanted > most:
        field = "n" if per_prompt > 1 else "prompt"
        message = f"{wanted} choices were asked for (prompts times n); ask for at most {most}"
        raise ApiError(422, message, param=field, code="too_many_choices")
    tools = () if body.plain else _tools(body.tools, completer.registry)
    api_top_k = settings.api_top_k if body.api_top_k is None else body.api_top_k
    max_calls = settings.max_calls if body.max_calls is None else body.max_calls
    max_cost = settings.max_cost if body.max_cost is None else body.max_cost
    prompts_tools = settings.tool_prompting if body.tool_prompting is None else body.tool_prompting
    prompts_tools &= api_top_k > 0 and max_calls > 0
    hidden = hidden_ids(tools, backend.tokenizer) if prompts_tools else ()
    context = Context(backend.max_model_len, len(hidden))
    encoded = await _encode(body.prompt, completer, context)
    limits = [context.max_tokens(len(ids), body.max_tokens, default_max_tokens) for ids in encoded]
    _check_sampling(_sampling(body, 0), min(limits), backend)
    choices = []
    for prompt, ids, max_tokens in zip(body.prompt, encoded, limits, strict=True):
        echo = _text_of(prompt, backend) if body.echo else ""
        for copy in range(per_prompt):
            request = CompletionRequest(
                prompt_ids=hidden + ids,
                max_tokens=max_tokens,
                sampling=_sampling(body, copy),
                stop=body.stop,
                stop_at=body.stop_at,
                include_stop=bool(body.include_stop_str_in_output),
                tools=tuple(tool.name for tool in tools),
                api_top_k=api_top_k,
                max_calls=max_calls,
                max_cost=math.inf if max_cost is None else max_cost,
                tool_timeout=body.tool_timeout,
                timeout=settings.completion_timeout,
                show_calls=body.show_calls is not False,
                date=body.tool_context.date if body.tool_context else None,
                request_id=request_id,
                client=client or "",
                logprobs=body.logprobs,
                prompt_logprobs=scored,
                plain=bool(body.plain),
                early_dispatch=settings.early_dispatch,
                max_repeats=settings.max_repeats,
                hidden=len(hidden),
            )
            choices.append(PlannedChoice(request, prompt, echo))
    writer = None
    if body.logprobs is not None:
        writer = LogprobsWriter(backend.tokenizer, as_ids=bool(body.return_tokens_as_token_ids))
    return Plan(backend.model_name, tuple(choices), per_prompt, writer, bool(body.return_token_ids))


def check_model(name: str | None, backend: Backend) -> None:
    """Whether ``name`` is the served model's.

    Raises:
        ApiError: 404 if it is another's.
    """
    if name not in (None, backend.model_name):
        message = f"there is no model {name[:100]!r}; this gateway serves {backend.model_name!r}"
        raise ApiError(404, message, param="model", code="model_not_found")


def _check_tokens(body: CompletionBody, vocab_size: int) -> None:
    """Whether there are the tokens that fields other than the prompt name."""
    named = [("logit_bias", str(token), token) for token, _ in body.logit_bias]
    named += [("stop_token_ids", str(at), token) for at, token in enumerate(body.stop_token_ids or ())]
    for field, place, token in named:
        if not 0 <= token < vocab_size:
            message = f"{field!r}: there is no token {_shown(token)}; the model's are 0 to {vocab_size - 1}"
            raise ApiError(422, message, param=f"{field}.{place}", code="unknown_token")


def _check_sampling(sampling: SamplingParams, max_tokens: int, backend: Backend) -> None:
    """Whether the backend takes what ``sampling`` asks for."""
    if sampling.min_tokens > max_tokens:
        message = (
            f"'min_tokens' ({sampling.min_tokens}) is more than the {max_tokens} that may be made; raise 'max_tokens'"
        )
        raise ApiError(422, message, param="min_tokens")
    if missing := sorted(sampling.optional - backend.sampling_fields):
        message = f"{missing[0]!r} is not taken by the model server behind this gateway; leave it out"
        raise ApiError(400, message, param=missing[0], code="unsupported_parameter")


def _tools(names: Sequence[str] | None, registry: ToolRegistry) -> tuple[Tool, ...]:
    try:
        return registry.select(names)
    except UnknownTool as unknown:
        raise ApiError(422, str(unknown), param="tools", code="unknown_tool") from unknown


async def _encode(prompts: Sequence[Prompt], completer: Completer, context: Context) -> list[tuple[int, ...]]:
    """The ids of each prompt."""
    tokenizer, tools = completer.backend.tokenizer, completer.registry

    def ids_of(prompt: str) -> list[int]:
        if context.hidden:
            return encode_with_calls(prompt, tokenizer, tools)
        if tokenizer.marks.special:
            return [*tokenizer.encode_prompt(""), *encode_with_calls(prompt, tokenizer, tools)]
        return tokenizer.encode_prompt(prompt)

    def encode_all() -> list[tuple[int, ...]]:
        return [tuple(ids_of(prompt)) if isinstance(prompt, str) else prompt for prompt in prompts]

    for number, prompt in enumerate(prompts):
        if isinstance(prompt, str):
            if (fewest := tokenizer.fewest_tokens(prompt)) >= context.left:
                raise context.too_long(f"{fewest:,} or more")
        else:
            check_ids(prompt, tokenizer.vocab_size, f"prompt.{number}" if len(prompts) > 1 else "prompt")
    if sum(len(prompt) for prompt in prompts if isinstance(prompt, str)) > _QUICK_CHARACTERS:
        return await asyncio.to_thread(encode_all)
    return encode_all()


def check_ids(ids: Sequence[int], vocab_size: int, name: str) -> None:
    """Whether there are the tokens ``ids`` of the field ``name``.

    Raises:
        ApiError: 422 if there are not.
    """
    if not ids or (min(ids) >= 0 and max(ids) < vocab_size):
        return
    index, token = next((index, token) for index, token in enumerate(ids) if not 0 <= token < vocab_size)
    message = (
        f"'{name}': there is no token {_shown(token)}, as index {index} has it; the model's are 0 to {vocab_size - 1}"
    )
    raise ApiError(422, message, param=f"{name}.{index}", code="unknown_token")


def _shown(token: int) -> int | str:
    return token if abs(token) < 10**12 else "so large a number"


def _sampling(body: CompletionBody, copy: int) -> SamplingParams:
    """How choice number ``copy`` of a prompt is sampled: with the same seed all of them would be the same text."""
    return SamplingParams(
        temperature=body.temperature or 0.0,
        top_p=1.0 if body.top_p is None else body.top_p,
        top_k=max(0, body.top_k or 0),
        seed=None if body.seed is None else _wrapped(body.seed + copy),
        frequency_penalty=body.frequency_penalty or 0.0,
        presence_penalty=body.presence_penalty or 0.0,
        logit_bias=body.logit_bias,
        repetition_penalty=1.0 if body.repetition_penalty is None else body.repetition_penalty,
        min_p=body.min_p or 0.0,
        min_tokens=body.min_tokens or 0,
        ignore_eos=bool(body.ignore_eos),
        stop_token_ids=tuple(body.stop_token_ids or ()),
    )


def _wrapped(seed: int) -> int:
    """``seed`` as a signed number of 64 bits, which is what generators take."""
    return (seed + 2**63) % 2**64 - 2**63


def _text_of(prompt: Prompt, backend: Backend) -> str:
    if isinstance(prompt, str):
        return prompt
    return backend.tokenizer.decode_prompt(prompt)
