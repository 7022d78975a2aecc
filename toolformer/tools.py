"""The tools a model may call: what each is, where it answers, how it is taught and what it may cost.

A tool is one table of a TOML file, named as it is in text (``[Calculator]``). The packaged ``tools.toml`` is
read first; the files named by ``TOOLFORMER_TOOLS`` (several are separated as in ``PATH``) are laid over it: a table
with a known name changes only the fields it gives, a new name adds a tool, ``enabled = false`` takes one away. Last,
``TOOLFORMER_TOOL_<NAME>_URL`` (``<NAME>`` in capitals) moves a tool to another address. Tool addresses come from
nowhere else.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticKnownError

from toolformer.names import did_you_mean, find_name
from toolformer.outside import HttpApi, McpServer

PACKAGED_TOOLS: Final = Path(__file__).with_name("tools.toml")
"""The tools that come with the project."""

PROMPT_TAIL: Final = "\nOutput:"
"""What a few-shot prompt ends with, behind the text to annotate."""

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_URL_VARIABLE: Final = re.compile(r"TOOLFORMER_TOOL_(\w+)_URL")
_HTTP_URL: Final = TypeAdapter(HttpUrl)


class ToolConfigError(ValueError):
    """The tools' configuration is wrong. Each line of the message names file, table, field, problem and remedy."""


class UnknownTool(KeyError):  # noqa: N818 - reads as what happened, as KeyError's own callers do
    """No tool has this name; the message lists those there are."""

    def __init__(self, name: str, known: Collection[str]) -> None:
        super().__init__(name)
        self.name = name
        self.known = tuple(known)

    def __str__(self) -> str:  # KeyError would show the bare name in quotes
        hint = did_you_mean(self.name, self.known)
        return f"there is no tool {self.name[:100]!r}; {hint}the tools are: {', '.join(self.known) or 'none'}"


def _base_url(text: str, info: ValidationInfo) -> str:
    mcp: McpServer | None = info.data.get("mcp")
    if mcp is not None and mcp.command:
        if text:
            raise ValueError("a server that a command starts has no url; remove one of both")
        return ""
    if not text and "mcp" in info.data:  # without it, what is wrong with that table has been found
        raise PydanticKnownError("missing")
    url = _HTTP_URL.validate_python(text)
    if url.username or url.password or url.query or url.fragment:
        raise ValueError("a base URL has no user, password, query or fragment")
    return str(url).rstrip("/")


