"""One vLLM with the bundled model for all tests of the folder. Where vLLM is not installed, nothing is collected."""

import os
from collections.abc import AsyncIterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest_asyncio

if find_spec("vllm"):  # else other tests run in this process, which want no such settings
    # For vLLM on a CPU; must come before it is imported.
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")

if TYPE_CHECKING:
    from inference_gateway.backends.local import LocalBackend
    from inference_gateway.backends.vllm.vllm_backend import VllmBackend

collect_ignore_glob = [] if find_spec("vllm") else ["test_*.py"]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def inside() -> "AsyncIterator[VllmBackend]":
    """vLLM as the backend."""
    from tests.vllm.harness import vllm_backend

    async with vllm_backend() as backend:
        yield backend


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def local() -> "AsyncIterator[LocalBackend]":
    """The local engine on the same model."""
    from tests.vllm.harness import local_backend

    async with local_backend() as backend:
        yield backend
