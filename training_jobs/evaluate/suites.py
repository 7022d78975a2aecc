"""Every suite by name: how it is read, asked and judged, and which tool it bars (section 4.2 of the paper)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from demo_world.splits import stable_hash
from demo_world.suites import SPLITS, TOOLS, items, questions
from toolformer.names import did_you_mean, find_name
from training_jobs.evaluate.dateset import dateset
from training_jobs.evaluate.example import Example, LoadedSuite, SuiteError
from training_jobs.evaluate.prompts import Form
from training_jobs.evaluate.readers import lama, mlqa, open_questions, question_file, word_problems
from training_jobs.evaluate.scoring import FIRST_FIVE, FIRST_NUMBER, FIRST_TEN, FIRST_TWENTY, PATTERNS, Rule

_Read = Callable[[Sequence[Path]], LoadedSuite]
_Make = Callable[[int, int], LoadedSuite]


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite of questions.

    Args:
        name: what the command calls it.
        title: its heading in tables.
        table: the table that it is in.
        form: how the paper's prompt asks it.
        rule: when an answer is right.
        barred: tools that may not be called.
        files: patterns of its files in the data folder, those of one suite in order; empty for generated ones.
        read: reads the files.
        make: generates it, given a count and a seed.
    """

    name: str
    title: str
    table: str
    form: Form
    rule: Rule
    barred: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    read: _Read | None = None
    make: _Make | None = None

    def load(self, data: Path | None, files: Sequence[Path] = (), *, count: int, seed: int) -> LoadedSuite:
        """Its examples, from ``files`` or else those found in the folder ``data``; generated ones of ``seed``.

        Raises:
            SuiteError: if there is no such file, or it is not what it should be.
        """
        if self.make is not None:
            return self.make(count, seed)
        assert self.read is not None
        loaded = self.read(files or self.find(data))
        ids = [example.id for example in loaded.examples]
        if len(set(ids)) < len(ids):
            loaded = LoadedSuite(tuple(_numbered(loaded.examples)), loaded.left_out)
        if not loaded.examples:
            raise SuiteError(f"{self.name}: its files hold no example that can be asked; is this another suite's file?")
        return loaded

    def find(self, data: Path | None) -> list[Path]:
        """The suite's files in the folder ``data``.

        Raises:
            SuiteError: if one is not there.
        """
        return find_files(self.name, self.files, data)


def find_files(suite: str, patterns: Sequence[str], data: Path | None) -> list[Path]:
    """The files of ``patterns`` in the folder ``data``.

    Raises:
        SuiteError: if one is not there.
    """
    if data is None:
        raise SuiteError(
            f"{suite}: needs its published files: name their folder with --data, or give --file {suite}=PATH"
        )
    found = []
    for pattern in patterns:
        matching = sorted(data.glob(pattern))
        if not matching:
            raise SuiteError(f"{suite}: there is no {pattern} in {data}; correct --data, or give --file {suite}=PATH")
        found += matching
    return found


def sample(suite: str, examples: Sequence[Example], limit: int | None, seed: int) -> tuple[Example, ...]:
    """``limit`` of the examples, in their order: a larger limit has those of a smaller one in it."""
    if limit is None or limit >= len(examples):
        return tuple(examples)
    order = sorted(range(len(examples)), key=lambda at: stable_hash("sample", suite, str(seed), examples[at].id))
    return tuple(examples[at] for at in sorted(order[:limit]))


def _numbered(examples: Sequence[Example]) -> list[Example]:
    """The examples, later ones of an id that was there before distinguished by a number."""
    seen: Counter[str] = Counter()
    found = []
    for example in examples:
        seen[example.id] += 1
        number = seen[example.id]
        found.append(example if number == 1 else replace(example, id=f"{example.id}#{number}"))
    return found


