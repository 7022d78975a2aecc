"""The five tool services as processes on real data, and the tools' tables for the registry."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from services.base import ServiceInfo
from services.calculator.app import INFO as CALCULATOR
from services.calendar.app import INFO as CALENDAR
from services.question_answering.app import INFO as QUESTION_ANSWERING
from services.translation.app import INFO as TRANSLATION
from services.wiki_search.app import INFO as WIKI_SEARCH
from tests.services.test_question_answering.tiny import model_and_index
from tests.services.wiki_search_pages import build, write_small_encyclopedia
from toolformer.tools import Tool, ToolRegistry

INFOS: Final = {info.service: info for info in (CALCULATOR, CALENDAR, WIKI_SEARCH, QUESTION_ANSWERING, TRANSLATION)}
"""What each service says of itself, by its name."""

OWN_ROUTES: Final = {
    "calculator": ("/calculate", "expression"),
    "calendar": ("/today", "date"),
    "wiki_search": ("/search", "query"),
    "question_answering": ("/answer", "question"),
    "translation": ("/translate", "text"),
}
"""The path of each service's own typed route, and the parameter that holds the input."""

FOLDER: Final = Path(__file__).parents[2] / "services"
START_SECONDS: Final = 300
"""Deadline for a start: Java and torch are slow on a machine that has other things to do."""


@dataclass(frozen=True)
class RunningService:
    """A service that is ready."""

    info: ServiceInfo
    url: str
    http: httpx.Client
    process: subprocess.Popen[bytes]
    log: Path

    def ask(self, value: str) -> httpx.Response:
        """What the service's own typed route says to a value."""
        path, name = OWN_ROUTES[self.info.service]
        return self.http.get(path, params={name: value})


def table_of(info: ServiceInfo) -> str:
    """A file for ``TOOLFORMER_TOOLS`` that adds the service's tool, where the packaged tools lack it; else empty."""
    if info.tool in ToolRegistry.load(files=[], environ={}):
        return ""
    beside = FOLDER / info.service / "tools.toml"
    if beside.exists():
        return beside.read_text()
    [table] = re.findall(r"```toml\n(.*?)```", (FOLDER / info.service / "README.md").read_text(), re.DOTALL)
    return str(table)


def registry_variables(info: ServiceInfo, folder: Path, url: str | None = None) -> dict[str, str]:
    """The environment in which the service's tool is in the registry, at ``url`` if given."""
    file = folder / f"{info.service}.toml"
    file.write_text(table_of(info))
    address = {} if url is None else {f"TOOLFORMER_TOOL_{info.tool.upper()}_URL": url}
    return {"TOOLFORMER_TOOLS": str(file), **address}


def tool_of(info: ServiceInfo, folder: Path) -> Tool:
    """The service's tool as the registry has it."""
    return ToolRegistry.load(environ=registry_variables(info, folder)).get(info.tool)


def small_wiki_index(folder: Path) -> Path:
    """An index of a few hundred pages."""
    write_small_encyclopedia(folder / "pages.jsonl")
    done = build(folder / "pages.jsonl", folder / "index")
    assert done.returncode == 0, done.stderr
    return folder / "index"


def tiny_question_answering(folder: Path) -> dict[str, str]:
    """Settings of the service for a random model of the real architecture: what it answers is nonsense."""
    model, index, _ = model_and_index(folder)
    return {"TOOLFORMER_QUESTION_ANSWERING_MODEL": str(model), "TOOLFORMER_QUESTION_ANSWERING_INDEX": str(index)}


def process_environment(info: ServiceInfo, settings: Mapping[str, str]) -> dict[str, str]:
    """This process's environment with ``settings`` and a free port."""
    return {**os.environ, f"TOOLFORMER_{info.service.upper()}_PORT": "0", **settings}


@contextlib.contextmanager
def running_service(info: ServiceInfo, settings: Mapping[str, str], folder: Path) -> Iterator[RunningService]:
    """The service as a process; at the end it must drain, with nothing bad in its log."""
    log = folder / f"{info.service}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", f"services.{info.service}"], stderr=file, env=process_environment(info, settings)
        )
    try:
        for text in ("ready after", "listening on"):  # either may come first
            _wait_for(text, process, log)
        found = re.search(r"listening on (http://\S+)", log.read_text())
        assert found is not None
        with httpx.Client(base_url=found[1], timeout=60, trust_env=False) as http:
            yield RunningService(info, found[1], http, process, log)
        process.send_signal(signal.SIGTERM)
        assert process.wait(START_SECONDS) == 0
        assert not re.search("ERROR|WARNING|Traceback", log.read_text()), log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _wait_for(text: str, process: subprocess.Popen[bytes], log: Path) -> None:
    ends = time.monotonic() + START_SECONDS
    while text not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < ends, log.read_text()
        time.sleep(0.05)
