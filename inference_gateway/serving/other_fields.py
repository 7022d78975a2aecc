"""Fields of OpenAI's, vLLM's and llama.cpp's completions that this gateway has no use for.

Clients send them with a value that changes nothing, so that value is taken. Any other value asks for what the gateway
cannot do, and is refused by name with a remedy; ``other_fields.toml`` has both. A name that nobody knows is refused as
well, with one it may be meant for: a misspelt field must not pass in silence.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toolformer.http_api import ApiError
from toolformer.http_api.errors import LONGEST_PARAM

_TABLE: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

IGNORED: Final = frozenset[str](_TABLE["ignored"])
"""These say something of the request or are a wish; whatever they hold, the text is the same."""


@dataclass(frozen=True, slots=True)
class _Neutral:
    """``values`` change nothing, as ``null`` does; for another one ``remedy`` is what to do."""

    values: tuple[object, ...]
    remedy: str


NEUTRAL: Final[Mapping[str, _Neutral]] = {
    field: _Neutral(tuple(entry["values"]), entry["remedy"]) for entry in _TABLE["neutral"] for field in entry["fields"]
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
