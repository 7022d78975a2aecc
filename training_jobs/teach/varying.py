"""Texts around a tool's demonstrations, for a tool without texts: the same sentences with other numbers and words.

    python -m training_jobs.teach.varying --tool Convert --out TEXTS --documents 1000

What is in a call's input and in the text before it is changed: numbers to others of about their length, words to those
that other demonstrations have at the same place of an input. The tool is asked again, and its answer takes the old
one's place, so each text is as true as the tool. Writes ``TEXTS/texts.jsonl`` (documents) and ``TEXTS/calls.jsonl``:
the demonstrations' calls there, in the form that ``--proposals`` reads.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from toolformer.api_call import OPEN, scan_call
from toolformer.calls_in_text import call_spans
from toolformer.model_files.whole import write_whole
from toolformer.tool_client import ToolClient
from toolformer.tools import Demonstration, Tool, ToolRegistry
from training_jobs.errors import NothingKept
from training_jobs.execute.asking import ExecuteSettings, Question, ask_each
from training_jobs.options import job_parser, run_command
from training_jobs.records import Document, ProposedCall, ProposedCalls
from training_jobs.settings import positive

TEXTS_FILE: Final = "texts.jsonl"
CALLS_FILE: Final = "calls.jsonl"

_EXAMPLES = """
python -m training_jobs.teach.varying --tool Convert --out TEXTS --documents 1000
"""
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_WORD: Final = re.compile(rf"{_NUMBER.pattern}|[^\W\d]+|[^\w\s]")
_ROUND: Final = 200
"""Texts drawn before the tool is asked about them."""
_MOST_ROUNDS: Final = 5
"""Times as many texts are drawn as are wanted: some come twice, some have no answer."""

Pools = Mapping[tuple[int, int], Sequence[str]]
"""The words of the demonstrations' inputs, by how many an input has, and the word's place."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """A text around its calls: ``texts`` before the first, between two, behind the last; ``inputs`` are the calls'.
    Instead of answers the texts have the marks of `_mark`."""

    texts: tuple[str, ...]
    inputs: tuple[str, ...]

    def filled(self, answers: Sequence[str]) -> tuple[str, list[int]]:
        """The text with the ``answers`` to its calls, and where each call belongs."""
        filled = list(self.texts)
        for number, answer in enumerate(answers):
            filled = [text.replace(_mark(number), answer) for text in filled]
        return "".join(filled), [sum(map(len, filled[:at])) for at in range(1, len(filled))]


def pieces_of(demonstration: Demonstration, tool: Tool) -> Pieces:
    """``demonstration`` around its calls, still with the answers."""
    output, tools = demonstration.output, ToolRegistry([tool])
    spans = list(call_spans(output, tools))
    calls = [scan_call(output[span.start + len(OPEN) :], tools.quoted_names).call for span in spans]
    edges = [0, *(edge for span in spans for edge in (span.start, span.stop)), len(output)]
    return Pieces(
        tuple(output[begin:end] for begin, end in list(pairwise(edges))[::2]),
        tuple(call.input.strip() for call in calls if call is not None),
    )


def without_answers(pieces: Pieces, answers: Sequence[str] | None) -> Pieces | None:
    """``pieces`` with marks for the tool's ``answers``; ``None`` if there are none, or one is not right behind its
    call."""
    behind = pieces.texts[1:]
    if answers is None or not all(
        re.match(rf"\s*{_whole(said)}", text) for text, said in zip(behind, answers, strict=True)
    ):
        return None
    texts = pieces.texts
    for number, said in enumerate(answers):
        texts = tuple(re.sub(_whole(said), _mark(number), text) for text in texts)
    return Pieces(texts, pieces.inputs)


def pools_of(inputs: Sequence[str]) -> Pools:
    """The words at each place of those ``inputs`` that have equally many."""
    found: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for words in map(_WORD.findall, inputs):
        for place, word in enumerate(words):
            found[len(words), place].append(word)
    return found


def varied(pieces: Pieces, pools: Pools, draw: random.Random) -> Pieces | None:
    """``pieces`` with other numbers and words; ``None`` if this draw changed nothing, or made two words one."""
    before: set[str] = set()
    changes: dict[str, str] = {}
    for text, input_ in zip(pieces.texts[:-1], pieces.inputs, strict=True):
        before.update(_WORD.findall(text))
        words = _WORD.findall(input_)
        for place, word in enumerate(words):
            # What is only behind the call cannot be known there; left as it is, it belongs to the sentence.
            if word in before and word not in changes:
                known = pools[len(words), place]
                changes[word] = _number(word, draw) if _NUMBER.fullmatch(word) else draw.choice(known)
    if len(set(changes.values())) < len(changes) or all(old == new for old, new in changes.items()):
        return None

    def changed(text: str) -> str:
        return _WORD.sub(lambda found: changes.get(found[0], found[0]), text)

    return Pieces(tuple(map(changed, pieces.texts)), tuple(map(changed, pieces.inputs)))


async def texts_around(tool: Tool, client: ToolClient, count: int, seed: int) -> list[tuple[Document, ProposedCalls]]:
    """Up to ``count`` different texts around the demonstrations of ``tool``, whose service is asked, with their calls.

    Raises:
        NothingKept: if no demonstration can be varied.
        StageError: if the service stays away.
    """
    draw = random.Random(seed)
    shown = [pieces_of(demonstration, tool) for demonstration in tool.demonstrations]
    pools = pools_of([input_ for one in shown for input_ in one.inputs])
    said = await _answers(client, tool, shown)
    templates = [made for one, answers in zip(shown, said, strict=True) if (made := without_answers(one, answers))]
    found: dict[str, tuple[ProposedCall, ...]] = {}
    for _ in range(_MOST_ROUNDS * -(-count // _ROUND) if templates else 0):
        drawn = [one for _ in range(_ROUND) if (one := varied(draw.choice(templates), pools, draw))]
        for one, answers in zip(drawn, await _answers(client, tool, drawn), strict=True):
            if answers is not None and len(found) < count:
                text, offsets = one.filled(answers)
                calls = zip(offsets, one.inputs, answers, strict=True)
                found[text] = tuple(ProposedCall(tool.name, *call) for call in calls)
    if not found:
        compared = [f"  {d.output} (the tool: {answers})" for d, answers in zip(tool.demonstrations, said, strict=True)]
        raise NothingKept(
            f"{tool.name}: no text can be made of its demonstrations, such as\n" + "\n".join(compared[:3]) + "\n  try: "
            "demonstrations in which the tool's own answer is right behind each call, and the words or numbers of a "
            "call's input are before it; or your own texts (--texts)"
        )
    ids = (f"varied-{seed}-{number:06d}" for number in range(len(found)))
    return [
        (Document(id_, text, source="varied"), ProposedCalls(id_, calls))
        for id_, (text, calls) in zip(ids, found.items(), strict=True)
    ]


async def _answers(client: ToolClient, tool: Tool, some: Sequence[Pieces]) -> list[list[str] | None]:
    """What the tool answers to the calls of each, ``None`` where it has no answer to one."""
    inputs = list(dict.fromkeys(input_ for one in some for input_ in one.inputs))
    questions = [(tool.name, Question(input_)) for input_ in inputs]
    outcomes = await ask_each(client, ToolRegistry([tool]), questions, ExecuteSettings())
    known = {input_: said for input_, said in zip(inputs, outcomes, strict=True) if isinstance(said, str)}
    return [[known[i] for i in one.inputs] if known.keys() >= set(one.inputs) else None for one in some]


def _number(like: str, draw: random.Random) -> str:
    whole, _, decimals = like.partition(".")
    length = draw.randint(1, len(whole) + 1)
    number = str(draw.randint(10 ** (length - 1), 10**length - 1))
    return f"{number}.{draw.randrange(10 ** len(decimals)):0{len(decimals)}}" if decimals else number


def _mark(number: int) -> str:
    """What stands for the answer to a call: a character of private use, which is no text's."""
    return chr(0xE000 + number)


