"""Fields of OpenAI's, vLLM's and llama.cpp's completions that this gateway has no use for.

Clients send them with a value that changes nothing, so that value is taken. Any other value asks for what the gateway
cannot do, and is refused by name with a remedy. A name that nobody knows is refused as well, with one it may be meant
for: a misspelt field must not pass in silence.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolformer.http_api import ApiError
from toolformer.http_api.errors import LONGEST_PARAM

IGNORED: Final = frozenset(
    {
        "metadata",
        "parallel_tool_calls",
        "priority",
        "prompt_cache_key",
        "prompt_cache_retention",
        "request_id",
        "safety_identifier",
        "service_tier",
        "spaces_between_special_tokens",
        "store",
        "user",
    }
)
"""These say something of the request or are a wish; whatever they hold, the text is the same."""


@dataclass(frozen=True, slots=True)
class _Neutral:
    """``values`` change nothing, as ``null`` does; for another one ``remedy`` is what to do."""

    values: tuple[object, ...]
    remedy: str


_LEAVE_OUT: Final = "leave it out"
_GUIDED: Final = _Neutral((), "the text follows no grammar; ask for the form in the prompt and check what comes")
_PLAIN: Final = _Neutral(({"type": "text"},), _GUIDED.remedy)
_CHOOSES: Final = "the model itself chooses when to call; name the tools it may call in 'tools'"

NEUTRAL: Final[Mapping[str, _Neutral]] = {
    "suffix": _Neutral(("",), "the model completes a text's end, not its middle; leave it out"),
    "tool_choice": _Neutral(("auto", "none"), _CHOOSES),
    "functions": _Neutral(([],), _CHOOSES),
    "function_call": _Neutral(("auto", "none"), _CHOOSES),
    "response_format": _PLAIN,
    "structured_outputs": _GUIDED,
    "json_schema": _GUIDED,
    "grammar": _GUIDED,
    "guided_json": _GUIDED,
    "guided_regex": _GUIDED,
    "guided_choice": _GUIDED,
    "guided_grammar": _GUIDED,
    "guided_decoding_backend": _GUIDED,
    "guided_whitespace_pattern": _GUIDED,
    "use_beam_search": _Neutral((False,), "there is no beam search; ask for several choices with 'n'"),
    "length_penalty": _Neutral((1,), "it belongs to beam search; leave it out"),
    "early_stopping": _Neutral((False,), "it belongs to beam search; leave it out"),
    "typical_p": _Neutral((1,), "use 'top_p' or 'min_p'"),
    "mirostat": _Neutral((0,), "use 'top_p' or 'min_p'"),
    "repeat_penalty": _Neutral((1,), "use 'repetition_penalty'"),
    "n_predict": _Neutral((), "use 'max_tokens'"),
    "max_completion_tokens": _Neutral((), "use 'max_tokens'"),
    "logits_processors": _Neutral(([],), "use 'logit_bias'"),
    "allowed_token_ids": _Neutral((), "use 'logit_bias'"),
    "bad_words": _Neutral(([],), "use 'logit_bias'"),
    "prompt_logprobs": _Neutral((), "use 'echo' with 'logprobs'"),
    "prompt_embeds": _Neutral((), "send the prompt as text or token ids"),
    "truncate_prompt_tokens": _Neutral((), "shorten the prompt"),
    "add_special_tokens": _Neutral(
        (False,), "the prompt is taken as it is; send token ids to begin it with a special one"
    ),
    "skip_special_tokens": _Neutral((True,), "ask for 'return_token_ids' to see them"),
    "detokenize": _Neutral((True,), "ask for 'return_token_ids' to have ids as well"),
    "cache_salt": _Neutral((), "cached beginnings are shared by all clients; leave it out"),
    "modalities": _Neutral((["text"],), "answers are text"),
    "add_generation_prompt": _Neutral((True,), _LEAVE_OUT),
    "continue_final_message": _Neutral((False,), _LEAVE_OUT),
    "chat_template": _Neutral((), "the operator sets it; render the messages yourself and send POST /v1/completions"),
    "chat_template_kwargs": _Neutral(({},), _LEAVE_OUT),
    "kv_transfer_params": _Neutral(({},), _LEAVE_OUT),
    "vllm_xargs": _Neutral(({},), _LEAVE_OUT),
}


def without_others(body: Mapping[str, Any], own: Collection[str]) -> dict[str, Any]:
    """``body`` with the gateway's ``own`` fields and those that nobody knows, which are for the caller to refuse.

    Raises:
        ApiError: 400 for a value that asks for what cannot be done, 422 for a name close to one of ``own``.
    """
    for name, neutral in NEUTRAL.items():
        value = None if name in own else body.get(name)
        if value is not None and not any(_same(value, one) for one in neutral.values):
            raise _unsupported(name, neutral.remedy)
    best_of, n = body.get("best_of"), body.get("n")
    if best_of is not None and best_of != 1 and best_of != n:
        raise _unsupported("best_of", f"every choice made is returned; send the same as n ({n or 1}) or leave it out")
    others = (IGNORED | NEUTRAL.keys() | {"best_of"}) - set(own)
    rest = {name: value for name, value in body.items() if name not in others}
    unknown = next((name for name in rest if name not in own), "")
    if close := difflib.get_close_matches(unknown[:LONGEST_PARAM], own, n=1):
        message = f"{unknown[:LONGEST_PARAM]!r} is not a known field; did you mean {close[0]!r}?"
        raise ApiError(422, message, param=unknown[:LONGEST_PARAM])
    return rest


def _same(value: object, neutral: object) -> bool:
    """Whether two JSON values are one; ``true`` is not 1."""
    return value == neutral and isinstance(value, bool) == isinstance(neutral, bool)


def _unsupported(name: str, remedy: str) -> ApiError:
    return ApiError(
        400, f"{name!r} is not supported with this value: {remedy}", param=name, code="unsupported_parameter"
    )
