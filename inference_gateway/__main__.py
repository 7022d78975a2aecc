"""``python -m inference_gateway``: settings from the environment, then a server."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NoReturn

from inference_gateway.app import create_app
from inference_gateway.backends.base import Backend
from inference_gateway.backends.loading import backend_loader
from inference_gateway.settings import GatewaySettings, SettingsError
from toolformer.cache_settings import CacheSettings
from toolformer.http_api import configure_logging, listen, serve
from toolformer.result_cache import CacheConfigError
from toolformer.tools import ToolConfigError, ToolRegistry


def main(changed: Callable[[Backend], Backend] = lambda backend: backend) -> NoReturn:
    """Serve until SIGTERM or SIGINT what ``changed`` makes of the backend that the settings ask for.

    Raises:
        SystemExit: always; 0 after a drain, 2 for a configuration that cannot hold, another number if it cannot serve.
    """
    try:
        settings = GatewaySettings.read()
        registry = ToolRegistry.load()
        cache = CacheSettings.read(os.environ).open()
        load = backend_loader(settings)
        app = create_app(lambda: changed(load()), registry, settings, cache)
    except (SettingsError, ToolConfigError, CacheConfigError) as error:
        print(f"inference_gateway: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    configure_logging(settings.log_level, settings.log_format)
    if settings.grpc_port is not None:
        # Taken again when the app starts; a port that somebody uses is reported in one line, as the other port is.
        listen(settings.host, settings.grpc_port).close()
    rpc = app.state.grpc_server
    on_drain = rpc.drain if rpc else lambda: None
    serve(
        app,
        settings.host,
        settings.port,
        drain_seconds=settings.drain_seconds,
        max_connections=settings.max_connections,
        allowed_origins=settings.cors_origins,
        on_drain=on_drain,
    )


if __name__ == "__main__":
    main()
