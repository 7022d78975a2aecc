"""Calls in the model's place: from a file, or by a rule in Python. Takes the part of ``annotate``.

    python -m training_jobs.teach.proposing TEXTS.jsonl --run RUN --model MODEL --proposals CALLS.jsonl
    python -m training_jobs.teach.proposing TEXTS.jsonl --run RUN --model MODEL --tools Convert --rule rules:lengths

A line of the file is ``{"id": "a text's", "calls": [{"tool": "Convert", "offset": 24, "input": "12 km in miles"}]}``;
``offset`` counts the characters before the call. The rule is a function from a text to its calls, each a pair of offset
and input. Writes ``RUN/annotate/<Tool>.jsonl``; ``--model`` is the one whose tokens positions count.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from language_model.config import CheckpointError
from language_model.tokenizer import ByteLevelTokenizer
from toolformer.model_files.whole import write_whole
from toolformer.tools import ToolRegistry
from training_jobs.corpora.web.readers import CorpusError, read
from training_jobs.errors import NothingKept, StageError
from training_jobs.options import job_parser, run_command, run_folder
from training_jobs.records import Annotated, Candidate, Document, ProposedCalls, records_in

Call = tuple[str, int, str]
"""A call's tool, the characters before it, its input."""
Propose = Callable[[Document], Iterable[Call]]

_SHOWN: Final = 3
_EXAMPLES = """
python -m training_jobs.teach.proposing texts.jsonl --run RUN --model models/base --proposals calls.jsonl
python -m training_jobs.teach.proposing texts.jsonl --run RUN --model models/base --tools Convert --rule rules:lengths
"""


def from_file(path: Path) -> Propose:
    """Gives a document the calls that ``path`` has for its id.

    Raises:
        StageError: if the file cannot be read.
        RecordError: if a line is not `ProposedCalls`.
    """
    try:
        known = list(records_in(path, ProposedCalls))
    except OSError as error:
        raise StageError(f"--proposals: {path} cannot be read ({error.strerror}); correct the path") from error
    calls = {one.id: [(call.tool, call.offset, call.input) for call in one.calls] for one in known}
    return lambda document: calls.get(document.id, ())


def from_rule(name: str, tool: str) -> Propose:
    """Gives a document the calls of ``tool`` that the function ``name`` (``module:function``) finds in its text.

    Raises:
        StageError: if there is no such function; and where it is called, if it fails or gives something else.
    """
    module, _, function = name.partition(":")
    try:
        rule: Callable[[str], Iterable[tuple[int, str]]] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise StageError(
            f"--rule {name}: {error}; name a function of a module in this folder, as module:function"
        ) from error

    def propose(document: Document) -> Iterator[Call]:
        try:
            yield from ((tool, int(offset), str(input_)) for offset, input_ in rule(document.text))
        except Exception as error:
            raise StageError(
                f"--rule {name}: {error!r}, of the text {document.id!r}; it gives pairs of offset and input"
            ) from error

    return propose


def propose_calls(
    documents: Iterable[Document], propose: Propose, tokenizer: ByteLevelTokenizer, tools: Sequence[str]
) -> Mapping[str, list[Annotated]]:
    """Of each of ``tools`` the documents with a call of it, with their calls; calls of others are left out.

    Raises:
        StageError: if a call is outside of its text.
    """
    found: defaultdict[str, list[Annotated]] = defaultdict(list)
    for document in documents:
        of_tool: defaultdict[str, list[Candidate]] = defaultdict(list)
        for name, offset, input_ in propose(document):
            if name not in tools:
                continue
            if not 0 <= offset <= len(document.text):
                raise StageError(f"{document.id!r}: a call at {offset}; the text has {len(document.text)} characters")
            position = len(tokenizer.encode(document.text[:offset]))
            of_tool[name].append(Candidate(position, offset, 1.0, input_))
        for tool, calls in of_tool.items():
            found[tool].append(Annotated(document, tool, tuple(sorted(calls, key=lambda call: call.offset))))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this job."""
    parser = job_parser("training_jobs.teach.proposing", (__doc__ or "").splitlines()[0], _EXAMPLES)
    parser.add_argument("texts", type=Path, nargs="+", help="CCNet .json.gz, .jsonl (also .gz) or .parquet files")
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="folder of the run")
    parser.add_argument("--model", type=Path, required=True, metavar="DIR", help="the model that will score the calls")
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--proposals", type=Path, metavar="FILE", help="the calls of each text, by its id")
    who.add_argument("--rule", metavar="MODULE:FUNCTION", help="from a text to pairs of offset and input")
    parser.add_argument(
        "--tools", nargs="+", metavar="NAME", help="only calls of these; with --rule the one that its calls are of"
    )
    run_command(parser, _run, arguments)


def _run(options: argparse.Namespace) -> None:
    registry, folder = ToolRegistry.load(), run_folder(options)
    tools = [tool.name for tool in registry.select(options.tools)]
    if options.rule and len(tools) != 1:
        raise StageError("--rule: name the one tool that its calls are of: --tools NAME")
    sys.path.insert(0, "")  # a rule is in the folder where the command is given
    propose = from_rule(options.rule, tools[0]) if options.rule else from_file(options.proposals)
    try:
        documents: list[Document] = [one.document for path in options.texts for one in read(path)]
        tokenizer = ByteLevelTokenizer.from_pretrained(options.model)
    except (CorpusError, CheckpointError) as error:
        raise StageError(str(error)) from error
    found = propose_calls(documents, propose, tokenizer, tools)
    if not found:
        shown = "".join(f"\n  {document.text[:160]!r}" for document in documents[:_SHOWN])
        raise NothingKept(
            f"nothing was proposed for {len(documents):,} texts, such as{shown}\n  try: a rule that finds calls in "
            "them, or proposals with the ids of these texts"
        )
    for tool, annotated in found.items():
        write_whole(folder.target("annotate", tool), "".join(one.to_line() for one in annotated))
        calls = sum(len(one.candidates) for one in annotated)
        print(f"propose {tool}: {calls:,} calls in {len(annotated):,} of {len(documents):,} texts")


if __name__ == "__main__":
    main()
