"""A model on disk: retriever, reader, and the settings they were trained with.

MODEL/atlas.json                                      this project's: settings, and each file's size and digest
MODEL/retriever/{config.json,model.safetensors,tokenizer.json}     Contriever, as Hugging Face stores a BERT
MODEL/passage_retriever/...                           only where passages have an encoder of their own
MODEL/reader/{config.json,model*.safetensors,tokenizer.json}       a T5, as Hugging Face stores one
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from tokenizers import Tokenizer
from torch import Tensor

from services.question_answering.bert import Bert, BertConfig
from services.question_answering.reader import Reader
from services.question_answering.retriever import Retriever
from services.question_answering.shown import NAME
from services.question_answering.t5 import T5, T5Config
from services.question_answering.weights import WeightsError, load_weights, save_weights
from toolformer.model_files.digests import AT_START, DamagedError, check, file_digest
from toolformer.model_files.whole import write_whole

SETTINGS_FILE: Final = "atlas.json"
RETRIEVER: Final = "retriever"
PASSAGE_RETRIEVER: Final = "passage_retriever"
READER: Final = "reader"
FORMAT: Final = 1
_REMEDY: Final = "copy or make the model again"

Precision = Literal["float32", "bfloat16"]


class ModelError(Exception):
    """A model cannot be used; the message says which file and what to do."""


class FileEntry(BaseModel):
    """One file of a model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bytes: int
    sha256: str


