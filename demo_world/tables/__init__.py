"""Tables of words and sentences: TOML files beside this one, each read once into typed objects."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

TableT = TypeVar("TableT")


def read(name: str, kind: type[TableT]) -> TableT:
    """The table in the file ``name``.toml as a ``kind``: a dataclass, or a mapping of them.

    Raises:
        ValidationError: the file lacks something, or has something that ``kind`` has no place for.
    """
    file = resources.files(__name__) / f"{name}.toml"
    try:
        return TypeAdapter(kind).validate_python(tomllib.loads(file.read_text(encoding="utf-8")), extra="forbid")
    except ValidationError as error:
        error.add_note(f"in {file}")
        raise
