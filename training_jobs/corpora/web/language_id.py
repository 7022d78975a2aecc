"""Whether a stretch of text is English, by a fastText classifier (Joulin et al., 2016) such as ``lid.176``."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Protocol

from toolformer.model_files.fasttext import why_unusable

_ENGLISH: Final = ("en", "eng")
_PREFIX: Final = "__label__"


class Languages(Protocol):
    """Names the language of a text."""

    def __call__(self, text: str) -> tuple[bool, float]:
        """Whether English is the likeliest language, and the probability of the likeliest one, 0 to 1."""
        ...


class FastTextLanguages:
    """A fastText classifier whose labels begin with an ISO 639 code: ``__label__en``, ``__label__eng_Latn``.

    Raises:
        ValueError: there is no such file, it is no fastText classifier, or it does not know English.
    """

    def __init__(self, path: Path) -> None:
        import fasttext  # type: ignore[import-untyped]

        remedy = "name a file such as lid.176.ftz"
        if not path.is_file():
            raise ValueError(f"--language-id: there is no file {path}; {remedy}")
        if reason := why_unusable(path):
            raise ValueError(f"--language-id: {path} cannot be used, {reason}; {remedy}")
        try:
            self._model = fasttext.load_model(str(path))
            labels = self._model.get_labels()
        except (ValueError, RuntimeError, MemoryError, UnicodeDecodeError) as error:
            raise ValueError(f"--language-id: {path} is no fastText classifier ({error}); {remedy}") from error
        if not any(_is_english(label) for label in labels):
            raise ValueError(f"--language-id: {path} has no label for English; {remedy}")

    def __call__(self, text: str) -> tuple[bool, float]:
        """Whether English is the likeliest language, and the probability of the likeliest one, 0 to 1."""
        labels, probabilities = self._model.predict(" ".join(text.split()), k=1)  # it reads one line
        return _is_english(labels[0]), min(1.0, float(probabilities[0]))


def _is_english(label: str) -> bool:
    return label.removeprefix(_PREFIX).partition("_")[0] in _ENGLISH
