"""A small HTTP stand-in of Kubernetes' API server: what is created is kept, and a Job's pods live and end as told.

It speaks what the official client asks of it (chunked streams, watches that replay, ``Status`` objects), no more. No
cluster was ever behind these tests.
"""

from __future__ import annotations

import contextlib
import copy
import datetime as dt
import json
import re
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

Object = dict[str, Any]
_PATH = re.compile(
    r"/apis?/(?:[a-z0-9.]+/)?v1/namespaces/(?P<ns>[^/]+)/(?P<kind>[a-z]+)(?:/(?P<name>[^/]+))?(?P<log>/log)?"
)
_OF_JOB, _OF_UID = "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"
_BEGIN = dt.datetime(2026, 11, 21, 16, tzinfo=dt.timezone(dt.timedelta(hours=9)))
"""When a pod's first line is written, on a node whose clock is not UTC's; every further one a second later."""


@dataclass
class PodScript:
    """How one pod goes: its lines, its exit status and why, and whether it waits (for an image) or runs until it is
    deleted, which it then tells in ``last_words``."""

    lines: list[str] = field(default_factory=list)
    status: int = 0
    reason: str = "Error"
    waiting: str = ""
    endless: bool = False
    last_words: str = ""


@dataclass
class ApiServer:
    """What the server holds and how it behaves; tests change it."""

    scripts: list[PodScript] = field(default_factory=lambda: [PodScript(["done"])])
    refused: dict[tuple[str, str], int] = field(default_factory=dict)
    """What is answered to a method and kind, such as ``("POST", "jobs"): 403`` or ``("GET", "pods/log"): 403``."""
    cut_logs_after: int | None = None
    """Lines after which the first connection to each log breaks."""
    broken_watches: int = 0
    """How many watches are answered with 500 first."""
    objects: dict[tuple[str, str], Object] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """Method and kind, such as ``GET pods/log``, with the query."""
    change: threading.Condition = field(default_factory=threading.Condition)
    events: list[Object] = field(default_factory=list)
    logs: dict[str, list[str]] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)

    def asked(self, what: str) -> list[dict[str, str]]:
        """The queries of all requests such as ``GET pods/log``."""
        return [query for one, query in self.requests if one == what]

    def put(self, kind: str, one: Object) -> None:
        """Keep an object, and tell the watches."""
        with self.change:
            known = (kind, one["metadata"]["name"])
            if kind == "pods":
                self.events.append({"type": "MODIFIED" if known in self.objects else "ADDED", "object": one})
            self.objects[known] = one
            self.change.notify_all()

    def write(self, pod: str, line: str) -> None:
        """Add a line to a pod's log."""
        with self.change:
            stamp = (_BEGIN + dt.timedelta(seconds=len(self.logs[pod]))).strftime("%Y-%m-%dT%H:%M:%S.123456789+09:00")
            self.logs[pod].append(f"{stamp} {line}")
            self.change.notify_all()

    def beyond(self, kept: list[Any], seen: int, seconds: float) -> list[Any]:
        """What was added behind the first ``seen``; waits for it, no longer than ``seconds``."""
        with self.change:
            self.change.wait_for(lambda: len(kept) > seen, timeout=seconds)
            return kept[seen:]

    def run_job(self, job: Object) -> None:
        """What the controllers and kubelets do."""
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]
        succeeded, worst = 0, 0
        for index, script in enumerate(self.scripts):
            status = self.run_pod(job, index, script)
            if uid in self.deleted:
                self.forget(name)
                return
            succeeded, worst = succeeded + (not status), worst or status
        kind, why = ("Failed", "BackoffLimitExceeded") if worst else ("Complete", "CompletionsReached")
        condition = {"type": kind, "status": "True", "reason": why, "message": "so it went"}
        self.put("jobs", {**job, "status": {"succeeded": succeeded, "conditions": [condition]}})

    def run_pod(self, job: Object, index: int, script: PodScript) -> int:
        """Let one pod live to its end."""
        name = job["metadata"]["name"]
        indexed = job["spec"].get("completionMode") == "Indexed"
        metadata = {
            "name": f"{name}-{index}-x",
            "namespace": job["metadata"]["namespace"],
            "labels": {_OF_JOB: name, _OF_UID: job["metadata"]["uid"]},
            "annotations": {"batch.kubernetes.io/job-completion-index": str(index)} if indexed else {},
        }

        def now(phase: str, container: Object) -> None:
            states = [{"name": "job", "state": container}]
            self.put(
                "pods", {"kind": "Pod", "metadata": metadata, "status": {"phase": phase, "containerStatuses": states}}
            )

        pod = metadata["name"]
        self.logs[pod] = []
        if script.waiting:
            now("Pending", {"waiting": {"reason": script.waiting, "message": "no such image"}})
            time.sleep(0.3)
        now("Running", {"running": {}})
        for line in script.lines:
            self.write(pod, line)
        with self.change:
            self.change.wait_for(lambda: not script.endless or job["metadata"]["uid"] in self.deleted)
        if script.last_words:
            self.write(pod, script.last_words)
        end = {"exitCode": script.status, "reason": script.reason if script.status else "Completed"}
        now("Failed" if script.status else "Succeeded", {"terminated": end})
        return script.status

    def remove_job(self, name: str) -> None:
        """As with propagation in the foreground: a Job that runs is there until its pods ended."""
        with self.change:
            job = self.objects[("jobs", name)]
            job["metadata"]["deletionTimestamp"] = "2026-11-21T17:00:00Z"
            self.deleted.add(job["metadata"]["uid"])
            self.change.notify_all()
        if job.get("status"):
            self.forget(name)

    def forget(self, job: str) -> None:
        """Take away a Job and its pods."""
        with self.change:
            for kind, name in list(self.objects):
                if (kind == "jobs" and name == job) or (kind == "pods" and name.startswith(job)):
                    del self.objects[kind, name]

    @contextlib.contextmanager
    def serving(self) -> Iterator[str]:
        """The URL, for as long as it is served."""
        handler = type("Handler", (_Handler,), {"api": self})
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            server.daemon_threads = True
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_port}"
            finally:
                server.shutdown()
                thread.join()


