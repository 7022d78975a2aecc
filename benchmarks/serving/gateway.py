"""A gateway process whose completions end at their limit only, so that every request makes all its tokens.

It is the gateway of ``python -m inference_gateway`` in all else, and takes its settings from the same variables."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from benchmarks.processes import Service, started
from inference_gateway.__main__ import main
from inference_gateway.backends.base import Backend
from inference_gateway.backends.local import LocalBackend


@contextlib.asynccontextmanager
async def endless_gateway(
    model: Path, tools: Mapping[str, str] | None = None, **settings: object
) -> AsyncIterator[Service]:
    """Such a gateway of ``model`` on a free port, in a process of its own.

    Args:
        model: a checkpoint's directory.
        tools: addresses of tools by their names.
        settings: those of `GatewaySettings` that are not to be the default.

    Raises:
        RuntimeError: if it did not become ready; the text holds its log.
    """
    environment = {"TOOLFORMER_MODEL": str(model), "TOOLFORMER_CACHE_SIZE": "0"}  # every call is to be made
    environment |= {
        f"TOOLFORMER_GATEWAY_{name.upper()}": str(value) for name, value in ({"port": 0} | settings).items()
    }
    environment |= {f"TOOLFORMER_TOOL_{name.upper()}_URL": url for name, url in (tools or {}).items()}
    async with started(__name__, environment) as service:
        yield service


def endless(backend: Backend) -> LocalBackend:
    """``backend``, to which no token is the end of a text any more."""
    assert isinstance(backend, LocalBackend)
    backend.vocabulary = dataclasses.replace(backend.vocabulary, end_ids=frozenset())
    return backend


if __name__ == "__main__":
    main(endless)
