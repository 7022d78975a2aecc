"""Write real questions for a reader, and the passages that they were asked about as pages to search.

    toolformer jobs reading --from SOURCES --exams DATA --out READING

``READING`` then holds, as JSON lines, ``questions.jsonl`` and ``held-out.jsonl`` (``source``, ``question``,
``answers``, ``title``, ``text``, ``page``: for a passage's question the hundred words that say the answer and the id of
their page; trivia and facts of the bundled encyclopedia have neither; the text of a question made of a sentence of
Wikipedia is of no page, and is read alone), and ``pages.jsonl``, the passages in KILT's form. Put behind an
encyclopedia's pages these are found beside its passages, so that no passage shows by its style that it holds the
answer. What the exams ask is left out, and so is a question whose passage does not say its answer. Facts are of the
things that a base model reads of; those of the things that it is taught on are held out.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from demo_world.facts.fact_pages import WORDING, fact_rows
from demo_world.page import listed
from toolformer.model_files.whole import write_whole
from training_jobs.corpora.reading.cloze import cloze_questions, whole_words
from training_jobs.corpora.real_text.facts_part import facts
from training_jobs.corpora.real_text.overlap import Exams, Part
from training_jobs.corpora.real_text.sources import SENTENCE, AskedPassage, passages, trivia_questions

_WORDS: Final = 100
"""About so many words a passage is cut to, as those of the encyclopedia's index are."""
_LONGEST_ANSWER: Final = 10
"""In words: who asks in passing wants no sentence."""
_SHORTEST_TRIVIA_ANSWER: Final = 3
"""In characters: a shorter one stands in many passages by chance."""
_QAMR: Final = 0.26
"""Of the questions on single sentences, the share that is asked: there are more than of all other passages."""
CLOZE: Final = 9_400
"""Questions made of sentences of Wikipedia, unless another number is asked for."""
_FACTS: Final = 85_000
_HELD_OUT_FACTS: Final = 800
"""Facts drawn, many of them several times."""
_PLACES: Final = 0.33
"""Of those on countries and cities, the share that is asked: there are more of them than of all others."""
_STATED: Final = 0.12
"""Of the facts, the share that is asked by the beginning of a statement: ``Guernica was made by``."""


def make(
    sources: Path, exams: Exams, out: Path, *, made: int = CLOZE, whole_articles: bool = False
) -> Mapping[str, int]:
    """Write the three files and return how many lines each has.

    Args:
        sources: a folder with a folder a source.
        exams: what is left out.
        out: the folder.
        made: how many questions are made of sentences of Wikipedia.
        whole_articles: make them of whole articles, not of their beginnings alone.

    Raises:
        OSError: if a source is not there.
    """
    out.mkdir(parents=True, exist_ok=True)
    numbers: dict[str, str] = {}
    pages = []
    for part in (Part(exams), Part(exams, held_out=True)):
        for passage in passages(sources, part):
            if passage.text not in numbers:
                numbers[passage.text] = f"reading{len(numbers)}"
                pages.append(_page(numbers[passage.text], passage))
    files = {
        "pages": pages,
        "questions": list(_questions(sources, Part(exams), numbers, made, whole_articles)),
        "held-out": list(_questions(sources, Part(exams, held_out=True), numbers, 0)),
    }
    for name, records in files.items():
        lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        write_whole(out / f"{name}.jsonl", "".join(lines))
    return {name: len(records) for name, records in files.items()}


def _questions(
    sources: Path, part: Part, pages: Mapping[str, str], made: int, whole_articles: bool = False
) -> Iterator[dict[str, Any]]:
    rng = random.Random(0)
    for passage in passages(sources, part):
        for question, answer in passage.asked:
            answer = answer.rstrip(".")
            text = around(passage.text, answer)
            asked = passage.source != "qamr" or rng.random() < _QAMR
            if asked and text is not None and len(answer.split()) <= _LONGEST_ANSWER:
                place = {"title": passage.title, "text": text, "page": pages[passage.text]}
                yield {"source": passage.source, "question": question, "answers": [answer], **place}
    for question, answers in trivia_questions(sources, part):
        fine = [one for one in answers if len(one) >= _SHORTEST_TRIVIA_ANSWER]
        if fine:
            yield {"source": "trivia", "question": question, "answers": fine}
    yield from _facts(part, rng)
    yield from islice(cloze_questions(sources, part, rng, whole=whole_articles), made)


def _facts(part: Part, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Facts of the bundled encyclopedia: those of its tables, and ``places``."""
    tabled = {
        (row.name, listed(values))
        for table in WORDING
        for row in fact_rows(table)
        for values in row.values.values()
    }  # fmt: skip
    seen = set[str]()
    drawn = facts(rng, part.exams, "taught" if part.held_out else "read")
    for fact in islice(drawn, _HELD_OUT_FACTS if part.held_out else _FACTS):
        source = "facts" if (fact.thing, fact.answer) in tabled else "places"
        stated, _, rest = fact.text.rpartition(fact.answer)
        question = stated.strip() if rest == "." and rng.random() < _STATED else fact.question
        if source == "places" and rng.random() >= _PLACES:
            continue
        if question not in seen and not part.exams.asks(question) and len(fact.answer.split()) <= _LONGEST_ANSWER:
            seen.add(question)
            yield {"source": source, "question": question, "answers": [fact.answer]}


def around(text: str, answer: str) -> str | None:
    """The sentence of ``text`` that says ``answer``, with those about it up to a hundred words; none if it does not."""
    said = whole_words(answer)
    sentences = SENTENCE.split(" ".join(text.split()))
    first = next((number for number, one in enumerate(sentences) if answer and said.search(one)), None)
    if first is None:
        return None
    begin, end = first, first + 1
    words = len(sentences[first].split())
    while begin > 0 or end < len(sentences):
        before = begin > 0 and (end == len(sentences) or first - begin <= end - first)
        words += len(sentences[begin - 1 if before else end].split())
        if words > _WORDS:
            break
        begin, end = (begin - 1, end) if before else (begin, end + 1)
    return " ".join(sentences[begin:end])


def _page(number: str, passage: AskedPassage) -> dict[str, Any]:
    """In KILT's form; a passage without a title has its first words for one."""
    title = passage.title or " ".join(passage.text.split()[:4])
    return {"wikipedia_id": number, "wikipedia_title": title, "text": [f"{title}\n", passage.text]}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this job."""
    parser = argparse.ArgumentParser(
        prog="python -m training_jobs.corpora.reading",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--from", dest="sources", type=Path, required=True, help="folder with a folder a source")
    parser.add_argument(
        "--exams", type=Path, required=True, help="folder of the benchmarks, whose questions are left out"
    )
    parser.add_argument("--out", type=Path, required=True, help="directory to write to")
    parser.add_argument(
        "--cloze", type=int, default=CLOZE, metavar="N", help="questions made of sentences of Wikipedia (%(default)s)"
    )
    parser.add_argument(
        "--whole-articles", action="store_true", help="make them of whole articles, some 300,000, not of beginnings"
    )
    options = parser.parse_args(arguments)
    if options.cloze < 0:
        parser.error(f"--cloze must be at least 0, not {options.cloze}")
    try:
        counts = make(
            options.sources, Exams.read(options.exams), options.out, made=options.cloze,
            whole_articles=options.whole_articles,
        )  # fmt: skip
    except OSError as trouble:
        parser.exit(1, f"{parser.prog}: {trouble}\n")
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