class _Handler(BaseHTTPRequestHandler):
    api: ClassVar[ApiServer]
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def _answer(self) -> None:
        api, parts = self.api, urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        found = _PATH.fullmatch(parts.path)
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
        if found is None:
            return self._refuse(404, f"no path {parts.path}")
        kind, name = f"{found['kind']}{found['log'] or ''}", found["name"]
        api.requests.append((f"{self.command} {kind}", query))
        if code := api.refused.get((self.command, kind)):
            return self._refuse(code, f'{kind} is refused: User "eve" cannot {self.command} resource "{kind}"')
        if self.command == "POST":
            return self._create(kind, body)
        if kind == "pods" and name is None:
            return self._pods(query)
        if (one := api.objects.get((found["kind"], name))) is None:
            return self._refuse(404, f'{kind} "{name}" not found')
        if self.command == "DELETE":
            if body["preconditions"]["uid"] != one["metadata"]["uid"]:
                return self._refuse(409, "the UID in the precondition does not match")
            api.remove_job(name)
            return self._json(200, {"kind": "Status", "status": "Success"})
        return self._log(name, query) if found["log"] else self._json(200, one)

    def _create(self, kind: str, one: Object) -> None:
        name = one["metadata"]["name"]
        if (kind, name) in self.api.objects:
            return self._refuse(409, f'{kind} "{name}" already exists')
        one["metadata"]["uid"] = str(uuid.uuid4())
        made = copy.deepcopy(one)  # as it is now; a Job goes on at once
        self.api.put(kind, one)
        if kind == "jobs":
            threading.Thread(target=self.api.run_job, args=(one,), daemon=True).start()
        return self._json(201, made)

    def _pods(self, query: dict[str, str]) -> None:
        job = query["labelSelector"].removeprefix(f"{_OF_JOB}=")
        if "watch" not in query:
            with self.api.change:
                pods = [
                    one for (kind, name), one in self.api.objects.items() if kind == "pods" and name.startswith(job)
                ]
            return self._json(200, {"kind": "PodList", "items": pods})
        if self.api.broken_watches:
            self.api.broken_watches -= 1
            return self._refuse(500, "etcd is away")
        deadline = time.monotonic() + float(query["timeoutSeconds"])
        self._begin()
        told = 0
        while (left := deadline - time.monotonic()) > 0:
            new = self.api.beyond(self.api.events, told, min(left, 0.1))
            told += len(new)
            for event in new:
                labels = event["object"]["metadata"]["labels"]
                if labels[_OF_JOB] == job and labels[_OF_UID] not in self.api.deleted:
                    self._piece(json.dumps(event) + "\n")
        return self._piece("")

    def _log(self, pod: str, query: dict[str, str]) -> None:
        api, told = self.api, 0
        since = dt.datetime.fromisoformat(query.get("sinceTime", "1970-01-01T00:00:00Z"))
        self._begin()
        while True:
            there = api.objects.get(("pods", pod))
            over = there is None or there["status"]["phase"] != "Running"
            new = api.beyond(api.logs[pod], told, 0.05)
            for line in new:
                if told == api.cut_logs_after and pod not in api.cut:
                    api.cut.add(pod)
                    self._piece(line[:40])
                    self.close_connection = True  # within a line, and no last piece: the connection just ends
                    return None
                told += 1
                if dt.datetime.fromisoformat(line.partition(" ")[0]) >= since:
                    self._piece(line + "\n")
            if over and not new:
                return self._piece("")

    def _begin(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")  # so that no test leaves one open
        self.end_headers()

    def _piece(self, text: str) -> None:
        data = text.encode()
        with contextlib.suppress(OSError):  # who watched has gone
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _refuse(self, code: int, message: str) -> None:
        self._json(code, {"kind": "Status", "status": "Failure", "message": message, "code": code})

    def _json(self, code: int, one: Object) -> None:
        data = json.dumps(one).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
