"""A component of nothing but the standard library that behaves as ``BEHAVIOUR`` says, for supervising."""

import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    """Answers every GET as ``/ready`` would be answered."""

    asked = 0

    def do_GET(self) -> None:
        Handler.asked += 1
        if Handler.asked == 3:
            sys.stderr.write("asked for the third time\n")
        behaviour = os.environ["BEHAVIOUR"]
        body = json.dumps({"error": {"message": "the index is being built"}}) if behaviour == "loads" else "{}"
        self.send_response(503 if behaviour in ("loads", "speaks_otherwise") else 200)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def main() -> None:
    """Behave."""
    behaviour = os.environ["BEHAVIOUR"]
    if behaviour == "babbles":
        sys.stdout.buffer.write("gr\u00fc\u00dfe\r\n".encode() + b"\xff\n" + b"x" * 40_000 + b"\n\nno line end")
        sys.stdout.buffer.flush()
        sys.exit(3)
    if behaviour == "reads":
        sys.exit(f"read {sys.stdin.read()!r} with {sys.argv[1:]}")
    if behaviour == "works_once":
        before = Path(os.environ["BEFORE"])
        if before.exists():
            sys.exit("never again")
        before.touch()
    if behaviour == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()


main()
