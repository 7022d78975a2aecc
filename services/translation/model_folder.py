"""What a converted model's folder holds, and the manifest that says it is whole. The manifest is written last."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolformer.model_files.digests import DamagedError, check

MANIFEST_NAME: Final = "translation.json"
WEIGHTS_NAME: Final = "model.bin"
TOKENIZER_NAME: Final = "tokenizer.json"
LANGUAGE_ID_NAME: Final = "lid.ftz"
"""The bundled classifier's name where it lies beside a model."""
FORMAT: Final = 1
"""Raised whenever a folder's files change their meaning."""

_FILES: Final = (WEIGHTS_NAME, "config.json", "shared_vocabulary.json", TOKENIZER_NAME)
REMEDY: Final = "make it with python -m services.translation.convert --model CHECKPOINT --out"
"""For the end of a message, followed by the folder."""


class UnusableModelError(Exception):
    """A file or folder cannot be used as a model; the message says which, why and what to do."""


class ModelManifest(BaseModel):
    """What a model folder says of itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    checkpoint: str = Field(description="What was converted: the last part of its name or folder.")
    quantization: str = Field(description="How CTranslate2 stores the weights, such as int8.")
    model_bytes: int = Field(description="Size of model.bin, by which a torn copy is noticed.")
    max_tokens: int = Field(ge=8, description="Tokens the model can read or write at a time.")
    beam_size: int = Field(ge=1, description="The beam it translates best with; 1 is greedy.")
    source_languages: tuple[str, ...] = Field(description="FLORES-200 codes it translates from.")
    min_score: float = Field(0.0, ge=0, le=1, description="A translation with a lower score is none; 0: each is one.")

    def write(self, folder: Path) -> None:
        """Declares `folder` finished."""
        (folder / MANIFEST_NAME).write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> ModelManifest:
    """The manifest of a finished model folder.

    Raises:
        UnusableModelError: there is no folder, it was not finished, a file is missing, torn or damaged.
    """
    if not folder.is_dir():
        raise UnusableModelError(f"there is no model folder at {folder}; {REMEDY} {folder}")
    try:
        manifest = ModelManifest.model_validate_json((folder / MANIFEST_NAME).read_bytes())
    except FileNotFoundError:
        raise UnusableModelError(
            f"{folder} is not a finished model folder (it has no {MANIFEST_NAME}); {REMEDY} {folder}"
        ) from None
    except ValidationError as error:
        raise UnusableModelError(
            f"{folder / MANIFEST_NAME} cannot be read ({error.error_count()} faults); {REMEDY} {folder}"
        ) from error
    if manifest.format != FORMAT:
        raise UnusableModelError(
            f"{folder} has format {manifest.format}, this service reads {FORMAT}; {REMEDY} {folder}"
        )
    for name in _FILES:
        if not (folder / name).is_file():
            raise UnusableModelError(f"{folder} lacks {name}; {REMEDY} {folder}")
    size = (folder / WEIGHTS_NAME).stat().st_size
    if size != manifest.model_bytes:
        raise UnusableModelError(
            f"{folder / WEIGHTS_NAME} has {size:,} bytes where its manifest says {manifest.model_bytes:,}: the copy is "
            f"torn; copy it again, or {REMEDY} {folder}"
        )
    try:
        check(folder)
    except DamagedError as error:
        raise UnusableModelError(f"{error}; copy it again, or {REMEDY} {folder}") from error
    return manifest
