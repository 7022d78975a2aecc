"""What ``/openapi.json`` says beside what the routes say of themselves: keys, and errors that any route may give."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI

_METHODS: Final = frozenset({"get", "post"})
_SCHEME: Final = "ApiKey"


def describe_access(app: FastAPI, *, keys_required: bool, open_paths: frozenset[str]) -> None:
    """Let the description of ``app`` tell that all but ``open_paths`` need a key, if keys are required."""
    describe = app.openapi

    def described() -> dict[str, Any]:
        document = describe()
        if keys_required and _SCHEME not in document["components"].setdefault("securitySchemes", {}):
            document["components"]["securitySchemes"][_SCHEME] = {"type": "http", "scheme": "bearer"}
            for path, operations in document["paths"].items():
                if path not in open_paths:
                    for method in _METHODS & operations.keys():
                        operations[method]["security"] = [{_SCHEME: []}]
                        operations[method]["responses"]["401"] = _UNAUTHORIZED
        return document

    app.openapi = described  # type: ignore[method-assign]  # FastAPI's documented way to change the document


_UNAUTHORIZED: Final[dict[str, Any]] = {
    "description": "Unauthorized",
    "headers": {"WWW-Authenticate": {"schema": {"type": "string"}}},
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}},
}
