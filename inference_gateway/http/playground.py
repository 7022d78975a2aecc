"""The page at ``/``: plain files, no build step."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import FileResponse, Response

_FOLDER: Final = Path(__file__).parents[1] / "playground"
_INDEX: Final = "index.html"
_TYPES: Final = {".css": "text/css", ".js": "text/javascript"}
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page brings its own style and scripts and speaks to this gateway alone."""

_PARTS: Final = {f"/playground/{path.name}": path for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}
PAGE_PATHS: Final = frozenset({"/", *_PARTS})
"""What a browser loads to show the page."""


def playground_routes() -> APIRouter:
    """The page and its parts. A browser asks each time whether they have changed, so a new version shows at once."""
    router = APIRouter(include_in_schema=False)

    async def part(request: Request) -> Response:
        path = _PARTS.get(request.url.path, _FOLDER / _INDEX)
        stat = path.stat()
        tag = f'"{stat.st_mtime_ns:x}-{stat.st_size:x}"'
        headers = {"Cache-Control": "no-cache", "ETag": tag, "X-Content-Type-Options": "nosniff"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        if path.name == _INDEX:
            headers["Content-Security-Policy"] = _POLICY
        return FileResponse(path, media_type=_TYPES.get(path.suffix, "text/html"), headers=headers, stat_result=stat)

    for path in PAGE_PATHS:
        router.add_api_route(path, part, methods=["GET"])
    return router
