"""The sources, each read from its published files in one folder a source, as the texts that a model reads.

Every reader takes the folder that holds all sources and yields whole texts. Gaps where a template of Wikipedia stood,
empty rows and what the exams ask are left out.
"""

from __future__ import annotations

import csv
import html
import json
import random
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from training_jobs.corpora.real_text.overlap import Exams, Part
from training_jobs.corpora.real_text.problems import cut

ROW_CHARACTERS: Final = 1_500
"""Prose is cut at paragraphs to rows of about so many characters, some 400 tokens."""

_DOCUMENT: Final = re.compile(r'<doc id="\d+" url="[^"]*" title="([^"]*)">\n(.*?)\n</doc>', re.DOTALL)
SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")
"""What is between two sentences."""
_GAP: Final = re.compile(
    r"\b(?:about|of|is|to|over|than|at|around|by|from)  |  (?:from|by|to|in|and|of) |\(\s*[,;]|\(\)|&lt;"
)
_TAG: Final = re.compile(r"<[^>]+>")
_EXAM_ARTICLES: Final = frozenset({"Nero"})
"""Articles of WikiText's test part."""
_ARTICLE_CHARACTERS: Final = 8_000
"""An article's beginning, which has most of what is asked of it."""
_BRACKETS: Final = re.compile(r" \([^()]*\)")
_STATEMENT_WORDS: Final = range(6, 26)
_ROW_LENGTHS: Final = (800, ROW_CHARACTERS, ROW_CHARACTERS, 3_000)

_ASKED_FIRST_SHARE: Final = 0.2
"""Of the passages, those that come after their questions with the answers: what is said first is found again below."""
_LONGEST_SENTENCE: Final = 400
_ASKED: Final = ("{q} {a}", "{q} {a}.", "Question: {q}\nAnswer: {a}", "Q: {q} A: {a}", "{q}\n{a}")
FOREIGN: Final = ("es", "de", "hi", "vi", "zh", "ar")
"""The languages of the questions over English paragraphs: MLQA's, of which no text is read."""
_NOT_ALONE: Final = frozenset({"qamr", "selqa", "fairytales"})
"""Sources whose questions mean nothing without their text, or have sentences as answers."""
_ASKED_ALONE: Final = (
    *_ASKED, "{q} {a}.", "{q} {a}.", "{q} The answer is {a}.", "{q} It is {a}.", "Answer this question: {q} {a}.",
    "I have a question: {q} Answer: {a}.", "Please answer: {q} The answer is {a}.",
)  # fmt: skip


class AskedPassage(NamedTuple):
    """A text of a source, its title if it has one, and what is asked of it: questions with their answers."""

    source: str
    title: str
    text: str
    asked: Sequence[tuple[str, str]]


Texts = Callable[[Path, Part, random.Random], Iterator[str]]


def encyclopedia(folder: Path, part: Part, rng: random.Random) -> Iterator[str]:
    """English Wikipedia of 2015: the beginning of each article, cut to rows; a later row begins with the title."""
    for title, body in articles(folder, rng):
        if not part.has("article", title):
            continue
        paragraphs = [line.strip() for line in body[:_ARTICLE_CHARACTERS].split("\n") if len(line) > 60]
        rows = list(_packed(_clean(paragraphs, part.exams), rng.choice(_ROW_LENGTHS)))
        for number, row in enumerate(rows):
            yield row if number == 0 or rng.random() < 0.7 else f"{title}\n{row}"


def statements(folder: Path, exams: Exams, rng: random.Random) -> list[str]:
    """What the encyclopedia says of its articles' things: sentences that begin with the title, without brackets, in a
    drawn order. None has eight words in a row of an exam.

    Raises:
        FileNotFoundError: if there are none.
    """
    found = []
    for title, body in articles(folder, rng):
        name = _BRACKETS.sub("", title)
        paragraphs = [line for line in body[:_ARTICLE_CHARACTERS].split("\n") if len(line) > 60]
        for sentence in SENTENCE.split(" ".join(_clean(paragraphs, exams))):
            plain = _BRACKETS.sub("", sentence)
            on_it = plain.startswith((f"{name} ", f"The {name} ")) and plain.endswith(".")
            if on_it and len(plain.split()) in _STATEMENT_WORDS and not exams.overlaps(plain, 1):
                found.append(plain)
    if not found:
        raise FileNotFoundError(f"{folder}/enwiki2015/text holds no article with a sentence that begins with its title")
    return rng.sample(found, len(found))


