"""The tool registry: files laid over each other, errors that say where and what to do."""

import datetime as dt
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from toolformer.tools import PACKAGED_TOOLS, Tool, ToolConfigError, ToolRegistry, UnknownTool

ATLAS = """
[Atlas]
url = "http://127.0.0.1:8201"
description = "Knows where places are."
quoted = true
pure = true
task = "Add places."
demonstrations = [{input = "Oslo is in Norway.", output = 'Oslo is in [Atlas("Oslo")] Norway.'}]
"""
CHANGE = """
[Change]
url = "http://127.0.0.1:8202"
description = "Changes money."
pure = true
task = "Add sums of money."
sampling_threshold = 0.0
demonstrations = [{input = "$5 (4 pounds)", output = "$5 [Change(5 USD GBP)] (4 pounds)"}]
"""


def write(folder: Path, text: str, name: str = "mine.toml") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def load(*files: Path, **environ: str) -> ToolRegistry:
    return ToolRegistry.load(files, environ)


def errors_of(*files: Path, **environ: str) -> str:
    with pytest.raises(ToolConfigError) as caught:
        load(*files, **environ)
    return str(caught.value)


def toml(tables: dict[str, dict[str, Any]]) -> str:
    def value(v: Any) -> str:
        return str(v).lower() if isinstance(v, bool) else repr(v)

    return "".join(
        f"[{name}]\n" + "".join(f"{field} = {value(v)}\n" for field, v in fields.items())
        for name, fields in tables.items()
    )


class TestPackagedTools:
    def test_the_papers_five_tools_at_their_ports(self) -> None:
        assert {tool.name: tool.url for tool in load()} == {
            "Calculator": "http://127.0.0.1:8101",
            "Calendar": "http://127.0.0.1:8102",
            "WikiSearch": "http://127.0.0.1:8103",
            "QA": "http://127.0.0.1:8104",
            "MT": "http://127.0.0.1:8105",
        }

    def test_the_papers_thresholds(self) -> None:
        common, rare = (0.05, 5, 5, 1.0), (0.0, 20, 10, 0.5)
        expected = {"Calculator": rare, "Calendar": common, "WikiSearch": common, "QA": common, "MT": rare}
        got = {t.name: (t.sampling_threshold, t.max_positions, t.max_samples, t.filter_threshold) for t in load()}
        assert got == expected

    def test_what_each_tool_takes(self) -> None:
        registry = load()
        assert registry.quoted_names == {"WikiSearch", "QA"}
        assert [t.name for t in registry if not t.takes_input] == ["Calendar"]
        assert [t.name for t in registry if t.takes_date] == ["Calendar"]
        assert all(t.pure for t in registry)

    def test_the_calendar_is_cacheable_only_with_a_date(self) -> None:
        registry = load()
        day = dt.date(2026, 11, 20)
        assert registry.get("Calendar").cacheable(day)
        assert not registry.get("Calendar").cacheable(None)
        assert registry.get("Calculator").cacheable(None)

    def test_a_date_the_tool_is_never_passed_does_not_make_its_answer_last(self) -> None:
        dated = dict(load().get("Calendar"))
        undated = Tool.model_validate(dated | {"takes_date": False})
        assert not undated.cacheable(dt.date(2026, 11, 20))


class TestLookingUp:
    def test_get_names_the_known_tools(self) -> None:
        with pytest.raises(UnknownTool, match="'Abacus'; the tools are: Calculator, Calendar, WikiSearch, QA, MT"):
            load().get("Abacus")
        assert issubclass(UnknownTool, KeyError)

    def test_select(self) -> None:
        registry = load()
        assert registry.select(None) == tuple(registry)
        assert registry.select([]) == ()
        assert [t.name for t in registry.select(["WikiSearch", "Calculator", "WikiSearch"])] == [
            "WikiSearch",
            "Calculator",
        ]
        with pytest.raises(UnknownTool):
            registry.select(["Calculator", "Abacus"])

    def test_it_is_a_collection_of_tools(self) -> None:
        registry = load()
        assert len(registry) == 5
        assert "Calendar" in registry
        assert "calendar" not in registry

    def test_a_tool_cannot_be_changed(self) -> None:
        with pytest.raises(ValidationError, match="frozen"):
            load().get("Calculator").url = "http://elsewhere"  # type: ignore[misc]


