"""A server of files, and of the hub's API, that misbehaves as it is told; every request is kept."""

import contextlib
import hashlib
import json
import re
import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class StandIn:
    """``files`` by path. For each path, first ``statuses`` are answered, then as many bytes as ``cuts`` says are sent
    before the connection is closed, then all is well. ``plain`` paths know no ranges; ``held`` ones stop in the middle
    until ``release`` is set."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    etags: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    cuts: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    plain: set[str] = field(default_factory=set)
    held: set[str] = field(default_factory=set)
    release: threading.Event = field(default_factory=threading.Event)
    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    commits: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    def gets(self, path: str) -> list[dict[str, str]]:
        """The headers of all GET requests for ``path``."""
        return [headers for method, asked, headers in self.requests if method == "GET" and asked == path]


@contextlib.contextmanager
def serve() -> Iterator[StandIn]:
    """A stand-in that listens on 127.0.0.1 while the block runs."""
    stand_in = StandIn()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(stand_in))
    server.daemon_threads = True
    stand_in.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield stand_in
    finally:
        stand_in.release.set()
        server.shutdown()
        server.server_close()
        thread.join(10)


def _handler(stand_in: StandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def _answer(self, *, with_body: bool) -> None:
            stand_in.requests.append((self.command, self.path, dict(self.headers.items())))
            if stand_in.statuses[self.path]:
                self._plain(stand_in.statuses[self.path].pop(0))
            elif self.path.startswith("/api/models/"):
                self._listing()
            elif found := re.fullmatch(r"/([\w-]+/[\w-]+)/resolve/(\w+)/(.+)", self.path):
                self.send_response(302)  # as the hub does: to another host, which must not see the token
                host = stand_in.url.replace("127.0.0.1", "localhost")
                self.send_header("Location", f"{host}/cdn/{found[1]}/{found[3]}")
                self.send_header("Content-Length", "0")
                self.end_headers()
            elif self.path in stand_in.files:
                self._file(stand_in.files[self.path], with_body)
            else:
                self._plain(404)

        def _plain(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), "Retry-After": "0", **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def _listing(self) -> None:
            found = re.match(r"/api/models/([\w-]+/[\w-]+)/revision/(\w+)", self.path)
            if found is None or found[1] not in stand_in.repositories:
                return self._plain(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            files, commit = stand_in.repositories[found[1]], stand_in.commits[found[1]]
            siblings = []
            for name, content in files.items():
                blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
                one: dict[str, Any] = {"rfilename": name, "size": len(content), "blobId": blob}
                if name.endswith(".bin"):
                    one["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 1}
                siblings.append(one)
            told = {"id": found[1], "modelId": found[1], "sha": commit, "siblings": siblings, "tags": []}
            return self._plain(200, json.dumps(told).encode(), {"Content-Type": "application/json"})

        def _file(self, content: bytes, with_body: bool) -> None:
            etag = stand_in.etags.get(self.path, f'"{hashlib.md5(content).hexdigest()}"')
            asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            start = int(asked[1]) if asked and self.path not in stand_in.plain else 0
            if self.headers.get("If-Range", etag) != etag:
                start = 0
            if start and start >= len(content):
                return self._plain(416)
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            if etag:
                self.send_header("ETag", etag)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            if not with_body:
                return None
            rest = content[start:]
            if stand_in.cuts[self.path]:
                self.wfile.write(rest[: stand_in.cuts[self.path].pop(0)])
                self.close_connection = True
                return None
            if self.path in stand_in.held:
                half = len(rest) // 2
                self.wfile.write(rest[:half])
                self.wfile.flush()
                stand_in.release.wait(60)
                self.close_connection = True
                return None
            self.wfile.write(rest)
            return None

    return Handler