class ModelSettings(BaseModel):
    """What a model was trained with, and the files it consists of."""

    model_config = ConfigDict(frozen=True)  # unknown fields are an earlier version's

    format: Literal[1] = FORMAT
    origin: str
    """Where it comes from, for people."""
    passages: int = Field(ge=1)
    """Passages the reader is given for a question (Atlas' ``n_context``)."""
    max_tokens: int = Field(ge=8)
    """Tokens of one text, for retriever and reader; the rest is cut off."""
    max_answer_tokens: int = Field(ge=1)
    passage_words: int = Field(100, ge=1)
    """Words at which pages are cut into passages for this model."""
    min_score: float = Field(0.0, ge=0.0, le=1.0)
    """An answer that the reader is less sure of is none."""
    marked: bool = False
    """Whether the reader is shown which words of a passage the question has too, and names and numbers
    (`shown.py`)."""
    sentences: int = Field(0, ge=0)
    """Sentences of the passages that the reader reads, each by itself (`nearest.py`); 0: the passages whole."""
    files: dict[str, FileEntry] = {}

    @property
    def retriever_digest(self) -> str:
        """Names the encoder that embeds passages: an index belongs to one."""
        folder = PASSAGE_RETRIEVER if any(name.startswith(PASSAGE_RETRIEVER) for name in self.files) else RETRIEVER
        entries = sorted((name, file.sha256) for name, file in self.files.items() if name.startswith(f"{folder}/"))
        return hashlib.sha256(repr((entries, self.max_tokens)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Model:
    """A loaded model."""

    settings: ModelSettings
    retriever: Retriever
    reader: Reader


def write_part(folder: Path, model: Bert | T5, tokenizer: Tokenizer, weights: Mapping[str, Tensor]) -> None:
    """Write one network with ``weights``, in half precision, into ``folder``, in place of what is there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model.config.write(folder / "config.json")
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    save_weights(folder, weights, torch.float16)


def write_settings(folder: Path, settings: ModelSettings) -> ModelSettings:
    """Declare the files in ``folder`` a finished model; returns the settings with the files' sizes and digests."""
    parts = (RETRIEVER, PASSAGE_RETRIEVER, READER)
    files = {
        path.relative_to(folder).as_posix(): FileEntry(bytes=path.stat().st_size, sha256=file_digest(path))
        for part in parts
        for path in sorted((folder / part).glob("*"))
        if path.is_file() and not path.name.endswith(".partial")
    }
    finished = settings.model_copy(update={"files": files})
    write_whole(folder / SETTINGS_FILE, finished.model_dump_json(indent=2) + "\n")
    return finished


def read_settings(folder: Path) -> ModelSettings:
    """The settings of a model whose files are all there with the right size.

    Raises:
        ModelError: there is none, it is unfinished, or a file is missing or cut short.
    """
    try:
        settings = ModelSettings.model_validate_json((folder / SETTINGS_FILE).read_bytes())
    except FileNotFoundError:
        raise ModelError(f"{folder} is not a finished model: it has no {SETTINGS_FILE}") from None
    except (OSError, ValidationError) as error:
        reason = f"{error.error_count()} faults" if isinstance(error, ValidationError) else error.strerror
        raise ModelError(f"{folder / SETTINGS_FILE} cannot be read ({reason}); make the model again") from error
    for name, file in settings.files.items():
        path = folder / name
        found = path.stat().st_size if path.is_file() else None
        if found != file.bytes:
            state = "is missing" if found is None else f"has {found:,} bytes"
            raise ModelError(f"{path} {state}; it should have {file.bytes:,} bytes: copy or make the model again")
    return settings


def verify(folder: Path, *, at_most: int | None = None) -> ModelSettings:
    """Read every file of a model, those of up to ``at_most`` bytes, and compare its digest.

    Raises:
        ModelError: see `read_settings`; or a file's content has changed.
    """
    settings = read_settings(folder)
    try:
        check(folder, {name: file.sha256 for name, file in settings.files.items()}, at_most=at_most)
    except DamagedError as error:
        raise ModelError(f"{error}; {_REMEDY}") from error
    return settings


def load_model(
    folder: Path, *, device: str = "cpu", precision: Precision = "float32", with_reader: bool = True
) -> Model:
    """The model in ``folder``, ready to answer.

    Args:
        folder: what `write_settings` finished.
        device: where it computes, as torch names it.
        precision: of its weights and states; scores are float32 in any case.
        with_reader: without it only the retriever is loaded, and ``reader`` may not be used.

    Raises:
        ModelError: see `verify`, which reads files up to `AT_START`; or a file's content cannot be used.
    """
    settings = verify(folder, at_most=AT_START)
    try:
        place, dtype = torch.device(device), getattr(torch, precision)
        queries = _bert(folder / RETRIEVER, dtype, place)
        own_passages = (folder / PASSAGE_RETRIEVER).is_dir()
        retriever = Retriever(
            queries,
            _tokenizer(folder / RETRIEVER),
            max_tokens=min(settings.max_tokens, queries.config.positions),
            passage_encoder=_bert(folder / PASSAGE_RETRIEVER, dtype, place) if own_passages else None,
        )
        reader = _reader(folder / READER, settings, place, dtype, empty=not with_reader)
    except (WeightsError, ValueError, OSError, RuntimeError) as error:
        raise ModelError(f"the model at {folder} cannot be loaded: {error}; {_REMEDY}") from error
    return Model(settings, retriever, reader)


def load_reader(folder: Path, *, device: str = "cpu", precision: Precision = "float32") -> tuple[ModelSettings, Reader]:
    """The reader of the model in ``folder``, which may have no retriever. Arguments and errors: see `load_model`."""
    settings = verify(folder, at_most=AT_START)
    try:
        return settings, _reader(folder / READER, settings, torch.device(device), getattr(torch, precision))
    except (WeightsError, ValueError, OSError, RuntimeError) as error:
        raise ModelError(f"the model at {folder} cannot be loaded: {error}; {_REMEDY}") from error


def _reader(
    folder: Path, settings: ModelSettings, device: torch.device, dtype: torch.dtype, *, empty: bool = False
) -> Reader:
    with torch.device("meta"):
        t5 = T5(T5Config.read(folder / "config.json"))
    if not empty:
        load_weights(folder, t5, dtype=dtype, device=device)
    tokenizer = _tokenizer(folder)
    if settings.marked and tokenizer.token_to_id(NAME) is None:
        raise ValueError(f"marked is set, but tokenizer.json has no {NAME}")
    return Reader(
        t5, tokenizer, max_tokens=settings.max_tokens, max_answer_tokens=settings.max_answer_tokens,
        marked=settings.marked,
        sentences=settings.sentences,
    )  # fmt: skip


def _bert(folder: Path, dtype: torch.dtype, device: torch.device) -> Bert:
    config = BertConfig.read(folder / "config.json")
    with torch.device("meta"):
        bert = Bert(config)
    return load_weights(folder, bert, dtype=dtype, device=device)


def _tokenizer(folder: Path) -> Tokenizer:
    path = folder / "tokenizer.json"
    try:
        tokenizer: Tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises bare exceptions of its own
        raise ModelError(f"{path} is not a tokenizer ({error}); {_REMEDY}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
