"""``config.json`` of a model: a JSON object whose sizes can be.

A size is looked at before anything is made of it: a model of 10^9 layers would take hours to refuse its weights.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

MOST: Final[Mapping[str, int]] = {"layers": 10_000, "width": 1 << 20, "tokens": 1 << 28}
"""The largest size of each kind; published models are a tenth of it or less."""


class ConfigError(ValueError):
    """A configuration cannot be used; the message names file or field."""


def read_config(path: Path) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        ConfigError: it is none.
        OSError: it cannot be read.
    """
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ConfigError(f"{path} holds no JSON object")
    return fields


def require_sizes(fields: Mapping[str, Any], kinds: Mapping[str, Iterable[str]]) -> None:
    """Refuse what is no whole number between 1 and the most that its kind (of `MOST`) can be.

    Raises:
        ConfigError: naming the first such field.
    """
    for kind, names in kinds.items():
        for name in names:
            value = fields[name]
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST[kind]:
                shown = str(value)[:40]
                raise ConfigError(f"{name} is {shown!r}; it must be a whole number from 1 to {MOST[kind]:,}")


def require_number(name: str, value: Any) -> None:
    """Refuse what is no number between 0 and 1, such as a norm's epsilon must be.

    Raises:
        ConfigError: naming the field.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise ConfigError(f"{name} is {str(value)[:40]!r}; it must be a number from 0 to below 1")
