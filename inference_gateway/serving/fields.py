"""Fields of a completion request whose JSON takes more than one form, read with one clear message each.

A union of types would answer a wrong value with one message a form; what a client wants is the list of forms.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Final

from pydantic import PlainValidator, WithJsonSchema

Prompt = str | tuple[int, ...]
"""One prompt: a text, or the ids of its tokens."""

MAX_PROMPTS: Final = 1_024
MAX_TOOLS: Final = 256
MAX_STOP_STRINGS: Final = 4
MAX_STOP_TOKENS: Final = 64
MAX_STOP_CHARACTERS: Final = 256
MAX_BIAS: Final = 100
MAX_BIASED_TOKENS: Final = 1024
_FORMS: Final = "must be a string, a list of strings, a list of token ids or a list of such lists"


def _read_prompts(value: Any) -> tuple[Prompt, ...]:
    if isinstance(value, list) and value and not all(map(_is_token_id, value)):
        if len(value) > MAX_PROMPTS:
            raise ValueError(f"holds {len(value):,} prompts; send at most {MAX_PROMPTS:,} at a time")
        return tuple(map(_read_prompt, value))
    return (_read_prompt(value),)


def _read_prompt(value: Any) -> Prompt:
    if isinstance(value, str):
        if not value:
            raise ValueError("a prompt must not be empty: send at least one character")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("a prompt holds half of a surrogate pair; send whole characters") from None
        return value
    if isinstance(value, list):
        if not value:
            raise ValueError("a prompt must not be empty: send at least one token")
        if all(map(_is_token_id, value)):
            return tuple(value)
    raise ValueError(_FORMS)


def _is_token_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _read_stops(value: Any) -> tuple[str, ...]:
    stops = [] if value is None else value if isinstance(value, list) else [value]
    if len(stops) > MAX_STOP_STRINGS or not all(isinstance(stop, str) for stop in stops):
        raise ValueError(f"must be a string or a list of at most {MAX_STOP_STRINGS} strings")
    if not all(0 < len(stop) <= MAX_STOP_CHARACTERS for stop in stops):
        raise ValueError(f"a stop string must have 1 to {MAX_STOP_CHARACTERS} characters")
    return tuple(stops)


def _read_bias(value: Any) -> tuple[tuple[int, float], ...]:
    if value is None:
        return ()
    if not isinstance(value, dict) or len(value) > MAX_BIASED_TOKENS:
        raise ValueError(f"must be an object of at most {MAX_BIASED_TOKENS} token ids (as strings) and their biases")
    biases = []
    for token, bias in value.items():
        if not re.fullmatch(r"[0-9]{1,9}", token):
            raise ValueError(f"{token[:40]!r} is no token id; name tokens by their ids, as in {{'50256': -100}}")
        if isinstance(bias, bool) or not isinstance(bias, int | float) or math.isnan(bias) or abs(bias) > MAX_BIAS:
            raise ValueError(f"the bias of token {token} must be a number from -{MAX_BIAS} to {MAX_BIAS}")
        biases.append((int(token), float(bias)))
    return tuple(biases)


def refuse_functions(value: Any) -> Any:
    """``value`` unless it is tools in the form of OpenAI's chat API, where the field has another meaning.

    Raises:
        ValueError: if it is.
    """
    if isinstance(value, list) and value and isinstance(value[0], dict):
        raise ValueError(
            'must be a list of names, such as ["Calculator"], and not of functions: the gateway calls '
            "the tools itself; GET /v1/tools lists them"
        )
    return value


_TOKEN_IDS: Final[dict[str, Any]] = {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0}}

_PROMPT_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "array", "minItems": 1, "items": {"anyOf": [{"type": "string", "minLength": 1}, _TOKEN_IDS]}},
        _TOKEN_IDS,
    ]
}
_STOP: Final[dict[str, Any]] = {"type": "string", "minLength": 1, "maxLength": MAX_STOP_CHARACTERS}
_STOP_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [_STOP, {"type": "array", "maxItems": MAX_STOP_STRINGS, "items": _STOP}, {"type": "null"}]
}
_BIAS_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [
        {
            "type": "object",
            "maxProperties": MAX_BIASED_TOKENS,
            "propertyNames": {"pattern": "^[0-9]{1,9}$"},
            "additionalProperties": {"type": "number", "minimum": -MAX_BIAS, "maximum": MAX_BIAS},
        },
        {"type": "null"},
    ]
}

Prompts = Annotated[tuple[Prompt, ...], PlainValidator(_read_prompts), WithJsonSchema(_PROMPT_SCHEMA)]
"""At least one prompt."""

Stops = Annotated[tuple[str, ...], PlainValidator(_read_stops), WithJsonSchema(_STOP_SCHEMA)]
"""Stop strings, perhaps none."""

LogitBias = Annotated[tuple[tuple[int, float], ...], PlainValidator(_read_bias), WithJsonSchema(_BIAS_SCHEMA)]
"""Token ids and what is added to their logits, perhaps none. The ids may lie outside the vocabulary."""
