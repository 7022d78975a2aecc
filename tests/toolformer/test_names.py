"""Names as people type them."""

import pytest

from toolformer.names import did_you_mean, find_name
from toolformer.tools import ToolRegistry, UnknownTool

KNOWN = ("Calculator", "WikiSearch", "QA")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("QA", "QA"),
        ("qa", "QA"),
        ("wiki_search", "WikiSearch"),
        ("wiki-search", "WikiSearch"),
        ("Wiki", None),
        ("", None),
    ],
)
def test_capitals_and_underscores_do_not_count(given: str, found: str | None) -> None:
    assert find_name(given, KNOWN) == found


def test_a_name_that_means_two_is_none_but_for_itself() -> None:
    assert find_name("wikisearch", ("WikiSearch", "Wiki_Search")) is None
    assert find_name("Wiki_Search", ("WikiSearch", "Wiki_Search")) == "Wiki_Search"


def test_the_nearest_name_is_offered() -> None:
    assert did_you_mean("calculater", KNOWN) == "did you mean 'Calculator'? "
    assert did_you_mean("abacus", KNOWN) == ""


def test_people_may_spell_tools_freely_and_texts_may_not() -> None:
    registry = ToolRegistry.load(files=[], environ={})
    assert [tool.name for tool in registry.select(["calculator", "QA", "Calculator"])] == ["Calculator", "QA"]
    with pytest.raises(UnknownTool):
        registry.get("calculator")
    with pytest.raises(UnknownTool, match="did you mean 'Calendar'"):
        registry.named("Calender")
