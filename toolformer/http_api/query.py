"""Query parameters that nobody knows are refused, as unknown fields of a body are."""

from __future__ import annotations

from starlette.requests import Request

from toolformer.http_api.errors import LONGEST_PARAM, ApiError
from toolformer.http_api.logs import QUIET_PATHS


async def known_query(request: Request) -> None:
    """A dependency of a whole app: the query may hold what the route's description names and nothing else.

    Probes may carry what they like, and so may what the description leaves out, such as a page.

    Raises:
        ApiError: 422 that names the first unknown parameter.
    """
    path = getattr(request.scope.get("route"), "path", None)
    if not request.scope["query_string"] or path in QUIET_PATHS:
        return
    method = "get" if request.method == "HEAD" else request.method.lower()
    operation = request.app.openapi()["paths"].get(path, {}).get(method)
    if operation is None:
        return
    known = {parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"}
    for name in request.query_params:
        if name not in known:
            param = name[:LONGEST_PARAM]
            message = f"{param!r} is not a known query parameter; remove it or correct its name"
            raise ApiError(422, message, param=param)
