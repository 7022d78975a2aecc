"""What ``toolformer doctor`` reports about the model server that the gateway uses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import httpx

_PREFIX: Final = "TOOLFORMER_GATEWAY_BACKEND"
_ASK_SECONDS: Final = 2.0
_ASKED: Final = {"openai": "/v1/models", "tgi": "/info"}
"""What each kind of server answers without work."""

Finding = tuple[Literal["ok", "problem"], str, str]
"""Status, what was found, and the remedy."""


def remote_backend(environ: Mapping[str, str]) -> bool:
    """Whether the gateway uses another server, so that it needs no weights."""
    return environ.get(_PREFIX, "local") != "local"


def ask_backend(environ: Mapping[str, str]) -> Finding:
    """Whether the server that the variables name is there."""
    kind, url = environ.get(_PREFIX, "local"), environ.get(f"{_PREFIX}_URL", "").rstrip("/").removesuffix("/v1")
    if kind == "local":
        return "ok", "the gateway's own engine", ""
    if kind not in _ASKED:
        return "problem", f"there is no backend {kind!r}", f"set {_PREFIX} to local, openai or tgi"
    if not url:
        return "problem", f"{kind}, but no address is set", f"set {_PREFIX}_URL to the model server's address"
    return _answer(f"{url}{_ASKED[kind]}", environ)


def _answer(address: str, environ: Mapping[str, str]) -> Finding:
    remedy = f"start the model server, or mend {_PREFIX}_URL"
    key, file = environ.get(f"{_PREFIX}_API_KEY"), environ.get(f"{_PREFIX}_API_KEY_FILE")
    try:
        if file and not key:
            key = Path(file).read_text(encoding="utf-8").strip()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        with httpx.Client(timeout=_ASK_SECONDS, trust_env=False, headers=headers) as client:
            status = client.get(address).status_code
    except OSError as error:
        return "problem", f"{file} cannot be read: {error}", f"mend {_PREFIX}_API_KEY_FILE"
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return "problem", f"{address} cannot be reached: {error}", remedy
    if status in (401, 403):
        return "problem", f"{address} answers {status}", f"set {_PREFIX}_API_KEY to a key that it takes"
    if status != httpx.codes.OK:
        return "problem", f"{address} answers {status}", remedy
    return "ok", f"{address} answers", ""
