"""Settings for every test, and how tests are shared out among the processes of `make test`."""

import os
import signal
from typing import Any

# One thread for torch, here and in the processes that tests start: on cores that others use too, a second thread mostly
# waits for the first, and tests that take seconds take minutes. Must come before torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

# What a shell starts in the background ignores Ctrl-C, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests are never timed: a loaded machine must not fail a property.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Among several processes files with slow tests come first, so that none is left to one process at the end."""
    if hasattr(config, "workerinput"):
        slow = {item.path for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file's tests run in one process; so do all that ask the tool services, which are started once."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            folder, _, file = nodeid.partition("::")[0].rpartition("/")
            return folder if folder == "tests/services" else f"{folder}/{file}"

    return ByFile(config, log)
