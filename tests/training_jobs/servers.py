"""Real HTTP servers for these tests, each in a thread of this process."""

import contextlib
import functools
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import uvicorn

from demo_world.encyclopedia import pages
from demo_world.texts import Text
from services.base import Call, ServiceInfo, ToolFailure, create_app
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
def serve(app: Any) -> Iterator[str]:
    """Serve ``app`` on a free port and give its base URL."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = _Started(app)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        assert server.listening.wait(60), "the server did not start"
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(60)


class LeadSentences:
    """An encyclopedia without an index: answers a query that begins with a page's title with that page's first
    paragraphs."""

    def __init__(self, unknown: Callable[[str], bool] = lambda query: False) -> None:
        self._pages = _pages()
        self._unknown = unknown

    async def start(self) -> None:
        """There is nothing to load."""

    async def stop(self) -> None:
        """There is nothing to release."""

    async def answer(self, calls: Sequence[Call]) -> list[str | ToolFailure]:
        """The page whose title begins the query."""
        return [self._one(call.input) for call in calls]

    def _one(self, query: str) -> str | ToolFailure:
        words = query.split()
        titles = (" ".join(words[:end]) for end in range(len(words), 0, -1))
        found = next((title for title in titles if title in self._pages), None)
        if found is None or self._unknown(query):
            return ToolFailure("no_result", "no passage has any of these words")
        return f"{found} > {self._pages[found]}"


class KnownAnswers:
    """Question answering without a model: knows the answers to the questions that texts ask."""

    def __init__(self, texts: Iterable[Text]) -> None:
        self._answers = {text.call.input: text.answer for text in texts if text.call and text.call.tool == "QA"}

    async def start(self) -> None:
        """There is nothing to load."""

    async def stop(self) -> None:
        """There is nothing to release."""

    async def answer(self, calls: Sequence[Call]) -> list[str | ToolFailure]:
        """The answer that the text itself goes on with."""
        nothing = ToolFailure("no_answer", "no text asks this")
        return [self._answers.get(call.input, nothing) for call in calls]


@functools.cache
def _pages() -> dict[str, str]:
    """The text of every page, by its title."""
    return {
        page.title: " ".join([*page.lead, *(line for _, lines in page.sections for line in lines)]) for page in pages()
    }


_SEARCH = ServiceInfo(
    tool="WikiSearch", service="wiki_search", title="WikiSearch", description="Finds a page.", version="1.0.0",
    input_description="Search words.", example_input="Ljubljana population", example_output="Ljubljana > a city",
)  # fmt: skip

_QUESTIONS = ServiceInfo(
    tool="QA", service="question_answering", title="QA", description="Answers a question.", version="1.0.0",
    input_description="A question.", example_input="Where is Ljubljana?", example_output="Slovenia",
)  # fmt: skip


@contextlib.contextmanager
def tool_services(
    texts: Iterable[Text] = (), unknown: Callable[[str], bool] = lambda query: False
) -> Iterator[ToolRegistry]:
    """The real calculator, calendar and translation, :class:`LeadSentences`, and :class:`KnownAnswers` of ``texts``;
    gives a registry with their addresses.

    ``unknown`` says which queries the encyclopedia has no answer to.
    """
    with (
        serve(calculator_app()) as calculator,
        serve(calendar_app()) as calendar,
        serve(translation_app()) as translation,
        serve(create_app(_SEARCH, LeadSentences(unknown))) as search,
        serve(create_app(_QUESTIONS, KnownAnswers(texts))) as answering,
    ):
        yield ToolRegistry.load(
            environ={
                "TOOLFORMER_TOOL_CALCULATOR_URL": calculator,
                "TOOLFORMER_TOOL_CALENDAR_URL": calendar,
                "TOOLFORMER_TOOL_WIKISEARCH_URL": search,
                "TOOLFORMER_TOOL_QA_URL": answering,
                "TOOLFORMER_TOOL_MT_URL": translation,
            }
        )
