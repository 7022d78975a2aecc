"""Services that several files of tests ask, started once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.real_services import (
    INFOS,
    RunningService,
    running_service,
    small_wiki_index,
    tiny_question_answering,
)


@pytest.fixture(scope="session")
def wiki_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of a few hundred pages."""
    return small_wiki_index(tmp_path_factory.mktemp("wiki_search"))


@pytest.fixture(scope="session")
def wiki_search(wiki_index: Path) -> Iterator[RunningService]:
    """The search service on that index."""
    settings = {"TOOLFORMER_WIKI_SEARCH_INDEX": str(wiki_index)}
    with running_service(INFOS["wiki_search"], settings, wiki_index.parent) as service:
        yield service


@pytest.fixture(scope="session", params=INFOS)
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Each of the five services in turn, ready, as a process of its own."""
    if request.param == "wiki_search":
        yield request.getfixturevalue("wiki_search")
        return
    folder = tmp_path_factory.mktemp(request.param)
    settings = tiny_question_answering(folder) if request.param == "question_answering" else {}
    with running_service(INFOS[request.param], settings, folder) as service:
        yield service
