"""The bundled language classifier: fastText on character pieces of the parallel phrases, quantised."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import fasttext  # type: ignore[import-untyped]

from demo_world.phrases import LANGUAGES, compositions, lexicon
from demo_world.texts.documents import documents
from services.translation.flores import ENGLISH
from services.translation.labels import LABEL_PREFIX

COMPOSITIONS: Final = 2_000
STORIES: Final = 3_000

# Short pieces of words tell languages apart with few examples; Chinese and Japanese need pieces of one character.
_SETTINGS: Final = {"dim": 16, "minn": 1, "maxn": 4, "bucket": 50_000, "epoch": 10, "lr": 0.2, "thread": 1}
# Only one thread gives the same result every time, but with one thread fastText draws the first tenth of its weights
# and leaves the others as its memory was found: it may learn, or end with "Encountered NaN". This makes the C library
# hand out memory that is all zeros, and has to be set before a process begins.
_ZEROED_MEMORY: Final = {"MALLOC_PERTURB_": "255"}
_DEADLINE_SECONDS: Final = 600


def train_language_id(path: Path, seed: int, *, compositions_: int = COMPOSITIONS, stories: int = STORIES) -> None:
    """Trains the classifier on phrases of the training side of the split and their English, and writes it to `path`.

    The lines are drawn and ordered by `seed`; the same seed gives the same file.

    Raises:
        subprocess.CalledProcessError: fastText failed.
    """
    lines = [f"{LABEL_PREFIX}{language} {text}\n" for language, text in _examples(seed, compositions_, stories)]
    random.Random(seed).shuffle(lines)
    examples = path.with_name("language-id.txt")
    examples.write_text("".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "services.translation.train_language_id", str(examples), str(path), str(seed)]
    subprocess.run(command, check=True, timeout=_DEADLINE_SECONDS, env={**os.environ, **_ZEROED_MEMORY})
    examples.unlink()


def _fit(examples: str, path: str, seed: int) -> None:
    model = fasttext.train_supervised(examples, verbose=0, seed=seed, **_SETTINGS)
    model.quantize(input=examples, qnorm=True, verbose=0)
    model.save_model(path)


def _examples(seed: int, count: int, stories: int) -> Iterator[tuple[str, str]]:
    for _, composition in zip(range(count), compositions(seed, held_out=False), strict=False):
        for language in LANGUAGES:
            phrase = composition.phrase(language)
            yield language, _line(phrase.text)
        yield ENGLISH, _line(phrase.english)
    # English must be known in any sentence, for it comes back untouched; the project writes plenty of it.
    for document in documents(stories, seed=seed):
        for text in document.texts:
            yield ENGLISH, _line(text.plain)
    for language in LANGUAGES:
        for entry in lexicon(language):
            # Many names are the same in several languages and would only teach doubt.
            if entry.text != entry.english:
                yield language, _line(entry.text)
                yield ENGLISH, _line(entry.english)


def _line(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    _fit(sys.argv[1], sys.argv[2], int(sys.argv[3]))
