"""``python -m inference_gateway``: settings from the environment, then a server."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from http_api import configure_logging, serve
from inference_gateway.backends.base import Backend
from inference_gateway.http import create_app
from inference_gateway.settings import GatewaySettings, SettingsError
from toolformer.result_cache import CacheConfigError, CacheSettings
from toolformer.tools import ToolConfigError, ToolRegistry


def load_local_backend(settings: GatewaySettings) -> Backend:
    """The GPT-J of ``settings``, loaded in this process.

    Raises:
        CheckpointError: if the checkpoint cannot be used.
    """
    # Imported here, in the loading thread: torch takes seconds, and the port is to answer before that.
    import torch

    from inference_gateway.backends.local import LocalBackend
    from inference_gateway.engine.engine import EngineLimits

    if settings.torch_threads is not None:
        torch.set_num_threads(settings.torch_threads)
    limits = EngineLimits(
        max_sequences=settings.max_sequences, max_model_len=settings.max_model_len, max_waiting=settings.max_waiting
    )
    return LocalBackend.load(
        settings.model,
        limits=limits,
        dtype={"float32": torch.float32, "bfloat16": torch.bfloat16}[settings.dtype],
        device=settings.device,
        model_name=settings.model_name,
        compiled_step=settings.compiled_step,
    )


def main() -> NoReturn:
    """Serve until SIGTERM or SIGINT.

    Raises:
        SystemExit: always; 0 after a drain, 2 for a configuration that cannot hold, another number if it cannot serve.
    """
    try:
        settings = GatewaySettings.read()
        registry = ToolRegistry.load()
        cache = CacheSettings.read(os.environ).open()
        if not (settings.model / "config.json").is_file():
            raise SettingsError(f"TOOLFORMER_MODEL: {settings.model} holds no checkpoint; name a directory that does")
        app = create_app(lambda: load_local_backend(settings), registry, settings, cache)
    except (SettingsError, ToolConfigError, CacheConfigError) as error:
        print(f"inference_gateway: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    configure_logging(settings.log_level, settings.log_format)
    serve(app, settings.host, settings.port, drain_seconds=settings.drain_seconds)


if __name__ == "__main__":
    main()