def _whole(answer: str) -> str:
    """The pattern of ``answer`` as whole words or a whole number."""
    return rf"(?<![\w.,]){re.escape(answer)}(?!\w|[.,]\d)"


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this job."""
    parser = job_parser("training_jobs.teach.varying", (__doc__ or "").splitlines()[0], _EXAMPLES)
    parser.add_argument("--tool", required=True, metavar="NAME", help="its service must be up")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help=f"for {TEXTS_FILE} and {CALLS_FILE}")
    parser.add_argument("--documents", type=positive, default=1_000, help="texts to make, at most (1,000)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed asks the tool the same (0)")
    run_command(parser, _run, arguments)


def _run(options: argparse.Namespace) -> None:
    tool = ToolRegistry.load().named(options.tool)
    made = asyncio.run(_ask(tool, options.documents, options.seed))
    options.out.mkdir(parents=True, exist_ok=True)
    write_whole(options.out / CALLS_FILE, "".join(calls.to_line() for _, calls in made))
    write_whole(options.out / TEXTS_FILE, "".join(document.to_line() for document, _ in made))
    print(f"{len(made):,} texts around {len(tool.demonstrations)} demonstrations, in {options.out}")


async def _ask(tool: Tool, count: int, seed: int) -> list[tuple[Document, ProposedCalls]]:
    async with ToolClient(ToolRegistry([tool])) as client:
        return await texts_around(tool, client, count, seed)


if __name__ == "__main__":
    main()