def _mlqa(language: str) -> tuple[Suite, Suite]:
    foreign = f"mlqa/*/*context-en-question-{language}.json"
    english = "mlqa/*/*context-en-question-en.json"
    form: Form = "question over a paragraph"
    title = f"MLQA {language.capitalize()}"
    return (
        Suite(f"mlqa-{language}", title, "MLQA", form, FIRST_TEN, files=(foreign,), read=mlqa.read_mlqa),
        Suite(
            f"mlqa-{language}-all-english",
            f"{title}, English",
            "MLQA, all English",
            form,
            FIRST_TEN,
            files=(foreign, english),
            read=mlqa.read_mlqa_all_english,
        ),
    )


def _own(name: str, title: str, form: Form, rule: Rule, barred: tuple[str, ...] = ()) -> Suite:
    generated: _Make = lambda count, seed: own_suite(name, count=count, seed=seed)  # noqa: E731 - binds the name
    return Suite(f"own-{name.replace(' ', '-')}", title, "own", form, rule, barred, make=generated)


def _tool(tool: str) -> Suite:
    rule = FIRST_NUMBER if tool == "Calculator" else FIRST_FIVE
    generated: _Make = lambda count, seed: tool_suite(tool, count=count, seed=seed)  # noqa: E731 - binds the tool
    return Suite(f"tools-{tool}", tool, "tools", "as it is", rule, make=generated)


_NO_SEARCH: Final = ("WikiSearch",)
_NO_QA: Final = ("QA",)
_WORD: Final[Form] = "word problem"

_ALL: Final = (
    Suite("squad", "SQuAD", "LAMA", "completion", FIRST_FIVE, _NO_SEARCH, ("lama/Squad/*.jsonl",), lama.read_squad),
    Suite("google-re", "Google-RE", "LAMA", "completion", FIRST_FIVE, _NO_SEARCH, ("lama/Google_RE/*.jsonl",),
          lama.read_google_re),
    Suite("t-rex", "T-REx", "LAMA", "completion", FIRST_FIVE, _NO_SEARCH,
          ("lama/relations.jsonl", "lama/TREx/*.jsonl"), lama.read_t_rex),
    Suite("google-re-sentences", "Google-RE, sentences", "LAMA, sentences", "completion", FIRST_FIVE, _NO_SEARCH,
          ("lama/Google_RE/*.jsonl",), lama.read_google_re_sentences),
    Suite("t-rex-sentences", "T-REx, sentences", "LAMA, sentences", "completion", FIRST_FIVE, _NO_SEARCH,
          ("lama/TREx/*.jsonl",), lama.read_t_rex_sentences),
    Suite("asdiv", "ASDiv", "math", _WORD, FIRST_NUMBER, (), ("asdiv/ASDiv.xml",), word_problems.read_asdiv),
    Suite("svamp", "SVAMP", "math", _WORD, FIRST_NUMBER, (), ("svamp/SVAMP.json",), word_problems.read_svamp),
    Suite("mawps", "MAWPS", "math", _WORD, FIRST_NUMBER, (), ("mawps/*.json",), word_problems.read_mawps),
    Suite("webqs", "WebQS", "QA", "question", FIRST_TWENTY, _NO_QA, ("webquestions/main/test.json",),
          open_questions.read_web_questions),
    Suite("nq", "NQ", "QA", "question", FIRST_TWENTY, _NO_QA, ("nq_open/NQ-open.dev.jsonl",),
          open_questions.read_nq_open),
    Suite("triviaqa", "TriviaQA", "QA", "question", FIRST_TWENTY, _NO_QA, ("triviaqa/*.json*",),
          open_questions.read_trivia_qa),
    *(suite for language in mlqa.LANGUAGES for suite in _mlqa(language)),
    Suite("templama", "TempLAMA", "temporal", "completion", FIRST_FIVE, (), ("templama/*.json*",), lama.read_templama),
    Suite("dateset", "Dateset", "temporal", "question", FIRST_FIVE, (),
          make=lambda count, seed: LoadedSuite(dateset(seed), {})),
    _own("facts", "facts", "completion", FIRST_FIVE, _NO_SEARCH),
    _own("word problems", "word problems", _WORD, FIRST_NUMBER),
    _own("questions", "questions", "question", FIRST_TWENTY, _NO_QA),
    _own("languages", "languages", "question over a paragraph", FIRST_TEN),
    _own("dates", "dates", "question", FIRST_FIVE),
    _own("two calls", "two calls", _WORD, FIRST_TWENTY),
    _own("two calls in one place", "two calls in one place", _WORD, FIRST_FIVE),
    *(_tool(tool) for tool in TOOLS),
)  # fmt: skip

