"""Sentences into English, with an NLLB-like model on CTranslate2."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import ctranslate2
from tokenizers import Tokenizer

from services.translation.flores import ENGLISH
from services.translation.model_folder import (
    REMEDY,
    TOKENIZER_NAME,
    WEIGHTS_NAME,
    UnusableModelError,
    read_manifest,
)
from toolformer.model_files.digests import file_digest

END: Final = "</s>"
UNKNOWN: Final = "<unk>"
_WORD_START: Final = "▁"

# A translation may be longer than its source, but not without end: a model that has lost the thread repeats itself.
_OUTPUT_RATIO: Final = 2.0
_OUTPUT_SLACK: Final = 16
# Output limits are rounded up to whole steps, so that most sentences share one and are translated together.
_OUTPUT_STEP: Final = 128

Device = Literal["auto", "cpu", "cuda"]
ComputeType = Literal["auto", "int8", "int8_float32", "float32", "float16", "int8_float16", "bfloat16"]


@dataclass(frozen=True, slots=True)
class Segment:
    """A sentence, or part of one, as the model reads it: the language's token, the text's tokens, ``</s>``."""

    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Translated:
    """A segment in English. ``score`` is how sure the model is, 0 to 1: the geometric mean of its tokens'
    probabilities, times the share of the segment's tokens that are in the vocabulary."""

    text: str
    score: float


class Translator:
    """A model folder, loaded. Thread-safe.

    Args:
        folder: a folder that `convert.py` made.
        device: ``auto`` is a GPU where there is one.
        compute_type: ``auto`` is int8 on a CPU and float16 on a GPU.
        threads: cores that one batch uses; 0 for CTranslate2's own choice.
        beam_size: 1 is greedy; None for what the folder says is best.

    Raises:
        UnusableModelError: the folder is not a whole model, or this machine cannot run it as asked.
    """

    def __init__(
        self,
        folder: Path,
        *,
        device: Device = "auto",
        compute_type: ComputeType = "auto",
        threads: int = 0,
        beam_size: int | None = None,
    ) -> None:
        self.manifest = read_manifest(folder)
        self.beam_size = self.manifest.beam_size if beam_size is None else beam_size
        if device == "auto":
            device = "cuda" if ctranslate2.get_cuda_device_count() else "cpu"
        if compute_type == "auto":
            compute_type = "float16" if device == "cuda" else "int8"
        remedy = f"copy it again, or {REMEDY} {folder}"
        try:
            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_NAME))
        except Exception as error:  # the package raises nothing more special
            raise UnusableModelError(f"{folder / TOKENIZER_NAME} cannot be loaded ({error}); {remedy}") from error
        try:
            self._model = ctranslate2.Translator(
                str(folder), device=device, compute_type=compute_type, intra_threads=threads
            )
        except Exception as error:  # whatever the library raises, IndexError among them
            raise UnusableModelError(
                f"{folder} cannot be loaded on {device} as {compute_type} ({error}); {remedy}"
            ) from error
        digests = [file_digest(folder / name) for name in (WEIGHTS_NAME, TOKENIZER_NAME)]
        self.version = str((self.manifest, *digests, compute_type, self.beam_size))
        """Says what a translation depends on besides its text."""
        # What a text says is text: `</s>` or `fra_Latn` in it must not become the token of that name.
        self._tokenizer.encode_special_tokens = True
        self._max_text_tokens = self.manifest.max_tokens - 2
        missing = [token for token in (ENGLISH, END) if self._tokenizer.token_to_id(token) is None]
        if missing:
            raise UnusableModelError(f"{folder / TOKENIZER_NAME} has no token {missing[0]!r}; convert the model again")

    def segments(self, sentence: str, language: str) -> list[Segment]:
        """`sentence` as the model reads it; one that is too long is cut between words where it has spaces."""
        tokens = self._tokenizer.encode(sentence, add_special_tokens=False).tokens
        parts = []
        while len(tokens) > self._max_text_tokens:
            cut = _last_word_start(tokens, self._max_text_tokens)
            parts.append(tokens[:cut])
            tokens = tokens[cut:]
        parts.append(tokens)
        return [Segment((language, *part, END)) for part in parts if part]

    def translate(self, segments: Sequence[Segment]) -> list[Translated]:
        """The segments in English, in order. What a segment becomes does not depend on its company."""
        by_limit: defaultdict[int, list[int]] = defaultdict(list)
        for index, segment in enumerate(segments):
            by_limit[self._output_limit(segment)].append(index)
        made: dict[int, Translated] = {}
        for limit, indices in by_limit.items():
            results = self._model.translate_batch(
                [list(segments[index].tokens) for index in indices],
                target_prefix=[[ENGLISH]] * len(indices),
                beam_size=self.beam_size,
                max_input_length=0,
                max_decoding_length=limit,
                return_scores=True,
            )
            for index, result in zip(indices, results, strict=True):
                # CTranslate2's score is the mean of the logarithms.
                score = math.exp(result.scores[0]) * _known(segments[index])
                made[index] = Translated(self._decode(result.hypotheses[0]), score)
        return [made[index] for index in range(len(segments))]

    def _output_limit(self, segment: Segment) -> int:
        wanted = _OUTPUT_RATIO * len(segment.tokens) + _OUTPUT_SLACK
        return min(self.manifest.max_tokens, _OUTPUT_STEP * math.ceil(wanted / _OUTPUT_STEP))

    def _decode(self, tokens: Sequence[str]) -> str:
        ids = [self._tokenizer.token_to_id(token) for token in tokens]
        # A checkpoint's vocabulary may be padded with tokens that the tokenizer does not know.
        text: str = self._tokenizer.decode([id_ for id_ in ids if id_ is not None], skip_special_tokens=True)
        return text.strip()


def _known(segment: Segment) -> float:
    return 1 - segment.tokens.count(UNKNOWN) / len(segment.tokens)


def _last_word_start(tokens: Sequence[str], limit: int) -> int:
    """The last place, at most `limit`, where a word begins; `limit` itself in a script without spaces."""
    for place in range(limit, limit // 2, -1):
        if tokens[place].startswith(_WORD_START):
            return place
    return limit
