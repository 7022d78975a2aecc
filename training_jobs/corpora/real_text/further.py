"""More to teach on, whatever a base model has read of it: questions whose own search says the answer, a half for each
round, and questions over paragraphs, as texts without calls.

Only texts are chosen here: which calls they get, and which of these help, is the model's and the filter's to say.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from toolformer.tool_client import ToolClient
from toolformer.tools import ToolRegistry
from training_jobs.corpora.real_text.overlap import Exams, Part
from training_jobs.corpora.real_text.sources import ASKED_ALONE, SENTENCE, passages, questions_alone
from training_jobs.corpora.real_text.teaching import PLAIN, ROUNDS
from training_jobs.execute.asking import ExecuteSettings, Question, ask_each, check_services
from training_jobs.records import Document, Plain, records_in, says
from training_jobs.run_folder import RunFolder
from training_jobs.runner.parts import write_records

_SEARCH: Final = "WikiSearch"
_OVER: Final = (
    "{c} {q} {a}.", "{c} Question: {q} Answer: {a}.", "Read this: {c} Now answer in English: {q} {a}.",
    "Answer a question about this paragraph: {c} Question: {q} {a}.", "{c} Answer this question in English: {q} {a}.",
    "Paragraph: {c} Question: {q} The answer is {a}.",
)  # fmt: skip
_LONGEST_ANSWER: Final = 60
_WHOLE_SHARE: Final = 0.5
"""Of the paragraphs, those that stay whole; of the others are left the sentence with the answer and some beside it."""
_ONE_MORE: Final = 0.6
_SHORT_SHARE: Final = 0.28
"""Of the questions, those over one sentence (QAMR), of which there are most."""
_AT_ONCE: Final = 500


async def add_further(sources: Path, exams: Exams, texts: int, seed: int, out: Path, registry: ToolRegistry) -> None:
    """Add up to ``texts`` of each kind to what `write_teaching` wrote in ``out``; the running search service is asked.

    Raises:
        OSError: if a source is not there.
        StageError: if the service is not there, or does not answer a question.
    """
    rng = random.Random(seed)
    found = await _found(sources, exams, texts, rng, registry)
    for round_ in range(ROUNDS):
        path = RunFolder(out / f"round-{round_ + 1}").file("corpus", _SEARCH)
        numbered = list(enumerate(found))[round_::ROUNDS]
        more = [Document(f"found/{number}", text, source="found") for number, text in numbered]
        write_records(path, [*records_in(path, Document), *more])
    read = [
        Plain(f"read/{at}", (text,)) for at, text in enumerate(islice(_over_paragraphs(sources, exams, rng), texts))
    ]
    write_records(out / PLAIN, [*records_in(out / PLAIN, Plain), *read])


def _over_paragraphs(sources: Path, exams: Exams, rng: random.Random) -> Iterator[str]:
    """Paragraphs with a question and its answer."""
    asked: dict[bool, list[tuple[str, str, str]]] = {True: [], False: []}
    for passage in passages(sources, Part(exams)):
        for question, answer in passage.asked:
            if answer in passage.text and len(answer) < _LONGEST_ANSWER:
                asked[passage.source == "qamr"].append((passage.text, question, answer))
    for one in asked.values():
        rng.shuffle(one)
    while asked[True] or asked[False]:
        short = rng.random() < _SHORT_SHARE
        of_kind = asked[short] or asked[not short]
        yield _over(*of_kind.pop(), rng)


def _over(paragraph: str, question: str, answer: str, rng: random.Random) -> str:
    """A text with ``paragraph``, or sentences of it, and ``question`` and ``answer`` behind it."""
    sentences = SENTENCE.split(paragraph)
    at = next((number for number, one in enumerate(sentences) if answer in one), None)
    if at is not None and rng.random() >= _WHOLE_SHARE:
        first, end = at, at + 1
        while rng.random() < _ONE_MORE:
            first, end = rng.choice(((max(0, first - 1), end), (first, end + 1)))
        paragraph = " ".join(sentences[first:end])
    return rng.choice(_OVER).format(c=paragraph, q=question, a=answer.rstrip("."))


async def _found(sources: Path, exams: Exams, texts: int, rng: random.Random, registry: ToolRegistry) -> list[str]:
    """Questions with an answer that the search service, asked the question itself, says."""
    asked = questions_alone(sources, Part(exams))
    rng.shuffle(asked)
    rows: list[str] = []
    async with ToolClient(registry) as client:
        await check_services(client, [_SEARCH])
        for at in range(0, len(asked), _AT_ONCE):
            some = asked[at : at + _AT_ONCE]
            questions = [(_SEARCH, Question(question)) for question, _ in some]
            outcomes = await ask_each(client, registry, questions, ExecuteSettings())
            for (question, answers), said in zip(some, outcomes, strict=True):
                shown = said.partition(" > ")[2] if isinstance(said, str) else ""
                if answer := next((one for one in answers if says(shown, one)), None):
                    rows.append(rng.choice(ASKED_ALONE).format(q=question, a=answer.rstrip(".")))
            if len(rows) >= texts:
                break
    return rows[:texts]