class Demonstration(BaseModel):
    """One example of a prompt: a text, and the same text with calls put in where they help."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    input: str = Field(min_length=1, description="a text without calls")
    output: str = Field(min_length=1, description="the same text with at least one call in it")


class Tool(BaseModel):
    """One tool. The defaults of the thresholds and sample counts are the paper's; those of the limits are ours."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = Field(
        pattern=f"^{_NAME.pattern}$", description="the name in text: a letter, then letters, digits or underscores"
    )
    http: HttpApi | None = Field(default=None, description="how to call an HTTP API that is no service of ours")
    mcp: McpServer | None = Field(default=None, description="how to call a tool of an MCP server")
    url: Annotated[str, AfterValidator(_base_url)] = Field(
        default="",
        validate_default=True,
        description="the base URL of the tool's service, such as http://127.0.0.1:8101",
    )
    description: str = Field(min_length=1, description="one sentence for people and for clients that list the tools")
    version: str = Field(default="1", min_length=1, description="changes when the same input may give another answer")

    quoted: bool = Field(default=False, description="true if the input is in double quotes in text")
    takes_input: bool = Field(
        default=True, description="false for a tool that is called with nothing in its parentheses"
    )
    takes_date: bool = Field(
        default=False, description="true if the service uses the date of the text it is called from"
    )
    depends_on_date: bool = Field(default=False, description="true if a call without a date answers for today")
    input_from_before: bool = Field(
        default=False,
        description="true if a call whose input is in the text only behind the call is no honest one (section 2)",
    )
    pure: bool = Field(default=False, description="true if calling twice does no more than calling once")
    cost: float = Field(
        default=1.0, ge=0, allow_inf_nan=False, description="the price of a call, the calculator's being 1; 0 or more"
    )

    task: str = Field(
        min_length=1, description="the sentences that open the few-shot prompt: what to do and how a call is written"
    )
    # TOML gives a list; everything inside is as strict as the rest.
    demonstrations: tuple[Demonstration, ...] = Field(
        min_length=1, strict=False, description="a list of {input = ..., output = ...} with at least one entry"
    )
    short_prompt: str | None = Field(
        default=None, min_length=1, description="what tool_prompting shows in place of task and demonstrations"
    )

    sampling_threshold: float = Field(
        default=0.05,
        ge=0,
        lt=1,
        description="tau_s: a position is kept if a call starts there with more than this probability",
    )
    max_positions: int = Field(default=5, ge=1, description="k: positions kept in a text, at least 1")
    max_samples: int = Field(default=5, ge=1, description="m: calls sampled at a position, at least 1")
    filter_threshold: float = Field(
        default=1.0, allow_inf_nan=False, description="tau_f: how much a call must lower the loss to be kept, in nats"
    )

    timeout_s: float = Field(
        default=5.0, gt=0, le=600, description="seconds a call may take, retries included, up to 600"
    )
    max_input_tokens: int = Field(default=64, ge=1, description="tokens of a call's input, at least 1")
    max_result_tokens: int = Field(default=64, ge=1, description="tokens of a result put into the text, at least 1")
    max_batch: int = Field(default=32, ge=1, description="calls in one request to the service, at least 1")

    def __hash__(self) -> int:
        return hash(self.name)  # the tables inside have no hash

    @model_validator(mode="after")
    def _outside_gets_the_input(self) -> Self:
        if self.http is not None and self.mcp is not None:
            raise ValueError("a tool has http or mcp, not both")
        if self.outside is not None:
            if self.takes_date:
                raise ValueError("takes_date = true needs a service: only its contract has a date")
            if self.takes_input and not self.outside.takes_input:
                raise ValueError("the input goes nowhere: write {input} where it belongs, or takes_input = false")
        return self

    @model_validator(mode="after")
    def _demonstrations_show_calls(self) -> Self:
        if self.quoted and not self.takes_input:
            raise ValueError("quoted = true needs takes_input = true: there is no input to quote")
        call = f"[{self.name}(" + ('"' if self.quoted else "" if self.takes_input else ")]")
        for number, demonstration in enumerate(self.demonstrations, start=1):
            if call not in demonstration.output:
                raise ValueError(f"the output of demonstration {number} has no call; write one that starts with {call}")
        return self

    @property
    def outside(self) -> HttpApi | McpServer | None:
        """How the tool is called if it is no service of the contract."""
        return self.http or self.mcp

    @property
    def address(self) -> str:
        """Where the tool is, for its operator: its URL, or the program that is started."""
        return f"stdio:{Path(self.mcp.command[0]).name}" if self.mcp and self.mcp.command else self.url

    @property
    def batch(self) -> int:
        """Calls in one request: ``max_batch`` of a service, 1 outside."""
        return self.max_batch if self.outside is None else 1

    @property
    def prompt_head(self) -> str:
        """What :meth:`prompt_for` gives before the text: the same for every text."""
        shown = [f"Input: {d.input}\nOutput: {d.output}" for d in self.demonstrations]
        return "\n\n".join([self.task, *shown, "Input:"])

    def prompt_for(self, text: str) -> str:
        """The few-shot prompt ``P(x)`` (section 2) that asks a plain model to put calls into ``text``."""
        return f"{self.prompt_head} {text}{PROMPT_TAIL}"

    @property
    def hidden_prompt(self) -> str:
        """What shows a model, before the text that it goes on with, how the tool is called: ``short_prompt``, or the
        task and what the demonstrations have come to; a line each."""
        shown = self.short_prompt or "\n".join([self.task, *(d.output for d in self.demonstrations)])
        return shown.strip("\n") + "\n"

    def cacheable(self, date: dt.date | None) -> bool:
        """Whether the answer to a call with ``date`` holds for ever, given the same input and version."""
        dated = date is not None and self.takes_date
        return self.pure and (dated or not self.depends_on_date)


class ToolRegistry:
    """The tools by name, in the order in which they were defined. It never changes once made.

    Raises:
        ToolConfigError: if two tools have the same name but for case; they would share one environment variable.
    """

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        spellings: dict[str, str] = {}
        for tool in tools:
            other = spellings.setdefault(tool.name.upper(), tool.name)
            if tool.name in self._tools or other != tool.name:
                raise ToolConfigError(f"[{tool.name}] has the name of [{other}] but for case: rename one of them")
            self._tools[tool.name] = tool

    @classmethod
    def load(cls, files: Sequence[Path] | None = None, environ: Mapping[str, str] | None = None) -> ToolRegistry:
        """The packaged tools with ``files`` laid over them in order, then the addresses of ``environ``.

        ``files`` are by default those of ``TOOLFORMER_TOOLS``, ``environ`` the process' environment.

        Raises:
            ToolConfigError: if a file cannot be read, or a table or variable is wrong.
        """
        env = os.environ if environ is None else environ
        if files is None:
            files = [Path(entry) for entry in env.get("TOOLFORMER_TOOLS", "").split(os.pathsep) if entry]
        tables = _Tables()
        for file in (PACKAGED_TOOLS, *files):
            tables.lay_over(file)
        tables.lay_over_addresses(env)
        return cls(tables.tools())

    def names(self) -> tuple[str, ...]:
        """The tools' names as they are in text."""
        return tuple(self._tools)

    @property
    def quoted_names(self) -> frozenset[str]:
        """The names of the tools whose input is in double quotes: what reading a call needs to know."""
        return frozenset(tool.name for tool in self if tool.quoted)

    def get(self, name: str) -> Tool:
        """The tool called ``name``.

        Raises:
            UnknownTool: if there is none.
        """
        try:
            return self._tools[name]
        except KeyError:
            raise UnknownTool(name, self.names()) from None

    def named(self, name: str) -> Tool:
        """The tool that a person calls ``name``: capitals and underscores do not count, other than in text.

        Raises:
            UnknownTool: if there is none.
        """
        return self.get(find_name(name, self._tools) or name)

    def select(self, names: Iterable[str] | None) -> tuple[Tool, ...]:
        """The tools that people call ``names``, each once, in that order; ``None`` means all.

        Raises:
            UnknownTool: if a name is not known.
        """
        return tuple(self) if names is None else tuple(dict.fromkeys(self.named(name) for name in names))

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools


