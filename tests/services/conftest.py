"""Services that several files of tests ask, started once."""

from __future__ import annotations

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


@pytest.fixture(scope="session", params=INFOS)
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Each of the five services in turn, ready, as a process of its own."""
    info, folder, settings = INFOS[request.param], tmp_path_factory.mktemp(request.param), {}
    if info.service == "wiki_search":
        settings = {"TOOLFORMER_WIKI_SEARCH_INDEX": str(request.getfixturevalue("wiki_index"))}
    if info.service == "question_answering":
        settings = tiny_question_answering(folder)
    with running_service(info, settings, folder) as service:
        yield service
