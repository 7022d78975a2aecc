"""Clients of a scaled gateway, run inside a container: ``python streams.py STREAMS SECONDS`` prints counts as JSON;
SIGINT ends it before, once the streams that run have ended.

A name leads to several gateways. A client whose gateway takes no connections goes to another, as a proxy would; a
stream that began and did not end is lost.
"""

import asyncio
import json
import random
import signal
import socket
import sys
import time

import httpx

PROMPT = "Each of {} boxes holds 17 books. How many books are there altogether? The answer is"


async def client(number: int, until: float, enough: asyncio.Event, counts: dict[str, int]) -> None:
    random.seed(number)
    limits = httpx.Limits(max_keepalive_connections=0)
    async with httpx.AsyncClient(timeout=httpx.Timeout(120, connect=5), limits=limits) as http:
        while time.monotonic() < until and not enough.is_set():
            boxes = random.randint(2, 99)
            body = {"prompt": PROMPT.format(boxes), "max_tokens": 64, "stream": True, "tools": ["Calculator"]}
            found = await asyncio.get_running_loop().getaddrinfo("gateway", 8080, type=socket.SOCK_STREAM)
            addresses = [one[4][0] for one in found]
            random.shuffle(addresses)
            for address in addresses:
                try:
                    ended, calls = await complete(http, f"http://{address}:8080/v1/completions", body)
                except (httpx.ConnectError, httpx.ConnectTimeout):
                    counts["went to another gateway"] += 1
                    continue
                except httpx.HTTPError:
                    ended, calls = False, []
                counts["completed" if ended else "lost"] += 1
                counts["calls"] += len(calls)
                counts["calls without an answer"] += sum(call["error"] is not None for call in calls)
                break
            else:
                counts["found no gateway"] += 1
                await asyncio.sleep(0.5)


async def complete(http: httpx.AsyncClient, url: str, body: dict[str, object]) -> tuple[bool, list[dict[str, object]]]:
    calls: list[dict[str, object]] = []
    async with http.stream("POST", url, json=body) as answer:
        if answer.status_code == 503:
            raise httpx.ConnectError("it is not ready, or ends")
        answer.raise_for_status()
        async for line in answer.aiter_lines():
            if line == "data: [DONE]":
                return True, calls
            if line.startswith("data: "):
                event = json.loads(line.removeprefix("data: "))
                if "error" in event:
                    return False, calls
                for choice in event["choices"]:
                    calls += choice.get("tool_calls") or []
    return False, calls


async def main() -> None:
    streams, seconds = int(sys.argv[1]), float(sys.argv[2])
    names = ("completed", "lost", "calls", "calls without an answer", "went to another gateway", "found no gateway")
    counts = dict.fromkeys(names, 0)
    until = time.monotonic() + seconds
    enough = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, enough.set)
    await asyncio.gather(*(client(number, until, enough, counts) for number in range(streams)))
    print(json.dumps(counts))  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main())
