"""One engine of each kind for all tests of the folder. Where vLLM is not installed, what needs it is not collected."""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

if find_spec("vllm"):  # else other tests run in this process, which want no such settings
    # For vLLM on a CPU; must come before it is imported.
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    # The bundled model is not faster on two threads, and on a busy machine much slower: they wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

if TYPE_CHECKING:
    from inference_gateway.backends.local import LocalBackend
    from inference_gateway.backends.remote import RemoteBackend
    from inference_gateway.backends.vllm.vllm_backend import VllmBackend

_SHOWN_CHARACTERS = 20_000

collect_ignore = [] if find_spec("vllm") else ["test_bulk_server.py", "test_call_rules.py", "test_own_engines.py"]


@contextmanager
def _served(
    serve: Callable[[Path], AbstractContextManager[str]], request: pytest.FixtureRequest, folder: Path
) -> Iterator[str]:
    """The address of a server; what it logged is shown where tests failed."""
    log = folder / "log"
    with serve(log) as url:
        yield url
    if request.session.testsfailed:
        request.config.get_terminal_writer().write(f"\n{log.read_text()[-_SHOWN_CHARACTERS:]}\n")


@pytest.fixture(scope="session")
def vllm_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a ``vllm serve``."""
    from tests.engines.harness import vllm_serve

    with _served(vllm_serve, request, tmp_path_factory.mktemp("vllm-serve")) as url:
        yield url


@pytest.fixture(scope="session")
def llama_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a ``llama-server``."""
    from tests.engines.harness import llama_serve

    with _served(llama_serve, request, tmp_path_factory.mktemp("llama-server")) as url:
        yield url


@pytest_asyncio.fixture(
    scope="session",
    loop_scope="session",
    params=[
        pytest.param("inside", marks=pytest.mark.vllm),
        pytest.param("vllm_server", marks=pytest.mark.vllm),
        pytest.param("llama_server", marks=pytest.mark.llama),
    ],
)
async def backend(request: pytest.FixtureRequest) -> "AsyncIterator[VllmBackend | RemoteBackend]":
    """vLLM as the backend, and the backend in front of a server."""
    from tests.engines.harness import remote_backend, vllm_backend

    inside = request.param == "inside"
    async with vllm_backend() if inside else remote_backend(request.getfixturevalue(request.param)) as started:
        yield started


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def local() -> "AsyncIterator[LocalBackend]":
    """The local engine on the same model."""
    from tests.engines.harness import local_backend

    async with local_backend() as backend:
        yield backend
