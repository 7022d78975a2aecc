"""A whole run, tiny: a model of random weights that likes to write calls of a tool, texts of a line."""

import contextlib
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from language_model import checkpoint
from services.base import Call, ServiceInfo, ToolFailure, create_app
from tests.support.vocabularies import save_small_tokenizer, small_tokenizer
from tests.training_jobs.calling_models import calling_model
from tests.training_jobs.servers import serve
from training_jobs.records import Document

TOOLS = ("A",)

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


def write_corpus(run: Path, documents: int, tools: Sequence[str] = TOOLS) -> None:
    """``RUN/corpus/<Tool>.jsonl`` with texts of random words."""
    draw = random.Random(1)
    words = ["One", "1", "is", "(1)", "24", "boxes", "Peru", "Lima,", "“day”", "11", "A", "so"]
    texts = [" ".join(draw.choices(words, k=draw.randint(1, 14))) for _ in range(documents)]
    (run / "corpus").mkdir(parents=True)
    for tool in tools:
        lines = (Document(f"d{n:03d}", text, None, "2024-02-29").to_line() for n, text in enumerate(texts))
        (run / "corpus" / f"{tool}.jsonl").write_text("".join(lines), encoding="utf-8")


class Engine:
    """Says how long an input is; has no answer to every fifth."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def answer(self, calls: Any) -> list[str | ToolFailure]:
        return [self._one(call) for call in calls]

    def _one(self, call: Call) -> str | ToolFailure:
        if sum(call.input.encode()) % 5 == 0:
            return ToolFailure("no_answer", "it is a fifth one")
        return f"{len(call.input)} 1 is"


@contextlib.contextmanager
def environment(folder: Path) -> Iterator[dict[str, str]]:
    """The variables with which commands find the tools, their services running."""
    tools = write_tools(folder / "tools.toml")
    with contextlib.ExitStack() as stack:
        environ = {"TOOLFORMER_TOOLS": str(tools), "PYTHONPATH": str(Path.cwd())}
        for name in TOOLS:
            info = ServiceInfo(
                tool=name, service=name.lower(), title=name, description="A tool.", version="1.0.0",
                input_description="Anything.", example_input="1", example_output="1",
            )  # fmt: skip
            environ[f"TOOLFORMER_TOOL_{name}_URL"] = stack.enter_context(serve(create_app(info, Engine())))
        yield environ