class TestUserFiles:
    def test_new_tables_add_tools_with_no_code(self, tmp_path: Path) -> None:
        registry = load(write(tmp_path, ATLAS + CHANGE))
        assert registry.names() == (*load().names(), "Atlas", "Change")
        assert registry.quoted_names == {*load().quoted_names, "Atlas"}
        assert registry.get("Change").sampling_threshold == 0.0
        assert registry.get("Atlas").sampling_threshold == 0.05

    def test_a_known_name_changes_only_the_fields_it_gives(self, tmp_path: Path) -> None:
        changed = load(write(tmp_path, "[Calculator]\ntimeout_s = 9\n")).get("Calculator")
        assert changed == load().get("Calculator").model_copy(update={"timeout_s": 9.0})

    def test_enabled(self, tmp_path: Path) -> None:
        off = write(tmp_path, "[Calendar]\nenabled = false\n", "off.toml")
        on = write(tmp_path, "[Calendar]\nenabled = true\n", "on.toml")
        assert load(off).names() == ("Calculator", "WikiSearch", "QA", "MT")
        assert load(off, on).names() == load().names()

    def test_the_environment_names_files_and_addresses(self, tmp_path: Path) -> None:
        first = write(tmp_path, "[Calculator]\ntimeout_s = 7\nmax_batch = 3\n", "first.toml")
        second = write(tmp_path, "[Calculator]\ntimeout_s = 8\n", "second.toml")
        registry = ToolRegistry.load(
            environ={
                "TOOLFORMER_TOOLS": f"{first}{os.pathsep}{second}",
                "TOOLFORMER_TOOL_CALCULATOR_URL": "https://tools.example/calculator/",
            }
        )
        tool = registry.get("Calculator")
        assert (tool.timeout_s, tool.max_batch, tool.url) == (8.0, 3, "https://tools.example/calculator")

    def test_the_process_environment_is_the_default(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TOOLFORMER_TOOL_WIKISEARCH_URL", "http://search:9")
        assert ToolRegistry.load().get("WikiSearch").url == "http://search:9"

    def test_an_address_for_a_disabled_tool_is_no_mistake(self, tmp_path: Path) -> None:
        off = write(tmp_path, "[Calendar]\nenabled = false\n")
        assert "Calendar" not in load(off, TOOLFORMER_TOOL_CALENDAR_URL="http://calendar:1")


OVERRIDES = st.fixed_dictionaries(
    {},
    optional={
        "url": st.integers(1_024, 65_535).map(lambda port: f"http://tools.example:{port}/base"),
        "version": st.from_regex(r"[0-9]{1,3}", fullmatch=True),
        "timeout_s": st.floats(0.1, 600),
        "max_batch": st.integers(1, 1_000),
        "pure": st.booleans(),
        "cost": st.integers(0, 9),
        "filter_threshold": st.floats(-5, 5),
    },
)
LAYERS = st.lists(
    st.dictionaries(st.sampled_from(["Calculator", "Calendar", "WikiSearch"]), OVERRIDES, max_size=3), max_size=4
)


class TestMerging:
    @given(LAYERS)
    def test_the_last_file_that_gives_a_field_decides_it(
        self, tmp_path_factory: pytest.TempPathFactory, layers: list[dict[str, dict[str, Any]]]
    ) -> None:
        folder = tmp_path_factory.mktemp("layers")
        files = [write(folder, toml(layer), f"{number}.toml") for number, layer in enumerate(layers)]
        expected = []
        for tool in load():
            update: dict[str, Any] = {}
            for layer in layers:
                update |= layer.get(tool.name, {})
            expected.append(tool.model_copy(update=update))
        merged = tuple(load(*files))
        assert merged == tuple(expected)

    @given(LAYERS)
    def test_laying_the_same_file_over_twice_changes_nothing(
        self, tmp_path_factory: pytest.TempPathFactory, layers: list[dict[str, dict[str, Any]]]
    ) -> None:
        folder = tmp_path_factory.mktemp("layers")
        files = [write(folder, toml(layer), f"{number}.toml") for number, layer in enumerate(layers)]
        once = load(*files)
        assert tuple(load(*files, *files)) == tuple(once)


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("[Calculator]\ntimeout_s = 0", ["[Calculator] timeout_s: ", "given: 0", "seconds a call may take"]),
            ("[Calculator]\ntimeout_s = nan", ["[Calculator] timeout_s: "]),
            ("[Calculator]\nmax_batch = '5'", ["[Calculator] max_batch: ", "given: '5'"]),
            ("[Calculator]\npure = 1", ["[Calculator] pure: "]),
            ("[Calculator]\nurl = 'tools.example'", ["[Calculator] url: ", "http://127.0.0.1:8101"]),
            ("[Calculator]\nurl = 'ftp://tools.example'", ["[Calculator] url: ", "'http' or 'https'"]),
            ("[Calculator]\nurl = 'http://me:secret@tools.example'", ["[Calculator] url: ", "no user, password"]),
            ("[Calculator]\nurl = 'http://tools.example/?a=b'", ["[Calculator] url: ", "query"]),
            ("[Calculator]\ntimeouts = 3", ["[Calculator] timeouts: is not a field; did you mean timeout_s?"]),
            ("[Calculator]\nxyzzy = 3", ["[Calculator] xyzzy: is not a field; use one of: name, http, mcp, url"]),
            ("[Calculator]\nenabled = 'no'", ["[Calculator] enabled: must be true or false, not 'no'"]),
            ("[Calculator]\nname = 'Sums'", ["[Calculator] name: the table's heading is the name"]),
            ("[Calculater]\nenabled = false", ["[Calculater] enabled: no file defines this tool"]),
            ("Calculator = 3", ["Calculator: expected a table"]),
            ("['Two words']\nurl = 'http://a'", ["[Two words]: a tool's name is a letter"]),
            ("[Calculator]\ndemonstrations = []", ["[Calculator] demonstrations: ", "at least one entry"]),
            (
                "[Calculator]\ndemonstrations = [{input = 'a', outptu = 'b'}]",
                ["[Calculator] demonstrations.0.outptu: is not a field; did you mean output?", "0.output: is missing"],
            ),
            (
                "[Calculator]\ndemonstrations = [{input = '1 + 1 = 2', output = '1 + 1 = [Sum(1 + 1)] 2'}]",
                ["[Calculator]: the output of demonstration 1 has no call; write one that starts with [Calculator("],
            ),
            ("[Calendar]\nquoted = true", ["[Calendar]: quoted = true needs takes_input = true"]),
            (
                "[Weather]\npure = true",
                ["[Weather] url: is missing; url is the base URL", "[Weather] task: is missing"],
            ),
            ("[Calculator\n", ["is not TOML", "line 1"]),
        ],
    )
    def test_the_message_names_file_table_field_and_remedy(
        self, tmp_path: Path, text: str, expected: list[str]
    ) -> None:
        file = write(tmp_path, text)
        message = errors_of(file)
        assert message.startswith(f"{file}: ")
        for part in expected:
            assert part in message
        assert "secret" not in message

    def test_every_problem_is_reported_at_once(self, tmp_path: Path) -> None:
        message = errors_of(
            write(tmp_path, "[Calculator]\nmax_batch = 0\n[Calendar]\nmax_samples = 0\ntimeout_s = -1\n")
        )
        assert len(message.splitlines()) == 3

    def test_a_problem_is_blamed_on_the_file_that_has_it(self, tmp_path: Path) -> None:
        guilty = write(tmp_path, "[Calculator]\nmax_batch = 0\n", "guilty.toml")
        innocent = write(tmp_path, "[Calculator]\ntimeout_s = 3\n", "innocent.toml")
        assert errors_of(guilty, innocent).startswith(f"{guilty}: ")

    def test_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(ToolConfigError, match=r"nowhere\.toml: cannot be read .* TOOLFORMER_TOOLS"):
            ToolRegistry.load(environ={"TOOLFORMER_TOOLS": str(tmp_path / "nowhere.toml")})

    def test_a_file_in_another_encoding(self, tmp_path: Path) -> None:
        file = tmp_path / "latin.toml"
        file.write_bytes('[Calculator]\ndescription = "r\xe9sum\xe9"\n'.encode("latin-1"))
        assert "is not UTF-8 text" in errors_of(file)

    def test_bad_environment(self) -> None:
        assert "TOOLFORMER_TOOL_ABACUS_URL: there is no such tool" in errors_of(TOOLFORMER_TOOL_ABACUS_URL="http://a")
        message = errors_of(TOOLFORMER_TOOL_CALENDAR_URL="calendar:80")
        assert message.startswith("environment variable TOOLFORMER_TOOL_CALENDAR_URL: [Calendar] url: ")

    def test_names_that_differ_only_in_case(self, tmp_path: Path) -> None:
        clash = CHANGE.replace("Change", "calendar")
        assert "but for case" in errors_of(write(tmp_path, clash))

    def test_the_same_tool_twice(self) -> None:
        tool = load().get("Calendar")
        with pytest.raises(ToolConfigError, match="rename one"):
            ToolRegistry([tool, tool])


def test_every_field_says_what_it_means() -> None:
    assert [name for name, field in Tool.model_fields.items() if not field.description] == []


def test_the_packaged_file_is_beside_the_code() -> None:
    assert PACKAGED_TOOLS.is_file()
