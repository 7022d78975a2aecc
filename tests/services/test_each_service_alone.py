"""Each of the five services alone, over every door: the command, REST, a batch, MCP with the official client."""

from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

from tests.cli.command import run
from tests.services.real_services import RunningService, registry_variables, tool_of

pytestmark = pytest.mark.timeout(400)

DAY = "2026-11-20"
BAD_INPUT = {
    "calculator": ("1 / 0", "division_by_zero"),
    "calendar": ("tomorrow", "unexpected_input"),
    "wiki_search": ("", "empty_query"),
    "question_answering": ("?", "empty_question"),
    "translation": ("", "empty"),
}
"""An input without an answer for each service, and the reason."""


def example(running: RunningService) -> dict[str, Any]:
    """A call of the service's example."""
    context = {"context": {"date": DAY}} if running.info.takes_context else {}
    return {"input": running.info.example_input, **context}


def called(running: RunningService) -> str:
    """What ``POST /call`` says to the example: what all the other doors must say too."""
    answer = running.http.post("/call", json=example(running)).json()
    assert (answer["tool"], answer["error"]) == (running.info.tool, None)
    output: str = answer["output"]
    return output


def test_rest(running: RunningService) -> None:
    output = called(running)
    if running.info.service != "question_answering":  # its model is a random one here
        assert output == running.info.example_output
    value = DAY if running.info.takes_context else running.info.example_input
    own = running.ask(value)
    metrics = running.http.get("/metrics").text
    assert own.status_code == 200, own.text
    assert output.rpartition(" > ")[2] in str(own.json())
    assert 'tool_calls_total{outcome="ok"}' in metrics


def test_a_batch(running: RunningService) -> None:
    bad, code = BAD_INPUT[running.info.service]
    calls = [example(running), {"input": bad}, example(running)]
    answers = running.http.post("/calls", json={"calls": calls}).json()["calls"]
    assert [answer["output"] for answer in answers] == [called(running), None, called(running)]
    assert [answer["input"] for answer in answers] == [call["input"] for call in calls]
    assert answers[1]["error"]["code"] == code


async def test_the_command(running: RunningService, tmp_path: Path) -> None:
    environment = registry_variables(running.info, tmp_path, running.url)
    date = ["--date", DAY] if running.info.takes_context else []
    status, out, log = await run("call", running.info.tool, running.info.example_input, *date, env=environment)
    assert (status, out, log) == (0, called(running) + "\n", "")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_mcp(running: RunningService, tmp_path: Path, mode: str) -> None:
    info, tool = running.info, tool_of(running.info, tmp_path)
    async with Client(streamable_http_client(f"{running.url}/mcp"), mode=mode) as client:
        [listed] = (await client.list_tools()).tools
        assert (listed.name, listed.description) == (tool.name, tool.description)
        schema = listed.input_schema
        assert schema["type"] == "object"
        assert set(schema["properties"]) == {"input", "date"} if tool.takes_date else {"input"}
        assert schema["properties"]["input"]["description"] == info.input_description
        assert schema.get("required", []) == (["input"] if tool.takes_input else [])

        arguments = {"input": info.example_input} if tool.takes_input else {}
        result = await client.call_tool(tool.name, arguments | ({"date": DAY} if tool.takes_date else {}))
        assert not result.is_error
        assert [one.text for one in result.content if isinstance(one, TextContent)] == [called(running)]

        bad, code = BAD_INPUT[info.service]
        refused = await client.call_tool(tool.name, {"input": bad})
        assert refused.is_error
        assert [one.text.partition(":")[0] for one in refused.content if isinstance(one, TextContent)] == [code]


def test_the_registry_and_the_service_mean_the_same_tool(running: RunningService, tmp_path: Path) -> None:
    info, tool = running.info, tool_of(running.info, tmp_path)
    assert (tool.takes_input, tool.takes_date) == (info.takes_input, info.takes_context)
    assert tool.max_batch <= info.max_batch


def test_answers_name_code_and_data(running: RunningService) -> None:
    version = running.http.get("/ready").headers["tool-version"]
    assert running.http.post("/call", json=example(running)).headers["tool-version"] == version
    code, plus, data = version.partition("+")
    assert code == running.info.version
    has_data = running.info.service not in {"calculator", "calendar"}
    assert (bool(plus), len(data)) == (has_data, 16 if has_data else 0)
