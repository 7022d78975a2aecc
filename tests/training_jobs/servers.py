"""Real HTTP servers for these tests, each in a thread of this process."""

import contextlib
import functools
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import httpx
import uvicorn

from demo_world.encyclopedia import pages
from demo_world.texts import Text
from services.base import AtOnce, ServiceInfo, ToolFailure, create_app
from services.calculator.app import build_app as calculator_app
from services.calendar.app import build_app as calendar_app
from services.translation.app import build_app as translation_app
from toolformer.tools import ToolRegistry


class _Started(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, app: Any) -> None:
        super().__init__(uvicorn.Config(app, log_config=None, lifespan="on"))
        self.listening = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


@contextlib.contextmanager
def serve(app: Any, *, loads: bool = True) -> Iterator[str]:
    """Serve ``app`` on a free port and give its base URL; if it ``loads``, as services do while they listen, then only
    once it can answer."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = _Started(app)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        assert server.listening.wait(60), "the server did not start"
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            while loads and httpx.get(f"{url}/ready", timeout=60).status_code == 503:  # 404: it has no such route
                time.sleep(0.05)
            yield url
        finally:
            server.should_exit = True
            thread.join(60)


Said = str | ToolFailure
"""What a tool says to a call."""


def service_of(tool: str, answer: Callable[[str], Said]) -> Any:
    """A service of ``tool``: ``answer`` gives what is said to an input."""
    info = ServiceInfo(
        tool=tool, service=tool.lower(), title=tool, description="A tool.", version="1.0.0",
        input_description="Anything.", example_input="1", example_output="1",
    )  # fmt: skip
    return create_app(info, AtOnce(lambda call: answer(call.input)))


def lead_sentences(query: str) -> Said:
    """An encyclopedia without an index: to a query that begins with a page's title, that page's first paragraphs."""
    words = query.split()
    titles = (" ".join(words[:end]) for end in range(len(words), 0, -1))
    for title in titles:
        if title in _pages():
            return f"{title} > {_pages()[title]}"
    return ToolFailure("no_result", "no passage has any of these words")


@functools.cache
def _pages() -> dict[str, str]:
    """The text of every page, by its title."""
    return {
        page.title: " ".join([*page.lead, *(line for _, lines in page.sections for line in lines)]) for page in pages()
    }


@contextlib.contextmanager
def tool_services(texts: Iterable[Text] = (), search: Callable[[str], Said] = lead_sentences) -> Iterator[ToolRegistry]:
    """The real calculator, calendar and translation, an encyclopedia that answers by ``search``, and question answering
    that knows what ``texts`` themselves go on with; gives a registry with their addresses."""
    known = {text.call.input: text.answer for text in texts if text.call and text.call.tool == "QA"}
    nothing = ToolFailure("no_answer", "no text asks this")
    with (
        serve(calculator_app()) as calculator,
        serve(calendar_app()) as calendar,
        serve(translation_app()) as translation,
        serve(service_of("WikiSearch", search)) as searching,
        serve(service_of("QA", lambda asked: known.get(asked, nothing))) as answering,
    ):
        yield ToolRegistry.load(
            environ={
                "TOOLFORMER_TOOL_CALCULATOR_URL": calculator,
                "TOOLFORMER_TOOL_CALENDAR_URL": calendar,
                "TOOLFORMER_TOOL_WIKISEARCH_URL": searching,
                "TOOLFORMER_TOOL_QA_URL": answering,
                "TOOLFORMER_TOOL_MT_URL": translation,
            }
        )
