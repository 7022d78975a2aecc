"""A later round: the model that was finetuned on C* adds calls to the texts of C*, so that chains of calls arise.

A text of C*, calls and results in it, is a document of the next round. A new call may be before an earlier one and
help to write it (a date, then a question with it), or behind it and use its result (an answer, then arithmetic on it);
none is inside another. The losses of a new call are over that text, so it is kept where it helps to predict what
follows, be that plain text or a call. Every tool is asked about every text (C* is small, and a heuristic that looks at
plain text would not see what a result brings); the calendar only about texts with a date.

``RUN/earlier/with_calls.jsonl`` and ``documents.jsonl`` are the C* of the round before, its results as the model sees
them; they make a run a later round.
"""

from __future__ import annotations

from pathlib import Path

from toolformer.api_call import Tokenizer
from toolformer.tools import ToolRegistry
from training_jobs.merge.earlier import Earlier
from training_jobs.merge.writing import DOCUMENTS
from training_jobs.records import Document
from training_jobs.run_folder import WITH_CALLS, RunFolder
from training_jobs.runner.parts import write_records


def earlier_texts(folder: RunFolder) -> Earlier | None:
    """The C* of the round before, if this is a later round.

    Raises:
        StageError: if its files are not what they should be.
    """
    return Earlier.load(folder.earlier / WITH_CALLS, folder.earlier / DOCUMENTS) if folder.is_later_round else None


def begin_round(folder: RunFolder, merged: Path, tokenizer: Tokenizer, registry: ToolRegistry) -> int:
    """Make the corpus of the next round in ``folder`` from the C* in ``merged``; how many texts it has.

    Raises:
        StageError: if C* is not what it should be.
    """
    earlier = Earlier.load(merged / WITH_CALLS, merged / DOCUMENTS).cut(tokenizer, registry)
    documents = [
        Document(id_, earlier.rendered(id_, registry), before.url, before.date, before.source)
        for id_ in sorted(earlier.texts)
        for before in [earlier.document(id_)]
    ]
    for tool in registry:
        asked = [document for document in documents if document.date is not None or not tool.depends_on_date]
        write_records(folder.target("corpus", tool.name), asked)
    folder.earlier.mkdir(parents=True, exist_ok=True)
    write_records(folder.earlier / DOCUMENTS, [earlier.document(id_) for id_ in sorted(earlier.texts)])
    write_records(folder.earlier / WITH_CALLS, [earlier.texts[id_] for id_ in sorted(earlier.texts)])
    return len(documents)