class _Tables:
    """Raw tables laid over each other, with the source of every field, so that an error names the file that has it."""

    def __init__(self) -> None:
        self._fields: dict[str, dict[str, Any]] = {}
        self._sources: dict[tuple[str, str], str] = {}
        self._last_source: dict[str, str] = {}

    def lay_over(self, file: Path) -> None:
        for name, table in _read(file).items():
            if not isinstance(table, dict):
                raise ToolConfigError(
                    f"{file}: {name}: expected a table; write a tool as [{name}] with its fields below"
                )
            if not _NAME.fullmatch(name):
                raise ToolConfigError(
                    f"{file}: [{name}]: a tool's name is a letter, then letters, digits or underscores"
                )
            if "name" in table:
                raise ToolConfigError(f"{file}: [{name}] name: the table's heading is the name; remove this field")
            self._last_source[name] = str(file)
            self._fields.setdefault(name, {}).update(table)
            for field in table:
                self._sources[name, field] = str(file)

    def lay_over_addresses(self, environ: Mapping[str, str]) -> None:
        by_capitals = {name.upper(): name for name in self._fields}
        for variable, url in environ.items():
            found = _URL_VARIABLE.fullmatch(variable)
            if found is None:
                continue
            name = by_capitals.get(found.group(1))
            if name is None:
                known = ", ".join(sorted(by_capitals))
                raise ToolConfigError(f"{variable}: there is no such tool; unset it or use one of: {known}")
            self._fields[name]["url"] = url
            self._sources[name, "url"] = f"environment variable {variable}"

    def tools(self) -> list[Tool]:
        """The enabled tools, validated.

        Raises:
            ToolConfigError: with every problem of every table.
        """
        tools, problems = [], []
        for name, table in self._fields.items():
            fields = dict(table)
            enabled = fields.pop("enabled", True)
            if not isinstance(enabled, bool):
                problems.append(
                    f"{self._sources[name, 'enabled']}: [{name}] enabled: must be true or false, not {enabled!r}"
                )
            elif not enabled and not fields:
                problems.append(
                    f"{self._last_source[name]}: [{name}] enabled: no file defines this tool; remove the table"
                )
            elif enabled:
                try:
                    tools.append(Tool.model_validate({"name": name, **fields}))
                except ValidationError as error:
                    problems.extend(self._explain(name, error))
        if problems:
            raise ToolConfigError("\n".join(problems))
        return tools

    def _explain(self, name: str, error: ValidationError) -> Iterator[str]:
        for problem in error.errors(include_url=False):
            field = str(problem["loc"][0]) if problem["loc"] else ""
            source = self._sources.get((name, field), self._last_source[name])
            where = f"{source}: [{name}] {'.'.join(str(part) for part in problem['loc'])}".rstrip()
            known = Tool.model_fields.get(field)
            said = problem["msg"].removeprefix("Value error, ")
            meaning = f"; {field} is {known.description}" if known and known.description else ""
            if problem["type"] == "missing":
                yield f"{where}: is missing{meaning}"
            elif problem["type"] == "extra_forbidden":
                inside: dict[str, type[BaseModel]] = {"http": HttpApi, "mcp": McpServer}
                owner = Tool if len(problem["loc"]) == 1 else inside.get(field, Demonstration)
                close = get_close_matches(str(problem["loc"][-1]), owner.model_fields, n=1)
                remedy = f"did you mean {close[0]}?" if close else f"use one of: {', '.join(owner.model_fields)}"
                yield f"{where}: is not a field; {remedy}"
            else:
                # What may hold a password is not repeated.
                show = problem["loc"] and "@" not in str(problem["input"]) and "headers" not in str(problem)
                given = f" (given: {problem['input']!r})" if show else ""
                yield f"{where}: {said}{given}{meaning}"


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or error
        raise ToolConfigError(f"{file}: cannot be read ({reason}); correct the path or TOOLFORMER_TOOLS") from error
    except UnicodeDecodeError as error:
        raise ToolConfigError(f"{file}: is not UTF-8 text; save it as UTF-8 ({error})") from error
    except tomllib.TOMLDecodeError as error:
        raise ToolConfigError(f"{file}: is not TOML: {error}") from error
