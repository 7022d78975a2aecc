"""A gateway process whose completions end at their limit only, so that every request makes all its tokens.

It is the gateway of ``python -m inference_gateway`` in all else, and takes its settings from the same variables."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import NoReturn

from benchmarks.processes import Service, started
from inference_gateway.app import create_app
from inference_gateway.backends.loading import backend_loader
from inference_gateway.backends.local import LocalBackend
from inference_gateway.settings import GatewaySettings
from toolformer.http_api import configure_logging, serve
from toolformer.tools import ToolRegistry


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


def endless(backend: LocalBackend) -> LocalBackend:
    """``backend``, to which no token is the end of a text any more."""
    backend.vocabulary = dataclasses.replace(backend.vocabulary, end_ids=frozenset())
    return backend


def main() -> NoReturn:
    """Serve until SIGTERM."""
    settings = GatewaySettings.read()
    load = backend_loader(settings)

    def load_endless() -> LocalBackend:
        backend = load()
        assert isinstance(backend, LocalBackend)
        return endless(backend)

    configure_logging(settings.log_level, settings.log_format)
    app = create_app(load_endless, ToolRegistry.load(), settings)
    serve(app, settings.host, settings.port, drain_seconds=settings.drain_seconds)


if __name__ == "__main__":
    main()
