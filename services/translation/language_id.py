"""The language of a text, named by a fastText classifier."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import fasttext  # type: ignore[import-untyped]

from services.translation.labels import LABEL_PREFIX, to_flores
from services.translation.model_folder import UnusableModelError
from services.translation.scripts import main_script
from toolformer.model_files.digests import DamagedError, check
from toolformer.model_files.fasttext import why_unusable

_LABELS: Final = 5
"""How many of the classifier's labels are looked at: several may mean one FLORES code."""


@dataclass(frozen=True, slots=True)
class Detection:
    """What language a text is in.

    ``language`` is its FLORES-200 code, None where FLORES-200 does not hold the language that the classifier names;
    ``confidence`` the classifier's probability, 0 to 1; ``label`` its own most likely label, without the prefix.
    """

    language: str | None
    confidence: float
    label: str


class LanguageIdentifier:
    """A fastText classifier whose labels are FLORES-200 or ISO 639 codes: ``lid.176``, ``lid218e``, or the bundled one.

    Thread-safe.

    Args:
        path: a ``.bin`` or ``.ftz`` file.

    Raises:
        UnusableModelError: there is no such file, or it is no fastText classifier.
    """

    def __init__(self, path: Path) -> None:
        remedy = "name a published lid.176 or lid218e file in TOOLFORMER_TRANSLATION_LANGUAGE_ID"
        if not path.is_file():
            raise UnusableModelError(f"there is no language classifier at {path}; {remedy}")
        try:
            check(path.parent, name=path.name, at_most=None)
        except DamagedError as error:
            raise UnusableModelError(f"{error}; copy it again, or {remedy}") from error
        if reason := why_unusable(path):
            raise UnusableModelError(f"{path} cannot be used, {reason}; {remedy}")
        try:
            self._model = fasttext.load_model(str(path))
            labels = self._model.get_labels()
        except (ValueError, RuntimeError, MemoryError, UnicodeDecodeError) as error:
            raise UnusableModelError(f"{path} is no fastText file ({error}); {remedy}") from error
        if not any(to_flores(label, None) for label in labels if label.startswith(LABEL_PREFIX)):
            raise UnusableModelError(f"{path} has no label that names a language; {remedy}")

    def detect(self, text: str) -> Detection:
        """The language of `text`, which has at least one letter."""
        labels, languages = self._languages(text, _LABELS)
        language = to_flores(labels[0], main_script(text))
        # Rounding in fastText's own softmax lets a certain answer pass 1 by a little.
        return Detection(language, min(1.0, languages[language]), labels[0].removeprefix(LABEL_PREFIX))

    def candidates(self, text: str, among: Collection[str]) -> list[Detection]:
        """Which of these FLORES-200 codes the language of `text` may be, the most likely first; a confidence is the
        share of all of theirs."""
        labels, languages = self._languages(text, -1)
        shares = {one: share for one, share in languages.items() if one in among}
        label, of_all = labels[0].removeprefix(LABEL_PREFIX), sum(shares.values()) or 1.0
        return [Detection(one, shares[one] / of_all, label) for one in sorted(shares, key=lambda one: -shares[one])]

    def _languages(self, text: str, labels: int) -> tuple[Sequence[str], dict[str | None, float]]:
        """The classifier's labels, at most so many, and the probability of each language that they mean."""
        # fastText reads a line; it would take what follows a line break for another example.
        line = " ".join(text.split())
        named, probabilities = self._model.predict(line, k=labels)
        script = main_script(line)
        languages: defaultdict[str | None, float] = defaultdict(float)
        for label, probability in zip(named, probabilities, strict=True):
            languages[to_flores(label, script)] += float(probability)
        return named, languages
