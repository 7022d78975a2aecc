"""What the code says that images and manifests repeat: ports, modules, environment variables, probe paths, metrics."""

import importlib
import importlib.util
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from fastapi import FastAPI
from pydantic_settings import BaseSettings

from cli.components import GATEWAY, GATEWAY_PORT, SERVICES
from inference_gateway.settings import GatewaySettings, variable
from language_model.native import prebuilt
from services.base.command import ServerSettings
from toolformer.tools import ToolRegistry

ROOT: Final = Path(__file__).parents[2]
OF_OTHERS: Final = re.compile(
    r"OTEL_[A-Z_]+|OMP_NUM_THREADS|HOME|PYTHONUNBUFFERED|LD_LIBRARY_PATH|XDG_CACHE_HOME|VLLM_[A-Z_]+|HF_HUB_OFFLINE"
)
"""Variables of OpenTelemetry, OpenMP, Python and vLLM, which the project does not define."""
RANKS: Final = {"RANK", "WORLD_SIZE", "JOB_COMPLETION_INDEX"}
"""Variables by which a job's shards are told apart."""


@dataclass(frozen=True)
class Server:
    """A process that answers HTTP."""

    name: str
    folder: Path
    module: str
    port: int
    prefix: str
    """``TOOLFORMER_<SERVICE>_``"""
    variables: frozenset[str]
    """Environment variables that it reads."""


def tool_variables() -> set[str]:
    """Variables of every caller of tools: the registry's and those of kept results."""
    urls = {f"TOOLFORMER_TOOL_{name.upper()}_URL" for name in packaged().names()}
    cache = {f"TOOLFORMER_CACHE_{name}" for name in ("URL", "SIZE", "AGE", "PASSWORD_FILE")}
    return urls | cache | {"TOOLFORMER_TOOLS"}


def packaged() -> ToolRegistry:
    """The tools as they come."""
    return ToolRegistry.load(files=[], environ={})


@cache
def servers() -> dict[str, Server]:
    """The five tool services and the gateway, by their names in images and manifests (``wiki-search``)."""
    found = {}
    for tool, service in SERVICES.items():
        port = int(packaged().get(tool).url.rpartition(":")[2])
        prefix = f"TOOLFORMER_{service.upper()}_"
        app = importlib.import_module(f"services.{service}.app")
        classes: list[type[BaseSettings]] = [ServerSettings]
        classes += [one for one in vars(app).values() if isinstance(one, type) and issubclass(one, BaseSettings)]
        own = {
            str(field.validation_alias or prefix + name.upper())
            for settings in classes
            for name, field in settings.model_fields.items()
        }
        name = service.replace("_", "-")
        folder = ROOT / "services" / service
        found[name] = Server(name, folder, f"services.{service}", port, prefix, frozenset(own))
    own = {variable(name) for name in GatewaySettings.model_fields} | tool_variables() | {prebuilt.VARIABLE}
    folder = ROOT / "inference_gateway"
    prefix = "TOOLFORMER_GATEWAY_"
    found[GATEWAY] = Server(GATEWAY, folder, "inference_gateway", GATEWAY_PORT, prefix, frozenset(own))
    return found


def job_variables() -> set[str]:
    """Variables that the stages read."""
    return tool_variables() | RANKS | {"TOOLFORMER_API_KEY"}


@cache
def paths_of(name: str) -> set[str]:
    """The paths that a server answers to GET."""
    return {path for path, ways in app_of(servers()[name]).openapi()["paths"].items() if "get" in ways}


def app_of(server: Server) -> FastAPI:
    """The server's app, not started."""
    if server.name == GATEWAY:
        from inference_gateway.app import create_app
        from inference_gateway.backends.base import Backend

        def no_backend() -> Backend:
            raise NotImplementedError

        return create_app(no_backend, packaged(), GatewaySettings())
    app = importlib.import_module(f"{server.module}.app").build_app()
    assert isinstance(app, FastAPI)
    return app


def unknown_variables(names: set[str], known: set[str] | frozenset[str]) -> set[str]:
    """Those of ``names`` that nobody reads."""
    return {name for name in names if name not in known and not OF_OTHERS.fullmatch(name)}


def check_modules(words: list[str]) -> None:
    """The modules that a job's command names can be run with ``python -m``."""
    modules = set(re.findall(r"\b(?:training_jobs|torch)\.[a-z_.]+", " ".join(words)))
    assert modules, words
    for module in modules:
        spec = importlib.util.find_spec(module)
        assert spec is not None, module
        assert spec.submodule_search_locations is None or importlib.util.find_spec(f"{module}.__main__"), module
