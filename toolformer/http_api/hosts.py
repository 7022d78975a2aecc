"""By which names a server may be called, so that a web page cannot use a server that only its visitor can reach.

A page of any site may send requests to 127.0.0.1, and one that lets its own name point there ("DNS rebinding") may read
the answers. A browser names in ``Host`` and ``Origin`` whom it believes to talk to, and for whom.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from toolformer.http_api.errors import ApiError

VARIABLE: Final = "TOOLFORMER_ALLOWED_HOSTS"
"""Names, a comma between them, by which a server may be called beside those of the machine itself; * for any."""

MCP_PATH: Final = "/mcp"
"""The protocol wants ``Origin`` checked there, wherever the server listens."""


class Hosts:
    """The names that count.

    Args:
        bound: where the server listens. On an address that only this machine reaches, ``Host`` and ``Origin`` of every
            request are checked; elsewhere ``Origin`` of MCP alone, and ``Host`` if ``environ`` names hosts: names of
            containers are the deployment's to choose.
        origins: of pages that may use the server, a comma between them; * for all.
        environ: holds `VARIABLE`.
    """

    def __init__(self, bound: str, origins: str = "", environ: Mapping[str, str] = os.environ) -> None:
        self._names = frozenset(filter(None, (name.strip().lower() for name in environ.get(VARIABLE, "").split(","))))
        self._origins = frozenset(filter(None, (origin.strip().lower() for origin in origins.split(","))))
        self._local = is_local(bound)

    def refusal(self, scope: Scope) -> ApiError | None:
        """Why a request is refused, if it is."""
        headers = Headers(scope=scope)
        if self._local or self._names:
            host = headers.get("host", "")
            if host and not self._known(f"//{host}"):
                return _refusal("Host", host)
        origin = headers.get("origin")
        if origin is None or not (self._local or scope["path"] == MCP_PATH):
            return None
        if origin.lower() in self._origins or "*" in self._origins or self._known(origin):
            return None
        return _refusal("Origin", origin)

    def _known(self, address: str) -> bool:
        try:
            name = urlsplit(address).hostname or ""
        except ValueError:
            return False
        return is_local(name) or name in self._names or "*" in self._names


def is_local(name: str) -> bool:
    """Whether ``name`` is this machine's own, as nobody else can have it."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _refusal(header: str, value: str) -> ApiError:
    message = (
        f"the {header} {value[:100]!r} is not one that this server answers to; "
        f"call it by a name of its machine, or have its operator add that host to {VARIABLE}"
    )
    return ApiError(403, message, code=f"foreign_{header.lower()}")