SUITES: Final[Mapping[str, Suite]] = {suite.name: suite for suite in _ALL}
"""Every suite of questions, in the order of tables."""

FILE_TABLE: Final = "file"
"""The table of suites that are somebody's own files."""


def suite_of_file(path: Path) -> Suite:
    """The suite of one's own prompts in the file ``path``, named after it."""
    read = question_file.read_question_file
    return Suite(path.stem, path.stem, FILE_TABLE, "as it is", PATTERNS, files=(str(path),), read=read)


TEXTS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "wikitext": ("WikiText", ("wikitext/wikitext-2-raw/wiki.test.raw",)),
    "ccnet": ("CCNet", ("webtext/derived/*.json.gz",)),
    "own-articles": ("own articles", ()),
}
"""Texts whose perplexity is measured: their title and their files in the data folder."""

_TABLES: Final = {"LAMA": "lama", "LAMA, sentences": "lama-sentences",
                  "math": "math", "QA": "qa", "MLQA": "mlqa", "MLQA, all English": "mlqa",
                  "temporal": "temporal", "own": "own", "tools": "tools"}  # fmt: skip


def _sets() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for suite in _ALL:
        found.setdefault(_TABLES[suite.table], []).append(suite.name)
        if suite.table not in ("own", "tools", "LAMA, sentences"):
            found.setdefault("paper", []).append(suite.name)
    found["paper"] += ["wikitext", "ccnet"]
    found["text"] = ["wikitext", "ccnet"]
    found["own"] += ["own-articles"]
    return {name: tuple(names) for name, names in found.items()}


SETS: Final[Mapping[str, tuple[str, ...]]] = _sets()
"""Names for several suites together."""


def named(names: Sequence[str]) -> tuple[str, ...]:
    """The suites and texts that ``names`` (of suites or sets) stand for, each once.

    Raises:
        SuiteError: for an unknown name.
    """
    found: dict[str, None] = {}
    for name in names:
        known = find_name(name, [*SETS, *SUITES, *TEXTS])
        if known is None:
            raise SuiteError(
                f"--suites: there is no {name!r}; {did_you_mean(name, [*SETS, *SUITES, *TEXTS])}"
                f"sets: {', '.join(SETS)}; suites: {', '.join([*SUITES, *TEXTS])}"
            )
        found |= dict.fromkeys(SETS.get(known, (known,)))
    return tuple(found)


def own_suite(name: str, *, count: int, seed: int) -> LoadedSuite:
    """The suite ``name`` of :data:`demo_world.suites.SUITES`, ``count`` examples for each of its parts."""
    examples = [
        Example(
            f"{part.replace(' ', '-')}-{number}",
            item.text,
            item.answers,
            context=item.context,
            bare=item.bare,
            date=item.date,
            split=item.kind if name.startswith("two calls") else part,
            calls=item.calls,
        )
        for part, found in items(name, count=count, seed=seed).items()
        for number, item in enumerate(found)
    ]
    return LoadedSuite(tuple(examples), {})


def tool_suite(tool: str, *, count: int, seed: int) -> LoadedSuite:
    """The prompts that ask for one ``tool``, ``count`` for each split."""
    examples = [
        Example(
            f"{split.replace(' ', '-')}-{number}",
            question.prompt,
            (question.answer,),
            date=question.date,
            split=split,
            calls=((tool, question.input),),
        )
        for split in SPLITS
        for number, question in enumerate(questions(tool, split, count=count, seed=seed))
    ]
    return LoadedSuite(tuple(examples), {})
