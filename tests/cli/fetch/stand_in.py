"""A server of files, and of the hub's API, that misbehaves on request; every request is kept."""

import asyncio
import contextlib
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from tests.toolformer import tool_service
from tests.toolformer.tool_service import Seen, Service


@dataclass
class StandIn:
    """``files`` by path. For each path, first ``statuses`` are answered, then as many bytes as ``cuts`` says are sent
    before the connection is closed, then all is well. ``plain`` paths know no ranges; ``held`` ones stop in the middle
    for good."""

    service: Service = field(default_factory=Service)
    files: dict[str, bytes] = field(default_factory=dict)
    etags: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    cuts: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    plain: set[str] = field(default_factory=set)
    held: set[str] = field(default_factory=set)
    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    commits: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.service.url

    def gets(self, path: str) -> list[dict[str, str]]:
        """The headers of all GET requests for ``path``."""
        return [seen.headers for seen in self.service.seen if (seen.method, seen.path) == ("GET", path)]

    async def behave(self, seen: Seen, writer: asyncio.StreamWriter) -> None:
        if self.statuses[seen.path]:
            writer.write(response(self.statuses[seen.path].pop(0), Retry_After="0"))
        elif seen.path.startswith("/api/models/"):
            writer.write(self._listing(seen.path))
        elif found := re.fullmatch(r"/([\w-]+/[\w-]+)/resolve/(\w+)/(.+)", seen.path):
            # As the hub does: to another host, which must not see the token.
            host = self.url.replace("127.0.0.1", "localhost")
            writer.write(response(302, Location=f"{host}/cdn/{found[1]}/{found[3]}"))
        elif seen.path in self.files:
            await self._file(seen, self.files[seen.path], writer)
        else:
            writer.write(response(404))
        await writer.drain()

    def _listing(self, path: str) -> bytes:
        found = re.match(r"/api/models/([\w-]+/[\w-]+)/revision/(\w+)", path)
        if found is None or found[1] not in self.repositories:
            return response(404, b"{}", X_Error_Code="RepoNotFound")
        siblings = []
        for name, content in self.repositories[found[1]].items():
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            one: dict[str, Any] = {"rfilename": name, "size": len(content), "blobId": blob}
            if name.endswith(".bin"):
                one["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 1}
            siblings.append(one)
        listing = {"id": found[1], "modelId": found[1], "sha": self.commits[found[1]], "siblings": siblings, "tags": []}
        return response(200, json.dumps(listing).encode())

    async def _file(self, seen: Seen, content: bytes, writer: asyncio.StreamWriter) -> None:
        etag = self.etags.get(seen.path, f'"{hashlib.md5(content).hexdigest()}"')
        asked = re.fullmatch(r"bytes=(\d+)-", seen.headers.get("range", ""))
        start = int(asked[1]) if asked and seen.path not in self.plain else 0
        if seen.headers.get("if-range", etag) != etag:
            start = 0
        if start and start >= len(content):
            writer.write(response(416))
            return
        headers = {"ETag": etag} if etag else {}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        rest = content[start:]
        whole = response(206 if start else 200, rest, **headers)
        head = whole[: len(whole) - len(rest)]
        if seen.method == "HEAD":
            writer.write(head)
        elif self.cuts[seen.path]:
            writer.write(head + rest[: self.cuts[seen.path].pop(0)])
            await writer.drain()
            raise ConnectionError
        elif seen.path in self.held:
            writer.write(head + rest[: len(rest) // 2])
            await writer.drain()
            await asyncio.Event().wait()
        else:
            writer.write(whole)


def response(status: int, body: bytes = b"", **headers: str) -> bytes:
    """An answer after which the connection is closed."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return tool_service.response(status, body, {"Connection": "close", **named})


@contextlib.asynccontextmanager
async def serve() -> AsyncIterator[StandIn]:
    """A stand-in that listens on 127.0.0.1 while the block runs."""
    stand_in = StandIn()
    async with tool_service.serve(stand_in.behave) as stand_in.service:
        yield stand_in
