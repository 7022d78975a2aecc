"""Web pages that a server brings along: plain files, no build step, and nothing loaded from elsewhere."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import FileResponse, Response

_INDEX: Final = "index.html"
_TYPES: Final = {".css": "text/css", ".js": "text/javascript"}
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""A page has its own style and scripts and speaks to its own server alone."""


class Page:
    """A page and its parts.

    Args:
        folder: holds ``index.html`` and the ``.css`` and ``.js`` files that it names.
        path: where the page is served.
        parts: the path below which its parts are served.
    """

    def __init__(self, folder: Path, *, path: str, parts: str) -> None:
        files = sorted(file for file in folder.iterdir() if file.suffix in _TYPES)
        self._files = {path: folder / _INDEX} | {f"{parts}/{file.name}": file for file in files}
        self.paths: Final = frozenset(self._files)
        """What a browser loads to show the page."""

    def routes(self) -> APIRouter:
        """Serve the page. A browser asks each time whether a part has changed, so a new version shows at once."""
        router = APIRouter(include_in_schema=False)
        for path, file in self._files.items():
            router.add_api_route(path, partial(_part, file), methods=["GET"])
        return router


def _part(file: Path, request: Request) -> Response:
    stat = file.stat()
    tag = f'"{stat.st_mtime_ns:x}-{stat.st_size:x}"'
    headers = {"Cache-Control": "no-cache", "ETag": tag, "X-Content-Type-Options": "nosniff"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    if file.name == _INDEX:
        headers["Content-Security-Policy"] = _POLICY
    return FileResponse(file, media_type=_TYPES.get(file.suffix, "text/html"), headers=headers, stat_result=stat)


API_PAGE: Final = Page(Path(__file__).parent / "api_page", path="/docs", parts="/docs")
"""Shows the server's ``/openapi.json`` and sends requests to try it (decision record 024)."""
