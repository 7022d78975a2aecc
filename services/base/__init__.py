"""The one app factory of all tool services: bring an `Engine` and a `ServiceInfo`, get the whole HTTP and MCP contract.

- ``engine.py``: what a service brings: `ServiceInfo`, `Engine`, `Call`, `ToolFailure`, `NotReady`, `CannotStart`
- ``runner.py``: an engine at work: loading, admission, deadlines, metrics
- ``wire.py``: the JSON of ``POST /call`` and ``POST /calls``
- ``mcp_endpoint.py``: the same tool over the Model Context Protocol
- ``engines.py``: `AtOnce` and `InBatches`, the two kinds of engine; ``gathering.py``: how batches come about
- ``app.py``: `create_app` puts the above behind HTTP routes
- ``command.py``: `run_service` reads settings from the environment and serves
"""

from services.base.app import create_app
from services.base.command import ConfigurationError, read_settings, run_service
from services.base.engine import Call, CannotStart, Engine, NotReady, ServiceInfo, ToolFailure, fingerprint
from services.base.engines import AtOnce, InBatches

__all__ = [
    "AtOnce",
    "Call",
    "CannotStart",
    "ConfigurationError",
    "Engine",
    "InBatches",
    "NotReady",
    "ServiceInfo",
    "ToolFailure",
    "create_app",
    "fingerprint",
    "read_settings",
    "run_service",
]
