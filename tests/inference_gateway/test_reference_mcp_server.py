"""The Model Context Protocol's own time server, unmodified, as a tool; skipped where it is not installed.

It brings packages of its own, so it lives in an environment apart: name its command in
``TOOLFORMER_MCP_SERVER_TIME``, or have ``mcp-server-time`` on PATH.
"""

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.inference_gateway.http_harness import Gateway, gateway
from tests.toolformer.outside_servers import registry
from toolformer.tools import ToolRegistry

RIGHT = " It is [Clock(16:30) -> +9.0h] later."
WITHOUT = " It is"


def clock(pid_file: Path) -> ToolRegistry:
    """The server as a tool that says how far Tokyo is ahead; its process' id is written to ``pid_file``."""
    command = os.environ.get("TOOLFORMER_MCP_SERVER_TIME") or shutil.which("mcp-server-time")
    if not command:
        pytest.skip("mcp-server-time is not installed: pip install it apart and set TOOLFORMER_MCP_SERVER_TIME")
    arguments = {"time": "{input}", "source_timezone": "UTC", "target_timezone": "Asia/Tokyo"}
    mcp = {
        "command": ["sh", "-c", 'echo $$ > "$0"; exec "$@"', str(pid_file), command, "--local-timezone", "UTC"],
        "tool": "convert_time",
        "arguments": arguments,
        "answer": "time_difference",
    }
    shown = [{"input": "At 16:30.", "output": "At [Clock(16:30)] 16:30."}]
    return registry("", name="Clock", mcp=mcp, demonstrations=shown)


async def texts_of(at: Gateway) -> list[str]:
    """What 20 streams at once give."""
    streams = await asyncio.gather(*(at.stream("Clock:") for _ in range(20)))
    return [stream.text() for stream in streams]


async def test_called_from_text_killed_and_back_under_20_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inference_gateway.http.operations.PROBE_CHECK_SECONDS", 60.0)
    pid_file = tmp_path / "pid"
    async with gateway(registry=clock(pid_file)) as at:
        assert (await at.http.get("/ready")).json()["tools"]["Clock"] == {"ready": True, "reason": None}
        assert await texts_of(at) == [RIGHT] * 20
        pids = [int(pid_file.read_text())]
        for _ in range(3):
            streams = asyncio.create_task(texts_of(at))
            await asyncio.sleep(0.02)
            os.kill(pids[-1], signal.SIGKILL)
            assert set(await streams) <= {RIGHT, WITHOUT}
            await asyncio.sleep(1.1)  # a circuit that opened closes again
            assert (await at.stream("Clock:")).text() == RIGHT
            assert await texts_of(at) == [RIGHT] * 20
            pids.append(int(pid_file.read_text()))
        assert len(set(pids)) == 4
