"""``python -m services.translation.evaluate``: what the models are worth, on phrases they were never trained on.

    python -m services.translation.evaluate
    python -m services.translation.evaluate --language-id lid.176.ftz --tatoeba FOLDER
    python -m services.translation.evaluate --model FOLDER --exam PAIRS/exam.tsv

For each language of the bundled model: exact match and chrF of its translations, and how often the classifier names
the language, on the same held-out phrases (`demo_world/phrases.py`). Then sentences a second one by one and in batches.
With ``--exam``, the pairs that `train_pairs.py` held out and no training was watched on: BLEU with its interval, and
what is declined of the sentences and of the same with the letters of each word in another order, which no language has.
With ``--tatoeba``, a folder of ``tatoeba.xxx-eng.xxx`` files: how often the classifier names their language.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from demo_world.phrases import LANGUAGES, phrases
from services.translation.engine import BUNDLED
from services.translation.flores import LANGUAGES as NAMES
from services.translation.labels import parse_language
from services.translation.language_id import LanguageIdentifier
from services.translation.model_folder import LANGUAGE_ID_NAME, UnusableModelError
from services.translation.train_pairs import read, watched
from services.translation.train_sources import Pair
from services.translation.translator import Segment, Translator

SEED: Final = 20_261_120
"""Draws the held-out phrases; training draws the others."""

_LETTERS: Final = re.compile(r"[^\W\d_]{2,}")
_TATOEBA_FILE: Final = re.compile(r"tatoeba\.[a-z]{3}-eng\.([a-z]{3})")


@dataclass(frozen=True, slots=True)
class Quality:
    """What the models make of one language's phrases; shares from 0 to 1, chrF from 0 to 100."""

    language: str
    phrases: int
    exact: float
    chrf: float
    identified: float
    declined: float
    """Translations of which the model is less sure than its folder asks for."""
    wrong: tuple[tuple[str, str, str], ...]
    """The phrases that were not translated exactly: source, translation, reference."""


_COLUMNS: Final[Mapping[str, tuple[Callable[[Quality], float], str]]] = {
    "exact match": (lambda one: one.exact, ".1%"),
    "chrF": (lambda one: one.chrf, ".1f"),
    "language named": (lambda one: one.identified, ".1%"),
    "declined": (lambda one: one.declined, ".1%"),
}


@dataclass(frozen=True, slots=True)
class PairQuality:
    """What the models make of one language's pairs: BLEU with its 95 % interval, as sacrebleu writes it, and shares."""

    pairs: int
    bleu: str
    identified: float
    declined: float
    nonsense_declined: float


@dataclass(frozen=True, slots=True)
class Throughput:
    """Sentences a second, one by one and in batches of ``batch``."""

    batch: int
    one_by_one: float
    batched: float


def evaluate_language(translator: Translator, identifier: LanguageIdentifier, language: str, count: int) -> Quality:
    """Translates and identifies `count` held-out phrases of `language`."""
    held_out = phrases(language, count, SEED, held_out=True)
    made = translator.translate([_segment(translator, phrase.text, language) for phrase in held_out])
    english = [one.text for one in made]
    references = [phrase.english for phrase in held_out]
    named = [identifier.detect(phrase.text).language for phrase in held_out]
    wrong = [
        (phrase.text, text, phrase.english)
        for phrase, text in zip(held_out, english, strict=True)
        if text != phrase.english
    ]
    return Quality(
        language=language,
        phrases=count,
        exact=1 - len(wrong) / count,
        chrf=float(CHRF().corpus_score(english, [references]).score),
        identified=named.count(language) / count,
        declined=sum(one.score < translator.manifest.min_score for one in made) / count,
        wrong=tuple(wrong),
    )


def share_declined(translator: Translator, texts: Sequence[tuple[str, str]]) -> float:
    """The share of ``texts``, each behind its language, whose translation the model is not sure enough of."""
    made = translator.translate([_segment(translator, text, language) for language, text in texts])
    return sum(one.score < translator.manifest.min_score for one in made) / len(texts)


def min_score(translator: Translator, pairs: Sequence[Pair], declined: float) -> float:
    """The score, in hundredths, below which the share ``declined`` of the pairs' sentences lies when they are without
    sense."""
    rng = random.Random(SEED)
    nonsense = [_segment(translator, without_sense(pair.text, rng), pair.language) for pair in pairs]
    scores = sorted(one.score for one in translator.translate(nonsense))
    return math.ceil(100 * scores[math.ceil(declined * len(scores)) - 1]) / 100


def evaluate_pairs(translator: Translator, identifier: LanguageIdentifier, pairs: Sequence[Pair]) -> PairQuality:
    """Translates the pairs' sentences, all of one language, and as many without any sense."""
    made = translator.translate([_segment(translator, pair.text, pair.language) for pair in pairs])
    named = [identifier.detect(pair.text).language for pair in pairs]
    # The interval is of a thousand samples of the pairs, drawn with replacement.
    references = [[pair.english for pair in pairs]]
    score = BLEU().corpus_score([one.text for one in made], references, n_bootstrap=1_000)
    rng = random.Random(SEED)
    nonsense = [(pair.language, without_sense(pair.text, rng)) for pair in pairs]
    return PairQuality(
        pairs=len(pairs),
        bleu=score.format(width=1, score_only=True),
        identified=named.count(pairs[0].language) / len(pairs),
        declined=sum(one.score < translator.manifest.min_score for one in made) / len(pairs),
        nonsense_declined=share_declined(translator, nonsense),
    )


def without_sense(text: str, rng: random.Random) -> str:
    """``text`` with the letters of each word in another order; where nothing is between words, of all of it."""
    return _LETTERS.sub(lambda word: "".join(rng.sample(word[0], len(word[0]))), text)


