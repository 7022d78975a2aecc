"""The few-shot prompts: the paper's shape, and demonstrations that are what they claim to be."""

import re
from fractions import Fraction

import pytest

from tests.support.calls import parse_call
from toolformer.tools import Tool, ToolRegistry

TOOLS = tuple(ToolRegistry.load(files=[], environ={}))
DEMONSTRATIONS = {"Calculator": 5, "Calendar": 5, "WikiSearch": 3, "QA": 2, "MT": 3}
EACH = [(tool, d.input, d.output) for tool in TOOLS for d in tool.demonstrations]
EACH_TOOL = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
EACH_DEMONSTRATION = pytest.mark.parametrize(("tool", "text", "annotated"), EACH)


def calls_in(tool: Tool, annotated: str) -> list[str]:
    """The call texts of ``tool`` in ``annotated``, brackets included."""
    return re.findall(rf"\[{tool.name}\(.*?\)\]", annotated)


def input_of(tool: Tool, call: str) -> str:
    parsed, result = parse_call(f" {call}", {tool.name} if tool.quoted else ())
    assert (parsed.tool, result) == (tool.name, None)
    return parsed.input


@EACH_TOOL
def test_the_papers_number_of_demonstrations(tool: Tool) -> None:
    assert len(tool.demonstrations) == DEMONSTRATIONS[tool.name]


@EACH_TOOL
def test_the_papers_shape(tool: Tool) -> None:
    text = "A text of one's own."
    first, *shown, last = tool.prompt_for(text).split("\n\n")
    assert first == tool.task
    assert shown == [f"Input: {d.input}\nOutput: {d.output}" for d in tool.demonstrations]
    assert last == f"Input: {text}\nOutput:"


@EACH_TOOL
def test_the_task_shows_how_a_call_is_written(tool: Tool) -> None:
    [example] = calls_in(tool, tool.task)
    assert bool(input_of(tool, example)) is tool.takes_input
    assert "\n" not in tool.task


@EACH_DEMONSTRATION
def test_an_output_is_its_input_with_calls_put_in(tool: Tool, text: str, annotated: str) -> None:
    assert "[" not in text
    calls = calls_in(tool, annotated)
    assert calls
    for call in calls:
        annotated = annotated.replace(f" {call}", "", 1)
    assert annotated == text


@EACH_DEMONSTRATION
def test_every_call_parses_and_is_written_as_the_project_writes_it(tool: Tool, text: str, annotated: str) -> None:
    for call in calls_in(tool, annotated):
        parsed, _ = parse_call(f" {call}", {tool.name} if tool.quoted else ())
        assert parsed.text(quoted=tool.quoted) == f" {call}"
        assert bool(parsed.input) is tool.takes_input


@pytest.mark.parametrize(("text", "annotated"), [(t, a) for tool, t, a in EACH if tool.name == "Calculator"])
def test_the_calculators_calls_give_the_number_that_follows(text: str, annotated: str) -> None:
    [calculator] = [tool for tool in TOOLS if tool.name == "Calculator"]
    for call in calls_in(calculator, annotated):
        following = re.match(r" ([0-9.]+[0-9]|[0-9])", annotated.split(call, 1)[1])
        assert following is not None
        exact = _value(input_of(calculator, call))
        assert abs(exact - Fraction(following.group(1))) <= Fraction(1, 200)


def _value(expression: str) -> Fraction:
    """Sums of products and quotients, no parentheses: enough for the demonstrations, and apart from the service."""
    total = Fraction(0)
    for sign, term in re.findall(r"([+-]?)\s*([0-9.]+(?:\s*[*/]\s*[0-9.]+)*)", expression):
        value = Fraction(1)
        for operator, number in re.findall(r"([*/]?)\s*([0-9.]+)", term):
            value = value / Fraction(number) if operator == "/" else value * Fraction(number)
        total += -value if sign == "-" else value
    return total


@EACH_TOOL
def test_a_short_prompt_shows_calls_of_the_demonstrations_with_results(tool: Tool) -> None:
    assert tool.short_prompt is not None
    shown = re.findall(rf"(\[{tool.name}\([^\]]*\)) -> [^\]]+\]", tool.short_prompt)
    assert len(shown) == len(tool.hidden_prompt.splitlines()) == 2
    for call in shown:
        assert any(f"{call}]" in d.output for d in tool.demonstrations)
    longer = tool.model_copy(update={"short_prompt": None}).hidden_prompt
    assert len(tool.hidden_prompt) < len(longer)
    assert longer.splitlines() == [tool.task, *(d.output for d in tool.demonstrations)]
