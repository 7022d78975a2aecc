"""Texts in which a second search answers, of what a model searched and of the service's further snippets."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from services.base import Call, ServiceInfo, ToolFailure, create_app
from tests.training_jobs.servers import serve
from training_jobs.evaluate.answers import Answer
from training_jobs.evaluate.answers import Call as Asked
from training_jobs.records import CallSegment, Merged
from training_jobs.teach import searching_on

_SNIPPETS = {"Oslo #2": "Oslo > Its mayor is new.", "Oslo #3": "Oslo > Its zone is Europe/Oslo."}


class _Search:
    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def answer(self, calls: Sequence[Call]) -> list[str | ToolFailure]:
        missing = ToolFailure("no_result", "there is no such snippet")
        return [_SNIPPETS.get(call.input, missing) for call in calls]


def _answer(id_: str, said: str, tool: str = "WikiSearch", query: str = "Oslo") -> Answer:
    calls = (Asked(tool, query, said, None),)
    return Answer(id_, "search", "Oslo's zone is", None, ("Europe/Oslo",), calls=calls)


def test_a_search_that_does_not_answer_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = "Oslo > It lies by a fjord."
    answers = [
        _answer("a", first),
        _answer("answered", "Oslo > Its zone is Europe/Oslo."),
        _answer("another tool", first, tool="QA"),
        _answer("no such snippet", first, query="Bergen"),
    ]
    asked, out = tmp_path / "asked.jsonl", tmp_path / "chains.jsonl"
    asked.write_text("".join(answer.to_line() for answer in answers))
    info = ServiceInfo(
        tool="WikiSearch", service="wiki_search", title="Search", description="Searches.", version="1.0.0",
        input_description="A query.", example_input="Oslo", example_output="Oslo",
    )  # fmt: skip
    with serve(create_app(info, _Search())) as url:
        monkeypatch.setenv("TOOLFORMER_TOOL_WIKISEARCH_URL", url)
        searching_on.main(["chains", str(asked), "--out", str(out)])
        with pytest.raises(SystemExit, match="3"):
            searching_on.main(["chains", str(asked), "--out", str(tmp_path / "none.jsonl"), "--most", "2"])
    [text] = [Merged.from_line(line) for line in out.read_text().splitlines()]
    searches = [
        CallSegment("WikiSearch", "Oslo", first),
        *(CallSegment("WikiSearch", *one) for one in _SNIPPETS.items()),
    ]
    assert text == Merged("a", ("Oslo's zone is", *searches, " Europe/Oslo."), (0.0, 0.0, 0.0))


def test_prompts_end_where_a_search_helps(tmp_path: Path) -> None:
    texts, truth, out = tmp_path / "web-0.json.gz", tmp_path / "truth.jsonl", tmp_path / "prompts.jsonl"
    text = "Its zone is (UTC+1). 4 + 4 is 8."
    texts.write_bytes(gzip.compress(json.dumps({"id": "d", "url": "", "raw_content": text}).encode() + b"\n"))
    calls = [
        {"tool": "WikiSearch", "offset": 11, "input": "Oslo zone", "answer": "(UTC+1)"},
        {"tool": "Calculator", "offset": 28, "input": "4 + 4", "answer": "8"},
    ]
    truth.write_text(json.dumps({"id": "d", "calls": calls}) + "\n")
    searching_on.main(["prompts", str(texts), "--truth", str(truth), "--out", str(out)])
    [line] = map(json.loads, out.read_text().splitlines())
    assert line == {
        "id": "d-0", "kind": "search", "prompt": "Its zone is", "tool": "WikiSearch", "accept": ["\\(UTC\\+1\\)"],
    }  # fmt: skip