def articles(folder: Path, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Title and text of each article that is no list of meanings, file by file in a drawn order."""
    paths = sorted((folder / "enwiki2015/text").glob("*/wiki_*"))
    for path in rng.sample(paths, len(paths)):
        for title, body in _DOCUMENT.findall(path.read_text(encoding="utf-8")):
            text = body.partition("\n")[2].strip()
            if title not in _EXAM_ARTICLES and "may refer to:" not in text[:300]:
                yield html.unescape(title), html.unescape(text)


def news(folder: Path, part: Part, rng: random.Random) -> Iterator[str]:
    """Wikinews, of 200 characters and more."""
    for path in sorted((folder / "enwikinews2022/text").glob("*/*")):
        for line in path.read_text(encoding="utf-8").splitlines():
            text = json.loads(line)["text"]
            if len(text) >= 200 and part.has("news", text):
                yield from _packed(_clean(text.split("\n"), part.exams))


def stories(folder: Path, part: Part, rng: random.Random) -> Iterator[str]:
    """FairytaleQA's stories."""
    for path in sorted(folder.glob("fairytaleqa/**/*-story.csv")):
        if not part.has("story", path.stem.removesuffix("-story")):
            continue
        sections = [" ".join(row["text"].split()) for row in _rows(path, ",")]
        yield from _packed(sections)


def definitions(folder: Path, part: Part, rng: random.Random) -> Iterator[str]:
    """Open English WordNet's definitions, several a row."""
    lines: list[str] = []
    for path in sorted((folder / "open_english_wordnet/src/yaml").glob("*.yaml")):
        for block in re.split(r"\n(?=\d{8}-)", path.read_text(encoding="utf-8")):
            meaning = re.search(r"definition:\n  - (.*?)\n  [a-z]", block, re.DOTALL)
            members = re.search(r"members:\n((?:  - .*\n?)+)", block)
            if meaning and members:
                word = members[1].split("\n")[0].removeprefix("  - ").strip("'\" ").replace("_", " ")
                means = " ".join(meaning[1].split()).strip("'\"")
                lines.append(rng.choice(("{w}: {m}", "{w} means {m}.", "What is {w}? {m}.")).format(w=word, m=means))
    rng.shuffle(lines)
    yield from _packed(lines, 400)


def reading(folder: Path, part: Part, rng: random.Random) -> Iterator[str]:
    """Paragraphs with questions and their answers: SQuAD, TyDi, QAMR, SelQA, FairytaleQA."""
    for passage in passages(folder, part):
        asked = list(passage.asked)
        rng.shuffle(asked)
        for at in range(0, len(asked), 3):
            lines = "\n".join(_asked(question, answer, rng) for question, answer in asked[at : at + 3])
            text = passage.text
            yield f"{lines}\n{text}" if rng.random() < _ASKED_FIRST_SHARE else f"{text}\n{lines}"


def passages(folder: Path, part: Part) -> Iterator[AskedPassage]:
    """Passages with questions, without those that the exams ask."""
    every = chain(squad(folder, part.exams.ids), tydi(folder), qamr(folder), selqa(folder), fairytales(folder))
    for passage in every:
        if part.has("passage", passage.text):
            asked = [(question, answer) for question, answer in passage.asked if not part.exams.overlaps(question, 3)]
            yield passage._replace(asked=asked)


def answering_sentences(folder: Path, part: Part) -> Iterator[tuple[str, str, str, str]]:
    """Question, answer, the sentence of the passage that has it, and the passage's title, if there is one."""
    for passage in passages(folder, part):
        sentences = SENTENCE.split(passage.text)
        for question, answer in passage.asked:
            found = next((one for one in sentences if f" {answer}" in one), None)
            if found is not None and len(found) < _LONGEST_SENTENCE:
                yield question, answer, found, passage.title


def questions(folder: Path, part: Part, rng: random.Random) -> Iterator[str]:
    """Each question of `reading` and `trivia` alone, with its answer; for the teaching."""
    asked = questions_alone(folder, part)
    for question, answers in rng.sample(asked, len(asked)):
        form = rng.choice(_ASKED_ALONE)
        yield form.format(q=question, a=answers[0].rstrip("."))


def questions_alone(folder: Path, part: Part) -> list[tuple[str, Sequence[str]]]:
    """The questions that mean something without a text, with their right answers, the usual one first."""
    alone = (passage for passage in passages(folder, part) if passage.source not in _NOT_ALONE)
    asked = [(question, (answer,)) for passage in alone for question, answer in passage.asked]
    return [*trivia_questions(folder, part), *asked]


def trivia(folder: Path, part: Part, rng: random.Random) -> Iterator[str]:
    """Questions with their answers alone, several a row: WebQuestions' part for training and OpenTriviaQA."""
    lines = [_asked(question, answers[0], rng) for question, answers in trivia_questions(folder, part)]
    rng.shuffle(lines)
    yield from _packed(lines, 300)


def trivia_questions(folder: Path, part: Part) -> Iterator[tuple[str, Sequence[str]]]:
    """Questions with right answers, the first of them the usual one."""
    found = json.loads((folder / "webquestions_trainmodel/main/trainmodel.json").read_text(encoding="utf-8"))
    asked = [(row["qText"].capitalize(), row["answers"]) for row in found]
    for path in sorted((folder / "opentriviaqa/categories").iterdir()):
        if path.name == "brain-teasers":
            continue
        for question, answer in re.findall(r"#Q (.+?)\n\^ (.+?)\n", path.read_text(encoding="latin-1")):
            if "which of the" not in question.lower() and "?" in question and not part.exams.overlaps(question, 3):
                asked.append((question.strip(), [answer.strip()]))
    return ((question, answers) for question, answers in asked if part.has("trivia", question))


def grade_school(folder: Path, part: Part, rng: random.Random) -> Iterator[str]:
    """GSM8K's training problems with their solutions in plain numbers."""
    for row in school_problems(folder, part):
        solution, _, answer = re.sub(r"<<[^<>]*>>", "", row["answer"]).partition("\n#### ")
        ending = rng.choice(("The answer is {}.", "Answer: {}", "{}")).format(answer)
        yield f"{row['question']}{rng.choice((' ', chr(10)))}{solution}\n{ending}"


def school_problems(folder: Path, part: Part) -> Iterator[dict[str, str]]:
    """GSM8K's training problems: ``question``, and ``answer`` with annotations."""
    for row in _json_lines(folder / "gsm8k/grade_school_math/data/train.jsonl"):
        if part.has("problem", row["question"]) and not part.exams.overlaps(row["question"], 3):
            yield row


def one_step(folder: Path, part: Part, rng: random.Random) -> Iterator[str]:
    """One-step problems cut from GSM8K's."""
    for row in school_problems(folder, part):
        for problem in cut(row["question"], row["answer"]):
            yield f"{problem.text} {problem.answer}{problem.goes_on}".replace("$ ", "$")


def exercises(folder: Path, part: Part, rng: random.Random) -> Iterator[str]:
    """OpenStax's exercises in words, with solutions; what needs formulas is left out."""
    seen: set[str] = set()
    for path in sorted((folder / "openstax_prealgebra/modules").glob("*/index.cnxml")):
        for exercise in re.findall(r"<exercise.*?</exercise>", path.read_text(encoding="utf-8"), re.DOTALL):
            asked, _, solved = exercise.partition("<solution")
            if solved and "<m:" not in asked and "<m:" not in solved and "<media" not in exercise:
                question, answer = (
                    " ".join(html.unescape(_TAG.sub(" ", one)).split()) for one in (asked, f"<{solved}")
                )
                if len(question) > 60 and answer and question not in seen and not part.exams.overlaps(question, 3):
                    seen.add(question)
                    if part.has("exercise", question):
                        yield f"{question} {answer}"


def countries(folder: Path, part: Part, rng: random.Random) -> Iterator[str]:
    """The World Factbook's fields as one sentence each."""
    for path in sorted((folder / "factbook").glob("*/*.json")):
        about = json.loads(path.read_text(encoding="utf-8"))
        name = about.get("Government", {}).get("Country name", {}).get("conventional short form", {}).get("text", "")
        if not name or name == "none":
            continue
        lines = [f"{name}. {field}: {said}" for section in about.values() for field, said in _said(section)]
        yield from _packed(lines)


def dated(folder: Path, part: Part, rng: random.Random) -> Iterator[str]:
    """Sentences with a day that is counted from another, resolved (Recognizers-Text's specifications)."""
    for name in ("DateParser", "MergedParser", "DateTimeParser"):
        path = folder / f"recognizers_text_en/Specs/DateTime/English/{name}.json"
        for row in json.loads(path.read_text(encoding="utf-8-sig")):
            day = row.get("Context", {}).get("ReferenceDateTime", "")[:10]
            for result in row.get("Results", ()):
                value = result.get("Value")
                resolved = value.get("FutureResolution", {}).get("date") if isinstance(value, dict) else None
                if day and resolved:
                    yield f"Today is {day}. {row['Input']} ({result['Text']} is {resolved}.)"


def squad(folder: Path, exams: Collection[str] = ()) -> Iterator[AskedPassage]:
    """SQuAD 1.1's dev part, without the questions whose ids are in ``exams``."""
    question = re.compile(r'data-id="(\w+)".*?class="question">(.*?)</strong>.*?class="answer">(.*?)</span>', re.DOTALL)
    for path in sorted((folder / "squad_v1.1_dev_html/explore/1.1/dev").glob("*.html")):
        for part in path.read_text(encoding="utf-8").split("<pre>")[1:]:
            context, _, asked = part.partition("</pre>")
            fine = [(q, a) for name, q, a in question.findall(asked) if name not in exams]
            pairs = [(html.unescape(q), html.unescape(a)) for q, a in fine]
            yield AskedPassage("squad", path.stem.replace("_", " "), html.unescape(context), pairs)


def tydi(folder: Path) -> Iterator[AskedPassage]:
    """TyDi QA's English gold passages, the training part."""
    for path in sorted(folder.glob("tydiqa_goldp_en/*train/*.json")):
        for paragraph in _asked_paragraphs(path):
            asked = [(one["question"], one["answers"][0]["text"]) for one in paragraph["qas"]]
            text = re.sub(r"\[\d+\](?::\d+)?", "", paragraph["context"])[:ROW_CHARACTERS]
            yield AskedPassage("tydi", "", text, asked)


def _asked_paragraphs(path: Path) -> Iterator[dict[str, Any]]:
    """The paragraphs of a file in SQuAD's form."""
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        yield from article["paragraphs"]


def foreign_questions(folder: Path, exams: Exams) -> Iterator[tuple[str, str, str]]:
    """XQuAD's questions in other languages: the English paragraph, the question, the English answer. Without those that
    the exams ask, in English."""
    english: dict[str, tuple[str, str]] = {}
    for paragraph in _asked_paragraphs(folder / "xquad/xquad.en.json"):
        for one in paragraph["qas"]:
            if one["id"] not in exams.ids and not exams.overlaps(one["question"], 3):
                english[one["id"]] = (paragraph["context"], one["answers"][0]["text"])
    for language in FOREIGN:
        for paragraph in _asked_paragraphs(folder / f"xquad/xquad.{language}.json"):
            for one in paragraph["qas"]:
                if one["id"] in english:
                    text, answer = english[one["id"]]
                    yield text, one["question"], answer


def qamr(folder: Path) -> Iterator[AskedPassage]:
    """QAMR's sentences with questions."""
    for path in sorted((folder / "qamr/data/readable").glob("*.tsv")):
        for block in path.read_text(encoding="utf-8").split("\n\n"):
            lines = [line for line in block.splitlines() if line and not line.startswith("#")]
            pairs = [re.split(r"\t| {3,}", line) for line in lines[1:]]
            if lines:
                asked = [(pair[0].strip(), pair[1].strip()) for pair in pairs if len(pair) > 1]
                yield AskedPassage("qamr", "", lines[0], asked)


def selqa(folder: Path) -> Iterator[AskedPassage]:
    """SelQA: a question, and the sentence that answers it, under the heading alone."""
    for path in sorted((folder / "selqa/ass").glob("*.json")):
        for row in json.loads(path.read_text(encoding="utf-8")):
            if row["answers"]:
                answer = row["candidates"][row["answers"][0]]
                yield AskedPassage("selqa", "", f"{row['article']}: {row['section']}", [(row["question"], answer)])


def fairytales(folder: Path) -> Iterator[AskedPassage]:
    """FairytaleQA's questions whose answer is in the text."""
    for path in sorted(folder.glob("fairytaleqa/**/*-questions.csv")):
        story = Path(str(path).replace("questions", "section-stories", 1).replace("-questions.csv", "-story.csv"))
        if not story.exists():
            story = next(iter(folder.glob(f"fairytaleqa/**/{path.name.replace('-questions', '-story')}")), path)
        sections = {row.get("section"): row.get("text") for row in _rows(story, ",")}
        title = path.stem.removesuffix("-questions").replace("-", " ")
        for row in _rows(path, ","):
            context = sections.get(row.get("cor_section"))
            if context and row.get("ex-or-im1") == "explicit" and row.get("answer1"):
                text = " ".join(context.split())[-ROW_CHARACTERS:]
                yield AskedPassage("fairytales", title, text, [(row["question"].capitalize(), row["answer1"])])


SOURCES: Final[Mapping[str, Texts]] = {
    "encyclopedia": encyclopedia, "news": news, "stories": stories, "definitions": definitions, "reading": reading,
    "trivia": trivia, "grade school": grade_school, "one step": one_step, "exercises": exercises,
    "countries": countries, "dated": dated, "questions": questions,
}  # fmt: skip
"""Every source by the name that a mixture calls it."""


def _asked(question: str, answer: str, rng: random.Random) -> str:
    return rng.choice(_ASKED).format(q=question, a=answer.rstrip("."))


def _clean(paragraphs: Sequence[str], exams: Exams) -> Iterator[str]:
    """Paragraphs without sentences that have a gap or that the exams have."""
    for paragraph in paragraphs:
        if exams.overlaps(paragraph) or _GAP.search(paragraph):
            sentences = SENTENCE.split(paragraph)
            paragraph = " ".join(one for one in sentences if not _GAP.search(one) and not exams.overlaps(one))
        if len(paragraph) > 40:
            yield paragraph


def _packed(paragraphs: Iterator[str] | list[str], characters: int = ROW_CHARACTERS) -> Iterator[str]:
    """Paragraphs in rows of about ``characters``."""
    row, length = [], 0
    for paragraph in paragraphs:
        row.append(paragraph)
        length += len(paragraph)
        if length >= characters:
            yield "\n".join(row)
            row, length = [], 0
    if row:
        yield "\n".join(row)


def _said(section: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for field, value in section.items():
        if isinstance(value, dict):
            if isinstance(value.get("text"), str):
                yield field, " ".join(html.unescape(_TAG.sub(" ", value["text"])).split())
            else:
                yield from ((f"{field}, {part}", said) for part, said in _said(value))


def _rows(path: Path, delimiter: str) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter=delimiter)


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)
