"""An operation of an OpenAPI 3 document as the fields of an `HttpApi`: its method, its path, and where its parameters
go. The document is a file, read when the tool's table is; nothing is fetched."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

_METHODS: Final = ("get", "post", "put", "patch", "delete", "head", "options", "trace")
_MAX_REFERENCES: Final = 16


@dataclass(frozen=True, slots=True)
class _Parameter:
    place: str
    """``path``, ``query`` or ``body``."""
    required: bool


def operation_fields(
    openapi: str, operation: str, parameters: Mapping[str, str], headers: Collection[str]
) -> dict[str, Any]:
    """``method``, ``path``, ``query`` and ``body`` of an `HttpApi` that asks for an operation.

    Args:
        openapi: the document's file, JSON.
        operation: its ``operationId``.
        parameters: values by name. A single required parameter that is not among them gets the input.
        headers: the names of those that are sent as well.

    Raises:
        ValueError: if the file is no such document, has no such operation, or the parameters do not fit it.
    """
    document = _read(Path(openapi))
    method, path, details = _find(document, operation)
    known = dict(_parameters(document, details, {name.lower() for name in headers}))
    if unknown := parameters.keys() - known.keys():
        raise ValueError(f"{operation} has no parameter {min(unknown)!r}; it has: {', '.join(known) or 'none'}")
    values = dict(parameters)
    missing = [name for name, one in known.items() if one.required and name not in values]
    if len(missing) == 1 and not any("{input}" in value for value in values.values()):
        values[missing.pop()] = "{input}"
    if missing:
        raise ValueError(f"{operation} needs values in parameters for: {', '.join(missing)}")
    fields: dict[str, Any] = {"method": method.upper(), "path": path, "query": {}, "body": {}}
    for name, value in values.items():
        place = known[name].place
        if place == "path":
            # What the table fixes is encoded here; the input, when it comes.
            encoded = "{input}".join(quote(part, safe="") for part in value.split("{input}"))
            fields["path"] = fields["path"].replace(f"{{{name}}}", encoded)
        else:
            fields[place][name] = value
    return fields | {"body": fields["body"] or None}


def _read(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{file} cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise ValueError(f"{file} is not JSON, which the document must be: {error}") from error
    if not isinstance(document, dict) or not str(document.get("openapi", "")).startswith("3."):
        raise ValueError(f"{file} is no OpenAPI 3 document")
    return document


def _find(document: dict[str, Any], operation: str) -> tuple[str, str, dict[str, Any]]:
    """Method, path and details of an operation, the parameters of its path among its own."""
    names = []
    for path, item in _table(document, "paths").items():
        shared = _followed(document, item)
        for method in _METHODS:
            details = _table(shared, method)
            names.append(details.get("operationId"))
            if names[-1] == operation:
                return method, path, details | {"parameters": _list(shared) + _list(details)}
    listed = ", ".join(str(name) for name in names if name)
    raise ValueError(
        f"there is no operation {operation!r}; the document has: {listed[:500] or 'none with an operationId'}"
    )


def _parameters(
    document: dict[str, Any], details: dict[str, Any], headers: set[str]
) -> Iterator[tuple[str, _Parameter]]:
    for given in _list(details):
        one = _followed(document, given)
        name, place, required = str(one.get("name")), one.get("in"), one.get("required") is True
        if place == "path" or place == "query":
            yield name, _Parameter(place, required or place == "path")
        elif required and not (place == "header" and name.lower() in headers):
            raise ValueError(f"the operation needs the {place} {name!r}; only headers can be given, in headers")
    content = _table(_followed(document, details.get("requestBody", {})), "content")
    schema = _followed(document, _table(content, "application/json").get("schema", {}))
    required_ones = schema.get("required", [])
    for name in _table(schema, "properties"):
        yield name, _Parameter("body", name in required_ones)


def _followed(document: dict[str, Any], value: Any) -> dict[str, Any]:
    """``value``, or what it refers to in the document."""
    for _ in range(_MAX_REFERENCES):
        if not isinstance(value, dict):
            break
        if "$ref" not in value:
            return value
        steps = str(value["$ref"]).split("/")
        referred: Any = document if steps[0] == "#" else None
        for step in steps[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            referred = referred.get(name) if isinstance(referred, dict) else None
        value = referred
    raise ValueError("the document refers to what it does not hold")


def _table(value: Any, name: str) -> dict[str, Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _list(value: dict[str, Any]) -> list[Any]:
    found = value.get("parameters")
    return found if isinstance(found, list) else []
