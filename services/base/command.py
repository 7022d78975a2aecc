"""``python -m services.<name>``: settings from the environment, then a server."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import Literal, NoReturn, TypeVar

from fastapi import FastAPI
from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings

from services.base.engine import ServiceInfo
from toolformer.http_api import LogFormat, configure_logging, serve

SettingsT = TypeVar("SettingsT", bound=BaseSettings)


class ConfigurationError(Exception):
    """A setting cannot hold; the text names the environment variable and the remedy."""


class ServerSettings(BaseSettings):
    """Settings every service has, read from ``TOOLFORMER_<SERVICE>_HOST`` and so on."""

    host: str = "127.0.0.1"
    port: int | None = Field(None, ge=0, le=65535)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: LogFormat = "text"
    drain_seconds: int = Field(30, ge=1)
    max_connections: int = Field(2048, ge=1)


def read_settings(settings: type[SettingsT], service: str) -> SettingsT:
    """``settings`` read from the environment variables ``TOOLFORMER_<SERVICE>_<FIELD>``.

    Raises:
        ConfigurationError: a variable's value is not what its field asks for, or a required one is missing.
    """
    prefix = f"TOOLFORMER_{service.upper()}_"
    try:
        return settings(_env_prefix=prefix)
    except ValidationError as error:
        problems = [
            f"{prefix}{'_'.join(map(str, problem['loc'])).upper()}: {problem['msg'].removeprefix('Value error, ')}"
            for problem in error.errors()
        ]
        raise ConfigurationError("; ".join(problems)) from error


def run_service(info: ServiceInfo, build: Callable[[], FastAPI], *, default_port: int) -> NoReturn:
    """Serve a tool service until SIGTERM or SIGINT.

    Args:
        info: names the service, and by that its environment variables.
        build: makes the app; may raise `ConfigurationError`.
        default_port: the port where ``TOOLFORMER_<SERVICE>_PORT`` is not set.

    Raises:
        SystemExit: always; 0 after a drain, 2 for a setting that cannot hold, another number where it cannot serve or
            its engine cannot start.
    """
    try:
        settings = read_settings(ServerSettings, info.service)
        configure_logging(settings.log_level, settings.log_format)
        app = build()
    except ConfigurationError as error:
        print(f"{info.service}: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    port = default_port if settings.port is None else settings.port
    failed = False

    def fail() -> None:
        nonlocal failed
        failed = True
        signal.raise_signal(signal.SIGTERM)

    app.state.runner.on_cannot_start = fail
    try:
        serve(app, settings.host, port, drain_seconds=settings.drain_seconds, max_connections=settings.max_connections)
    except SystemExit:
        if failed:
            sys.exit(1)
        raise
