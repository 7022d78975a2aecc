"""Tools from outside as their tables describe them: any HTTP API (``[Name.http]``), a tool of an MCP server
(``[Name.mcp]``).

In the texts of a table ``{input}`` is where a call's input goes. The address is the tool's ``url``, or the ``command``
that starts its server, and never part of an input. Secrets are not in the table either: ``{env:NAME}`` and
``{file:PATH}`` in a header's value are read when a call is made, so that a secret may change while a process runs; in a
server's environment, when it is started.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import quote, unquote

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator

from toolformer.openapi import operation_fields

_INPUT: Final = "{input}"
_SECRET: Final = re.compile(r"\{(env|file):([^{}]+)\}")
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9-]+")
_WITHOUT_SECRET: Final = frozenset({"accept", "accept-language", "user-agent"})


class SecretMissing(Exception):  # noqa: N818 - reads as what happened
    """A secret is missing; clients may read the message, so it names no value, variable or file of this machine."""


def _checked_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a header")
        if name.lower() not in _WITHOUT_SECRET and not _SECRET.search(value):
            raise ValueError(f"{name}: take the value from {{env:NAME}} or {{file:PATH}}; a table holds no secrets")
    return headers


def _checked_path(path: str) -> str:
    if not re.fullmatch(r"(/[^?#\s]*)?", path) or not _stays(path):
        raise ValueError("a path begins with / and has no spaces, '?', '#' or '..'; parameters belong in query")
    return path


def _stays(path: str) -> bool:
    """Whether no server would read ``path`` as the way to another folder, even one that decodes it twice."""
    return not {".", ".."} & set(re.split(r"[/\\]", unquote(unquote(path))))


def _checked_command(command: list[str]) -> list[str]:
    if command and not command[0]:
        raise ValueError("begins with the program's name")
    if any(_INPUT in part or "\0" in part for part in command):
        raise ValueError("never depends on a call: {input} belongs in arguments")
    return command


_Path = Annotated[str, AfterValidator(_checked_path)]


class _Outside(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    headers: Annotated[dict[str, str], AfterValidator(_checked_headers)] = Field(
        default={}, description='headers with secrets, such as {Authorization = "Bearer {env:KEY}"}'
    )
    answer: str = Field(
        default="", description='the way to the answer in the result\'s JSON, such as "data.0.name"; "" is its text'
    )

    def read_headers(self) -> dict[str, str]:
        """The headers with their secrets.

        Raises:
            SecretMissing: if a variable is not set, or a file cannot be read.
        """
        return _filled(self.headers, "header")

    def pick(self, result: JsonValue) -> str | None:
        """The answer in ``result``; ``None`` if there is none."""
        found: JsonValue = result
        for step in self.answer.split(".") if self.answer else ():
            if isinstance(found, dict):
                found = found.get(step)
            elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
                found = found[int(step)]
            else:
                return None
        return found if found is None or isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def _filled(texts: Mapping[str, str], kind: str) -> dict[str, str]:
    """``texts``, each of that ``kind`` for people, with their secrets."""
    return {name: _SECRET.sub(partial(_secret, f"{kind} {name}"), text) for name, text in texts.items()}


def _secret(what: str, found: re.Match[str]) -> str:
    source, name = found.groups()
    try:
        value = os.environ[name] if source == "env" else Path(name).read_text(encoding="utf-8")
    except KeyError:
        raise SecretMissing(f"the environment has no value for the {what}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SecretMissing(f"the file for the {what} cannot be read ({type(error).__name__})") from None
    value = value.strip()
    if not (value and value.isascii() and value.isprintable()):
        raise SecretMissing(f"the value for the {what} is empty, or no {what.split()[0]} may hold it")
    return value


class HttpApi(_Outside):
    """A route of an HTTP API, asked once for each call; ``operation`` of an OpenAPI document gives it, or the fields
    ``method``, ``path``, ``query`` and ``body`` do."""

    openapi: str = Field(default="", description="the file with the API's OpenAPI 3 document, in JSON")
    operation: str = Field(default="", description="the operationId in it that is asked for")
    parameters: dict[str, str] = Field(
        default={},
        description='its parameters, such as {id = "{input}", lang = "en"}; by default the one required is the input',
    )
    method: Literal["GET", "POST", "PUT", "PATCH"] = Field(default="GET", description="GET, POST, PUT or PATCH")
    path: _Path = Field(default="", description='what follows the url, such as "/items/{input}"')
    query: dict[str, str] = Field(default={}, description='the parameters, such as {q = "{input}", limit = "1"}')
    body: JsonValue = Field(default=None, description='the body, sent as JSON, such as {text = "{input}"}')
    ready: _Path = Field(
        default="",
        description="the path that answers 2xx once the API is ready; by default any status of the url below 500 does",
    )

    @model_validator(mode="before")
    @classmethod
    def _as_documented(cls, table: Any) -> Any:
        if not isinstance(table, dict) or not table.keys() & {"openapi", "operation", "parameters"}:
            return table
        openapi, operation, parameters = (table.get(name) for name in ("openapi", "operation", "parameters"))
        if not (isinstance(openapi, str) and isinstance(operation, str)):
            raise ValueError("openapi and operation, two texts, go together; parameters are a table beside them")
        parameters = {} if parameters is None else parameters
        if not (isinstance(parameters, dict) and all(isinstance(value, str) for value in parameters.values())):
            return table  # which is refused for it
        if both := table.keys() & {"method", "path", "query", "body"}:
            raise ValueError(f"the document gives {min(both)}; remove it or openapi")
        return table | operation_fields(openapi, operation, parameters, table.get("headers", ()))

    @property
    def takes_input(self) -> bool:
        """Whether there is a place for the input."""
        return _INPUT in self.path or _INPUT in json.dumps([self.query, self.body])

    def path_for(self, input: str) -> str | None:
        """The path with ``input`` in it, encoded; ``None`` if it would lead to another route."""
        parts = [part.replace(_INPUT, quote(input, safe="")) for part in self.path.split("/")]
        # An empty part is another route too: most often the list of all items.
        moved = any(not part and template for part, template in zip(parts, self.path.split("/"), strict=True))
        path = "/".join(parts)
        return path if _stays(path) and not moved else None


class McpServer(_Outside):
    """A tool of an MCP server: one that speaks streamable HTTP at the tool's ``url``, or one that ``command`` starts
    and that speaks over its standard input and output."""

    tool: str = Field(min_length=1, description="the tool's name at the server")
    arguments: dict[str, JsonValue] = Field(default={}, description='its arguments, such as {city = "{input}"}')
    command: Annotated[list[str], AfterValidator(_checked_command)] = Field(
        default=[], description='what starts the server, such as ["uvx", "mcp-server-time"]; instead of a url'
    )
    environment: dict[str, str] = Field(
        default={},
        description='its variables beside PATH and HOME, such as {TZ = "UTC", KEY = "{env:KEY}"}',
    )

    @model_validator(mode="after")
    def _headers_or_environment(self) -> Self:
        if self.command and self.headers:
            raise ValueError("headers are for a server at a url; a command's secrets belong in environment")
        if self.environment and not self.command:
            raise ValueError("environment is for a server that a command starts")
        return self

    def read_environment(self) -> dict[str, str]:
        """The variables with their secrets.

        Raises:
            SecretMissing: if a variable is not set here, or a file cannot be read.
        """
        return _filled(self.environment, "variable")

    @property
    def takes_input(self) -> bool:
        """Whether there is a place for the input."""
        return _INPUT in json.dumps(self.arguments)


def fill(template: JsonValue, input: str) -> Any:
    """``template`` with ``input`` in place of ``{input}`` in its texts; encoding comes later and keeps it a text."""
    if isinstance(template, str):
        return template.replace(_INPUT, input)
    if isinstance(template, list):
        return [fill(part, input) for part in template]
    if isinstance(template, Mapping):
        return {name: fill(part, input) for name, part in template.items()}
    return template
