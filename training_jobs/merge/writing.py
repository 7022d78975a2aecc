"""The files of C*, written whole or not at all.

In the folder, a line each text, in the order of their ids, the same texts in all three:

- ``with_calls.jsonl``: C* (`Merged`); ``without_calls.jsonl``: the baseline C (`Plain`)
- ``documents.jsonl``: the plain texts with url and date (`Document`), which the next round needs

and ``summary.json``: the rule, the table's counts, the files' digests. The same input gives the same bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from toolformer.model_files.whole import whole
from toolformer.tools import ToolRegistry
from training_jobs.errors import StageError
from training_jobs.merge.choosing import KeptCall, MergeRule, chosen, drawn_by_tool
from training_jobs.merge.earlier import Earlier
from training_jobs.merge.kept import KeptTexts, gather
from training_jobs.merge.putting import calls_in, plain, put
from training_jobs.merge.table import ToolCounts
from training_jobs.records import Annotated, Document, Merged, Plain, Record
from training_jobs.run_folder import WITH_CALLS
from training_jobs.runner.parts import write_json

WITHOUT_CALLS: Final = "without_calls.jsonl"
DOCUMENTS: Final = "documents.jsonl"
SUMMARY: Final = "summary.json"


def merge(
    files: Mapping[str, Path],
    out: Path,
    rule: MergeRule,
    registry: ToolRegistry,
    *,
    earlier: Earlier | None = None,
    saw: Callable[[], None] = lambda: None,
) -> dict[str, ToolCounts]:
    """Merge each tool's filtered file into ``out`` and return the counts; ``saw`` is called with each text read.

    ``earlier`` is the C* of the round before, whose texts were annotated: they keep the calls they have.

    Raises:
        StageError: if a file is not what it should be.
    """
    counts = {tool: ToolCounts() for tool in files}

    def see(record: Annotated) -> None:
        counts[record.tool].see(record)
        saw()

    kept = gather(files, see, strict=rule.strict)
    of_tool = drawn_by_tool(_tools_and_texts(kept, earlier), rule)
    ids = sorted(kept.calls.keys() | (earlier.texts.keys() if earlier else set()))
    out.mkdir(parents=True, exist_ok=True)
    texts, digests = _write(out, ids, lambda id_: _text(id_, kept, of_tool, rule, registry, earlier), counts)
    summary = {
        "rule": asdict(rule),
        "texts": texts,
        "tools": {tool: one.as_json() for tool, one in counts.items()},
        "sha256": digests,
    }
    write_json(out / SUMMARY, summary)
    return counts


def read_summary(folder: Path) -> dict[str, tuple[int, int]]:
    """Of each tool the texts and calls that C* in ``folder`` has; nothing where there is no C*."""
    try:
        tools = json.loads((folder / SUMMARY).read_bytes())["tools"]
    except FileNotFoundError:
        return {}
    return {tool: (one["texts of it in C*"], one["calls of it in C*"]) for tool, one in tools.items()}


def read_rule(folder: Path) -> MergeRule:
    """The rule by which C* in ``folder`` was made; the usual one where there is none."""
    try:
        return MergeRule(**json.loads((folder / SUMMARY).read_bytes())["rule"])
    except FileNotFoundError:
        return MergeRule()


def _tools_and_texts(kept: KeptTexts, earlier: Earlier | None) -> Iterator[tuple[str, str]]:
    """The tool and the text's id of each call."""
    for id_, calls in kept.calls.items():
        yield from ((call.tool, id_) for call in calls)
    for id_, text in earlier.texts.items() if earlier else ():
        yield from ((call.tool, id_) for call in calls_in(text.segments))


def _text(
    id_: str,
    kept: KeptTexts,
    of_tool: Mapping[str, set[str]],
    rule: MergeRule,
    registry: ToolRegistry,
    earlier: Earlier | None,
) -> tuple[Merged, Document]:
    calls: list[KeptCall] = [call for call in kept.calls.get(id_, ()) if id_ in of_tool[call.tool]]
    if earlier is None:
        document = kept.document(id_)
        return put(chosen(calls, rule), Merged(id_, (document.text,), ()), registry), document
    if id_ not in earlier.texts:
        raise StageError(f"{id_!r} is not in the C* of the round before: annotate that one's texts")
    before = earlier.texts[id_]
    if calls and kept.document(id_).text != earlier.rendered(id_, registry):
        raise StageError(f"{id_!r} is another text in the C* of the round before: annotate that one's texts")
    known = {(call.tool, call.input) for call in calls_in(before.segments)}
    new = [call for call in calls if (call.tool, call.input) not in known]
    return put(chosen(new, rule), before, registry), earlier.document(id_)


def _write(
    out: Path, ids: list[str], text: Callable[[str], tuple[Merged, Document]], counts: dict[str, ToolCounts]
) -> tuple[int, dict[str, str]]:
    """Write the three files; how many texts they have, and their digests."""
    texts = 0
    names = (WITH_CALLS, WITHOUT_CALLS, DOCUMENTS)
    digests: dict[str, Any] = {name: hashlib.sha256() for name in names}
    with contextlib.ExitStack() as stack:
        files = {name: stack.enter_context(stack.enter_context(whole(out / name)).open("wb")) for name in names}
        for id_ in ids:
            try:
                merged, document = text(id_)
            except ValueError as error:
                raise StageError(f"{error}: the filtered files are damaged or foreign; annotate again") from error
            if not merged.gains:  # drawn for none of its tools
                continue
            if plain(merged.segments) != document.text:
                raise StageError(f"{id_!r}: the text without its calls is not the document; annotate again")
            texts += 1
            records: tuple[Record, ...] = (merged, Plain(id_, (document.text,)), document)
            for name, record in zip(names, records, strict=True):
                line = record.to_line().encode("utf-8")
                digests[name].update(line)
                files[name].write(line)
            for tool, number in Counter(call.tool for call in calls_in(merged.segments)).items():
                counts.setdefault(tool, ToolCounts())
                counts[tool].merged_texts += 1
                counts[tool].merged_calls += number
    return texts, {name: digest.hexdigest() for name, digest in digests.items()}
