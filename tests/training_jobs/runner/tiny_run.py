"""A whole run, tiny: a model of random weights that likes to write calls of a tool, texts of a line."""

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path

from language_model import checkpoint
from services.base import ToolFailure
from tests.support.vocabularies import save_small_tokenizer, small_tokenizer
from tests.training_jobs.calling_models import calling_model
from tests.training_jobs.servers import Said, serve, service_of
from training_jobs.records import Document

_TOOL = """
[A]
url = "http://127.0.0.1:1"
description = "A tool."
pure = true
task = 'Put calls, "[A(1)]", into a text.'
demonstrations = [{ input = "One is 1.", output = "One is [A(1)] 1." }]
sampling_threshold = 0.001
max_positions = 4
max_samples = 6
max_input_tokens = 4
max_result_tokens = 6
filter_threshold = 0.0
cost = 3.0
"""
_WITHOUT = "".join(f"[{name}]\nenabled = false\n" for name in ("Calculator", "Calendar", "WikiSearch", "QA", "MT"))


def write_model(folder: Path, seed: int = 0, *, tool: str = "A", positions: int = 384) -> Path:
    """A checkpoint in ``folder`` that likes to call ``tool``."""
    tokenizer = small_tokenizer()
    checkpoint.save(calling_model(tokenizer, seed, tool=tool, positions=positions), folder)
    save_small_tokenizer(folder)
    return folder


def write_tools(path: Path) -> Path:
    """A file for ``TOOLFORMER_TOOLS`` that leaves no tool but ours."""
    path.write_text(_WITHOUT + _TOOL)
    return path


def write_corpus(run: Path, documents: int) -> None:
    """``RUN/corpus/A.jsonl`` with texts of random words."""
    draw = random.Random(1)
    words = ["One", "1", "is", "(1)", "24", "boxes", "Peru", "Lima,", "“day”", "11", "A", "so"]
    texts = [" ".join(draw.choices(words, k=draw.randint(1, 14))) for _ in range(documents)]
    (run / "corpus").mkdir(parents=True)
    lines = (Document(f"d{n:03d}", text, None, "2024-02-29").to_line() for n, text in enumerate(texts))
    (run / "corpus" / "A.jsonl").write_text("".join(lines), encoding="utf-8")


def length(asked: str) -> Said:
    """Says how long an input is; has no answer to every fifth."""
    return f"{len(asked)} 1 is" if sum(asked.encode()) % 5 else ToolFailure("no_answer", "it is a fifth one")


@contextlib.contextmanager
def environment(folder: Path) -> Iterator[dict[str, str]]:
    """The variables with which commands find the tools, their services running."""
    tools = write_tools(folder / "tools.toml")
    with serve(service_of("A", length)) as url:
        environ = {"TOOLFORMER_TOOLS": str(tools), "PYTHONPATH": str(Path.cwd()), "TOOLFORMER_TOOL_A_URL": url}
        yield environ