def measure_throughput(translator: Translator, batch: int, count: int) -> Throughput:
    """Translates the same `count` sentences one by one and `batch` at a time."""
    share = -(-count // len(LANGUAGES))
    segments = [
        _segment(translator, phrase.text, language)
        for language in LANGUAGES
        for phrase in phrases(language, share, SEED, held_out=True)
    ]
    translator.translate(segments[:batch])  # the first batch also makes the threads and buffers
    rates = []
    for size in (1, batch):
        began = time.perf_counter()
        for start in range(0, len(segments), size):
            translator.translate(segments[start : start + size])
        rates.append(len(segments) / (time.perf_counter() - began))
    return Throughput(batch, *rates)


def identified_in_tatoeba(identifier: LanguageIdentifier, folder: Path) -> dict[str, tuple[int, int]]:
    """For each language's files in `folder`: lines whose language was named, and all lines.

    The files' codes say nothing of the script, so Chinese counts in either.

    Raises:
        FileNotFoundError: there is no such file.
    """
    counts: dict[str, tuple[int, int]] = {}
    for path in sorted(folder.iterdir()):
        name = _TATOEBA_FILE.fullmatch(path.name)
        code = parse_language(name.group(1)) if name else None
        if code is None:
            continue
        named = [identifier.detect(line).language for line in path.read_text(encoding="utf-8").splitlines()]
        right = sum(language is not None and language[:3] == code[:3] for language in named)
        before = counts.get(code, (0, 0))
        counts[code] = (before[0] + right, before[1] + len(named))
    if not counts:
        raise FileNotFoundError(f"{folder} holds no files named like tatoeba.deu-eng.deu")
    return counts


def _segment(translator: Translator, text: str, language: str) -> Segment:
    [segment] = translator.segments(text, language)
    return segment


def _table(rows: Sequence[Sequence[str]]) -> None:
    for number, row in enumerate(rows):
        _say("| " + " | ".join(row) + " |")
        if number == 0:
            _say("|" + "---|" * len(row))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


def _report_quality(translator: Translator, identifier: LanguageIdentifier, count: int, shown: int) -> None:
    results = [evaluate_language(translator, identifier, language, count) for language in LANGUAGES]

    def row(name: str, of: Sequence[Quality]) -> list[str]:
        return [name, *(format(fmean(map(value, of)), form) for value, form in _COLUMNS.values())]

    rows = [row(f"{NAMES[one.language]} `{one.language}`", [one]) for one in results]
    _table([["language", *_COLUMNS], *rows, row("all", results)])
    for one in results:
        for source, made, reference in one.wrong[:shown]:
            _say(f"\n{one.language}: {source}\n  made      {made}\n  reference {reference}")


def _report_pairs(translator: Translator, identifier: LanguageIdentifier, path: Path) -> None:
    by_language: defaultdict[str, list[Pair]] = defaultdict(list)
    exam = read(path)
    seen = {*watched(exam)}
    for pair in (one for one in exam if one not in seen):
        by_language[pair.language].append(pair)
    rows = [["language", "pairs", "BLEU", "language named", "declined", "declined of nonsense"]]
    for language, pairs in sorted(by_language.items()):
        one = evaluate_pairs(translator, identifier, pairs)
        shares = (format(share, ".1%") for share in (one.identified, one.declined, one.nonsense_declined))
        rows.append([f"{NAMES[language]} `{language}`", f"{one.pairs:,}", one.bleu, *shares])
    _table(rows)


def _report_tatoeba(identifier: LanguageIdentifier, folder: Path) -> None:
    counts = identified_in_tatoeba(identifier, folder)
    rows = [[f"{NAMES[code]} `{code}`", f"{right / total:.1%}"] for code, (right, total) in counts.items()]
    right, total = (sum(numbers) for numbers in zip(*counts.values(), strict=True))
    _table([["language", "language named"], *rows, [f"all {total:,} lines", f"{right / total:.1%}"]])


def main(arguments: Sequence[str] | None = None) -> None:
    """The command; exits with 1 and one line where a model cannot be loaded."""
    parser = argparse.ArgumentParser(
        prog="python -m services.translation.evaluate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", type=Path, default=BUNDLED, help="a model folder (default: the bundled one)")
    parser.add_argument("--language-id", type=Path, help="a fastText file (default: the one in the model folder)")
    parser.add_argument("--tatoeba", type=Path, help="name the language of these files instead of the phrases'")
    parser.add_argument("--exam", type=Path, help="translate these pairs instead of the phrases")
    parser.add_argument("--phrases", type=int, default=100, help="phrases a language (default: %(default)s)")
    parser.add_argument("--beam-size", type=int, help="default: what the model folder says")
    parser.add_argument("--threads", type=int, default=1, help="cores a batch uses (default: %(default)s)")
    parser.add_argument("--show", type=int, default=0, help="wrong translations to show a language")
    options = parser.parse_args(arguments)
    try:
        identifier = LanguageIdentifier(options.language_id or options.model / LANGUAGE_ID_NAME)
        if options.tatoeba is not None:
            _report_tatoeba(identifier, options.tatoeba)
            return
        translator = Translator(options.model, threads=options.threads, beam_size=options.beam_size)
        if options.exam is not None:
            _report_pairs(translator, identifier, options.exam)
            return
    except (UnusableModelError, OSError) as error:
        sys.exit(f"evaluate: {error}")
    _report_quality(translator, identifier, options.phrases, options.show)
    speed = measure_throughput(translator, batch=16, count=384)
    _say(
        f"\none by one {speed.one_by_one:.0f} sentences/s, {speed.batch} at a time {speed.batched:.0f}: "
        f"{speed.batched / speed.one_by_one:.1f} times as many"
    )


if __name__ == "__main__":
    main()
