"""What an index says of itself. The manifest is written last: a folder without one is no finished index."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from toolformer.model_files.digests import DamagedError, check

MANIFEST_NAME: Final = "manifest.json"
LUCENE_FOLDER: Final = "lucene"
FORMAT: Final = 1
"""Raised whenever what is indexed changes its shape."""

BUILD_COMMAND: Final = "python -m services.wiki_search.index"


class UnusableIndexError(Exception):
    """A folder is not a finished index; the message says why and what to do."""


class Recipe(BaseModel):
    """Everything the content of an index follows from: two indexes of one recipe answer alike."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    source: str
    """`bundled`, or the name of the pages' file or folder."""
    source_digest: str
    passage_words: int
    pyserini: str


class Manifest(BaseModel):
    """A finished index: its recipe, its size and how long it took."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    recipe: Recipe
    pages: int
    passages: int
    malformed_lines: int = 0
    """Lines of the pages' file, or elements of the folder's files, that were left out."""
    build_seconds: float

    def write(self, index: Path) -> None:
        """Declares the folder `index` finished."""
        (index / MANIFEST_NAME).write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")


def read_manifest(index: Path) -> Manifest:
    """The manifest of a finished index.

    Raises:
        UnusableIndexError: there is no index, it was not finished, or another version of this code made it.
    """
    if not index.is_dir():
        raise UnusableIndexError(f"there is no index at {index}; build one: {BUILD_COMMAND} --index {index}")
    try:
        manifest = Manifest.model_validate_json((index / MANIFEST_NAME).read_bytes())
    except FileNotFoundError:
        raise UnusableIndexError(
            f"{index} is not a finished index (it has no {MANIFEST_NAME}); remove it and build it again: "
            f"{BUILD_COMMAND} --index {index}"
        ) from None
    except ValidationError as error:
        raise UnusableIndexError(
            f"{index / MANIFEST_NAME} cannot be read ({error.error_count()} faults); remove {index} and build it again"
        ) from error
    if manifest.recipe.format != FORMAT:
        raise UnusableIndexError(
            f"{index} has format {manifest.recipe.format}, this service reads {FORMAT}; build it again: "
            f"{BUILD_COMMAND} --index {index}"
        )
    return manifest


def check_files(index: Path) -> None:
    """Compare the files of a finished index with their digests.

    Raises:
        UnusableIndexError: one is damaged.
    """
    try:
        check(index)
    except DamagedError as error:
        raise UnusableIndexError(f"{error}; remove {index} and build it again") from error
