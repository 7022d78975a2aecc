"""More to teach on, whatever a base model has read of it.

- Questions with the sentence that their own search shows, if it says the answer; a half for each round.
- Questions over paragraphs, as texts without calls.
- Statements of the encyclopedia, as texts without calls, and others for WikiSearch and QA.
- Questions in other languages over English paragraphs, with the call that would translate each. Models propose such a
  call too seldom (68 of 2,700), so it is proposed here; whether it helps is the filter's to say, as of all calls.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from toolformer.tool_client import ToolClient
from toolformer.tools import ToolRegistry
from training_jobs.corpora.real_text.overlap import Exams, Part
from training_jobs.corpora.real_text.sources import SENTENCE, foreign_questions, passages, questions_alone, statements
from training_jobs.corpora.real_text.teaching import PLAIN, ROUNDS
from training_jobs.execute.asking import ExecuteSettings, Question, ask_each, check_services
from training_jobs.records import Document, Plain, ProposedCall, ProposedCalls, records_in, says
from training_jobs.run_folder import RunFolder
from training_jobs.runner.parts import write_records

_SEARCH: Final = "WikiSearch"
_QUOTED: Final = (
    "{q} {a}", "{q} {a}", "{q}\n{a}", "Question: {q}\nAnswer: {a}", "Q: {q} A: {a}", "Answer this question: {q} {a}",
    "I have a question: {q} {a}", "Please answer: {q} {a}", "Answer the question: {q} {a}",
)  # fmt: skip
_LONGEST_SENTENCE: Final = 40
"""Words of a sentence that is quoted."""
_OVER: Final = (
    "{c} {q} {a}.", "{c} Question: {q} Answer: {a}.", "Read this: {c} Now answer in English: {q} {a}.",
    "Answer a question about this paragraph: {c} Question: {q} {a}.", "{c} Answer this question in English: {q} {a}.",
    "Paragraph: {c} Question: {q} The answer is {a}.",
)  # fmt: skip
_OVER_FOREIGN: Final = (
    "{c} {q} {a}.", "{c}\n{q} {a}.", "Read this: {c} Now answer in English: {q} {a}.",
    "Answer a question about this paragraph: {c} Question: {q} {a}.", "{c} Answer this question in English: {q} {a}.",
    "{c} A question about it, to be answered in English: {q} {a}.",
)  # fmt: skip
"""The answer comes at once: a call's gain is that of the five tokens behind it."""
_LONGEST_ANSWER: Final = 60
_LONGEST_PARAGRAPH: Final = 1_000
_WHOLE_SHARE: Final = 0.5
"""Of the paragraphs, those that stay whole; of the others are left the sentence with the answer and some beside it."""
_ONE_MORE: Final = 0.6
_SHORT_SHARE: Final = 0.28
"""Of the questions, those over one sentence (QAMR), of which there are most."""
_STATED_SHARE: Final = 0.3
"""For each of the two tools, of the statements that are without calls."""
_AT_ONCE: Final = 500


async def add_further(sources: Path, exams: Exams, texts: int, seed: int, out: Path, registry: ToolRegistry) -> None:
    """Add up to ``texts`` of each kind but the last to what `write_teaching` wrote in ``out``, and all of the last in
    ``out/foreign``; the running search service is asked.

    Raises:
        OSError: if a source is not there.
        StageError: if the service is not there, or does not answer a question.
    """
    rng = random.Random(seed)
    foreign = list(foreign_questions(sources, exams))
    stated = iter(statements(sources, exams, rng))
    _add(out, _SEARCH, "found", await _found(sources, exams, texts, rng, registry))
    without = [*islice(_over_paragraphs(sources, exams, rng), texts), *islice(stated, texts)]
    for tool in (_SEARCH, "QA"):
        _add(out, tool, f"statements {tool}", list(islice(stated, round(_STATED_SHARE * texts))))
    plain = [Plain(f"further/{at}", (text,)) for at, text in enumerate(without)]
    write_records(out / PLAIN, [*records_in(out / PLAIN, Plain), *plain])
    translated, folder = list(_translated(foreign, rng)), out / "foreign"
    folder.mkdir(exist_ok=True)
    write_records(folder / "texts.jsonl", [document for document, _ in translated])
    write_records(folder / "calls.jsonl", [calls for _, calls in translated])


def _add(out: Path, tool: str, source: str, texts: Sequence[str]) -> None:
    """Add ``texts`` to those of ``tool``, a half to each round."""
    documents = [Document(f"{source}/{number}", text, source=source) for number, text in enumerate(texts)]
    for round_ in range(ROUNDS):
        path = RunFolder(out / f"round-{round_ + 1}").file("corpus", tool)
        write_records(path, [*records_in(path, Document), *documents[round_::ROUNDS]])


def _translated(
    foreign: Sequence[tuple[str, str, str]], rng: random.Random
) -> Iterator[tuple[Document, ProposedCalls]]:
    """English paragraphs with a question in another language and its English answer, and the call that translates it.

    ``foreign`` are paragraphs, questions and answers.
    """
    for number, (paragraph, question, answer) in enumerate(rng.sample(foreign, len(foreign))):
        if len(paragraph) < _LONGEST_PARAGRAPH and len(answer) < _LONGEST_ANSWER:
            before, _, behind = rng.choice(_OVER_FOREIGN).partition("{q}")
            before = before.format(c=_sentences_with(answer, paragraph, rng))
            document = Document(f"over/{number}", before + question + behind.format(a=answer.rstrip(".")))
            call = ProposedCall("MT", len(before) + len(question), question)
            yield document, ProposedCalls(document.id, (call,))


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
    paragraph = _sentences_with(answer, paragraph, rng)
    return rng.choice(_OVER).format(c=paragraph, q=question, a=answer.rstrip("."))


def _sentences_with(answer: str, paragraph: str, rng: random.Random) -> str:
    """``paragraph``, or of it the sentence with ``answer`` and some beside it."""
    sentences = SENTENCE.split(paragraph)
    at = next((number for number, one in enumerate(sentences) if answer in one), None)
    if at is not None and rng.random() >= _WHOLE_SHARE:
        first, end = at, at + 1
        while rng.random() < _ONE_MORE:
            first, end = rng.choice(((max(0, first - 1), end), (first, end + 1)))
        return " ".join(sentences[first:end])
    return paragraph


async def _found(sources: Path, exams: Exams, texts: int, rng: random.Random, registry: ToolRegistry) -> list[str]:
    """Questions with the sentence that the search service, asked the question itself, says an answer in.

    The sentence and not the answer alone: a small model seldom finds the right words in it, and who reads it sees what
    the answer rests on.
    """
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
                if quoted := _sentence_saying(answers, said.partition(" > ")[2]) if isinstance(said, str) else None:
                    rows.append(rng.choice(_QUOTED).format(q=question, a=quoted))
            if len(rows) >= texts:
                break
    return rows[:texts]


def _sentence_saying(answers: Sequence[str], shown: str) -> str | None:
    """The first whole sentence of ``shown`` that says one of ``answers``."""
    for sentence in SENTENCE.split(shown):
        whole = "…" not in sentence and len(sentence.split()) <= _LONGEST_SENTENCE
        if whole and any(says(sentence, one) for one in answers):
            return sentence
    return None
