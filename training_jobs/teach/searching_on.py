"""Texts of searches that go on: where a model's first search does not answer, its second does.

    python -m training_jobs.teach.searching_on prompts WEB/*.gz --truth WEB/truth.jsonl --out prompts.jsonl
    toolformer evaluate --file prompts.jsonl --prompts bare --k 10 --out ASKED
    python -m training_jobs.teach.searching_on chains ASKED/answers/k10-calls1/prompts.jsonl --out chains.jsonl

The second round of the loop for WikiSearch, whose query with ``#2`` behind it gives the next snippet
(services/wiki_search). The prompts are texts up to a place where the generator knows that a search helps. Where the
model searched there and what it found lacks the answer, the same query is asked for its next snippets; if one of them
has the answer, a text of C* is made of the prompt, these searches one behind the other, and the answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from toolformer.model_files.whole import write_whole
from toolformer.tool_client import ToolClient
from toolformer.tools import ToolRegistry
from training_jobs.corpora.web.readers import CorpusError, read
from training_jobs.errors import NothingKept, StageError
from training_jobs.evaluate.answers import Answer, read_records
from training_jobs.execute.asking import ExecuteSettings, Question, ask_each
from training_jobs.options import job_parser, run_command
from training_jobs.records import CallSegment, Merged, ProposedCalls, RecordError, records_in
from training_jobs.settings import positive

TOOL: Final = "WikiSearch"
_EXAMPLES = """
python -m training_jobs.teach.searching_on prompts WEB/generated-*.json.gz --truth WEB/truth.jsonl --out prompts.jsonl
python -m training_jobs.teach.searching_on chains ASKED/answers/k10-calls1/prompts.jsonl --out chains.jsonl
"""


def prompts_of(texts: Sequence[Path], truth: Path) -> Iterator[dict[str, object]]:
    """Lines for ``toolformer evaluate --file``: of each text before the calls of the tool that ``truth`` knows.

    Raises:
        StageError: if a file cannot be read.
    """
    try:
        known = {one.id: one.calls for one in records_in(truth, ProposedCalls)}
        documents = [one.document for path in texts for one in read(path)]
    except (OSError, RecordError, CorpusError) as error:
        raise StageError(f"{truth}, or the texts: cannot be read: {error!r}") from error
    for document in documents:
        for number, call in enumerate(known.get(document.id, ())):
            if call.tool == TOOL and (prompt := document.text[: call.offset].rstrip()):
                accept = [re.escape(call.answer)]
                yield {
                    "id": f"{document.id}-{number}", "kind": "search", "prompt": prompt, "tool": TOOL, "accept": accept,
                }  # fmt: skip


async def chains_of(answers: Sequence[Answer], client: ToolClient, registry: ToolRegistry, most: int) -> list[Merged]:
    """Texts with up to ``most`` searches each, of those ``answers`` whose first search lacks the answer.

    Raises:
        StageError: if the service stays away.
    """
    waiting = {
        answer.id: (answer, [CallSegment(TOOL, answer.calls[0].input, answer.calls[0].output or "")])
        for answer in answers
        if len(answer.calls) == 1 and answer.calls[0].tool == TOOL and answer.calls[0].executed and not _found(answer)
    }
    texts = []
    for number in range(2, most + 1):
        queries = {id_: f"{calls[0].input} #{number}" for id_, (_, calls) in waiting.items()}
        asked = [(TOOL, Question(query)) for query in queries.values()]
        outcomes = await ask_each(client, registry, asked, ExecuteSettings())
        for (id_, query), outcome in zip(queries.items(), outcomes, strict=True):
            answer, calls = waiting[id_]
            if not isinstance(outcome, str):
                del waiting[id_]
                continue
            calls.append(CallSegment(TOOL, query, outcome))
            if right := _right(answer, outcome):
                segments: tuple[str | CallSegment, ...] = (answer.prompt, *calls, f" {right}.")
                texts.append(Merged(id_, segments, (0.0,) * len(calls)))
                del waiting[id_]
    return sorted(texts, key=lambda text: text.id)


def _found(answer: Answer) -> bool:
    return _right(answer, answer.calls[0].output or "") is not None


def _right(answer: Answer, said: str) -> str | None:
    """The right answer in what was ``said``, as a word or words of its own."""
    for accepted in answer.answers:
        if found := re.search(rf"(?<![\w.,]){accepted}(?!\w|[.,]\d)", said):
            return found[0]
    return None


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this job."""
    parser = job_parser("training_jobs.teach.searching_on", (__doc__ or "").splitlines()[0], _EXAMPLES)
    what = parser.add_subparsers(dest="what", required=True)
    prompts = what.add_parser("prompts", help="texts up to a search that helps")
    prompts.add_argument("texts", type=Path, nargs="+", help="as toolformer jobs web generate writes them")
    prompts.add_argument("--truth", type=Path, required=True, metavar="FILE", help="the calls that help in them")
    chains = what.add_parser("chains", help="of a model's answers, texts in which a second search answers")
    chains.add_argument("answers", type=Path, help="of toolformer evaluate, with calls")
    chains.add_argument("--most", type=positive, default=3, help="searches in a text, at most (3)")
    for one in (prompts, chains):
        one.add_argument("--out", type=Path, required=True, metavar="FILE")
    run_command(parser, _run, arguments)


def _run(options: argparse.Namespace) -> None:
    if options.what == "prompts":
        lines = [json.dumps(line, ensure_ascii=False) + "\n" for line in prompts_of(options.texts, options.truth)]
        write_whole(options.out, "".join(lines))
        print(f"{len(lines):,} prompts: {options.out}")
        return
    answers = read_records(options.answers, Answer)
    texts = asyncio.run(_chains(answers, options.most))
    if not texts:
        raise NothingKept(
            f"{options.answers}: no search but the first answers, of {len(answers):,} questions\n  try: more questions"
        )
    write_whole(options.out, "".join(text.to_line() for text in texts))
    print(f"{len(texts):,} texts of {len(answers):,} answers: {options.out}")


async def _chains(answers: Sequence[Answer], most: int) -> list[Merged]:
    registry = ToolRegistry.load()
    async with ToolClient(registry) as client:
        return await chains_of(answers, client, registry, most)


if __name__ == "__main__":
    main()
