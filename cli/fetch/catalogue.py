"""The parts that can be fetched, read from ``parts.toml`` or from a file in its place."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from cli.console import CommandError
from toolformer.names import did_you_mean, find_name

BUNDLED: Final = Path(__file__).with_name("parts.toml")

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Md5 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


def _stays_inside(path: str) -> str:
    if path.startswith("/") or ".." in PurePosixPath(path).parts or "\0" in path:
        raise ValueError(f"{path!r} leads out of the folder it belongs into")
    return path


Relative = Annotated[str, AfterValidator(_stays_inside)]


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class HubFiles(_Entry):
    """Files of one repository on the Hugging Face hub. ``optional`` ones are taken where the revision has them;
    ``folder`` is where they go, below the part's."""

    repository: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
    revision: str = "main"
    files: Annotated[tuple[Relative, ...], Field(min_length=1)]
    optional: tuple[Relative, ...] = ()
    folder: Relative = ""


class WebFile(_Entry):
    """A file at an address, named by the last part of it. With ``count`` there are so many: ``{n}`` in the address is
    0, 1, ... ``size`` in bytes and digests are given where they are published."""

    url: Annotated[str, Field(pattern=r"^https?://[^/]+/.*[^/]$")]
    count: Annotated[int, Field(ge=1)] | None = None
    folder: Relative = ""
    size: Annotated[int, Field(ge=0)] | None = None
    sha256: Sha256 | None = None
    md5: Md5 | None = None

    def addresses(self) -> Iterator[tuple[str, str]]:
        """Each file's name below the part's folder, and its address."""
        for number in range(self.count or 1):
            url = self.url if self.count is None else self.url.replace("{n}", str(number))
            yield str(PurePosixPath(self.folder) / PurePosixPath(urlsplit(url).path).name), url


class Part(_Entry):
    """Something that can be fetched: what for, from where, what it takes (bytes), and what to do next with it."""

    name: str
    purpose: str
    folder: Annotated[Relative, Field(min_length=1)]
    size: Annotated[int, Field(ge=0)]
    size_is: Literal["published", "worked out"]
    disk: Annotated[int, Field(ge=0)]
    memory: str
    licence: str
    next: tuple[str, ...]
    source: str
    hub: tuple[HubFiles, ...] = ()
    web: tuple[WebFile, ...] = ()

    def origins(self) -> list[str]:
        """Repositories with their revision, and addresses, as shown to people."""
        hub = [f"{one.repository}@{one.revision}" for one in self.hub]
        return hub + [one.url.replace("{n}", f"0..{(one.count or 1) - 1}") for one in self.web]

    def required(self) -> set[str]:
        """Names below the part's folder of all files without which it is not whole."""
        hub = {str(PurePosixPath(one.folder) / name) for one in self.hub for name in one.files}
        return hub | {name for one in self.web for name, _ in one.addresses()}

    def next_commands(self, to: str) -> list[str]:
        """What to do once the part lies below the folder ``to``."""
        return [command.replace("{to}", to) for command in self.next]


def load_parts(path: Path = BUNDLED) -> dict[str, Part]:
    """All parts by name, in the file's order.

    Raises:
        CommandError: the file is missing or wrong; the message names the part and the field.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}; name a file of parts in --parts") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} is not TOML: {error}") from error
    parts: dict[str, Part] = {}
    for name, table in tables.items():
        for full_name, fields in _sizes(name, table):
            try:
                parts[full_name] = Part(name=full_name, **fields)
            except (ValidationError, TypeError) as error:
                raise CommandError(f"{path}: [{full_name}] {_first(error)}") from error
    return parts


def choose(parts: Mapping[str, Part], names: Sequence[str]) -> list[Part]:
    """The named parts, each once.

    Raises:
        CommandError: a name is unknown.
    """
    for name in names:
        if find_name(name, parts) is None:
            raise CommandError(f"there is no part {name!r}; {did_you_mean(name, parts)}there are {', '.join(parts)}")
    return [parts[name] for name in dict.fromkeys(find_name(name, parts) or name for name in names)]


def _sizes(name: str, table: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """A table as it is, or with ``sizes`` once for each of them, ``{size}`` filled in everywhere."""
    if not isinstance(table, dict) or "sizes" not in table:
        yield name, table
        return
    common = {key: value for key, value in table.items() if key != "sizes"}
    for size, own in table["sizes"].items():
        yield f"{name}-{size}", _fill(common | own, size)


def _fill(value: Any, size: str) -> Any:
    if isinstance(value, str):
        return value.replace("{size}", size)
    if isinstance(value, dict):
        return {key: _fill(inner, size) for key, inner in value.items()}
    return [_fill(inner, size) for inner in value] if isinstance(value, list) else value


def _first(error: ValidationError | TypeError) -> str:
    if isinstance(error, TypeError):
        return "must be a table"
    # What is there and is wrong says more than what is missing.
    first = min(error.errors(), key=lambda one: one["type"] == "missing")
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
