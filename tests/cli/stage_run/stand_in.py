# ruff: noqa: T201
"""A program named docker or kubectl that writes down how it is called, and does what the test's plan says.

``python stand_in.py FOLDER PROGRAM WORD...``. The folder holds ``plan.json`` and, for kubectl, the Job that was
created; ``calls.jsonl`` is written. What is ``refused`` is so always, or as many ``times``.
``kubectl kustomize`` is the real one.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

SECONDS = 100.0
"""How long what is endless lasts, where nothing ends it."""


def main(folder: Path, program: str, words: list[str]) -> int:
    plan: dict[str, Any] = json.loads((folder / "plan.json").read_text())
    if words[:1] == ["kustomize"]:
        os.execv(plan["kubectl"], ["kubectl", *words])
    given = sys.stdin.read() if words[-2:] == ["-f", "-"] else ""
    verb = " ".join(word for word in words if word in {"config", "create", "get", "job", "pods", "json"})
    path = folder / "calls.jsonl"
    with path.open("a") as calls:
        calls.write(json.dumps({"words": [program, *words], "verb": verb, "given": given}) + "\n")
    times = path.read_text().count(f'"verb": "{verb}"')
    if verb in plan.get("refused", {}) and times <= plan.get("times", times):
        print(plan["refused"][verb], file=sys.stderr)
        return 1
    return docker(folder, plan, words) if program == "docker" else kubectl(folder, plan, words, given)


def docker(folder: Path, plan: dict[str, Any], words: list[str]) -> int:
    """``plan``: the ``services`` of the compose file, the ``status`` of the stage, whether it is ``endless``,
    and ``deaf`` to its stop."""
    stopped = folder / "stopped"
    if "config" in words:
        print(json.dumps({"services": plan["services"]}))
    elif "stop" in words:
        if plan.get("deaf"):
            time.sleep(SECONDS)
        stopped.touch()
    elif "run" in words:
        print("at work", flush=True)
        if plan.get("endless"):
            wait_for(stopped.exists)
            print("chunk 3 is kept", flush=True)
        return int(plan.get("status", 0))
    return 0


def kubectl(folder: Path, plan: dict[str, Any], words: list[str], given: str) -> int:
    """``plan``: the ``pods`` and the ``logs`` of each, the first broken after ``cut`` lines; the Job's
    ``conditions``, once a call has the word ``until``, and its ``uid``."""
    job = folder / "job.json"
    if "create" in words and "json" in words:
        made = json.loads(given)
        made["metadata"]["uid"] = "ours"
        made["status"] = {"conditions": plan.get("conditions", [])}
        job.write_text(json.dumps(made))
        print(json.dumps(made))
    elif "delete" in words:
        job.unlink(missing_ok=True)
    elif "job" in words:
        if job.exists():
            read = json.loads(job.read_text())
            if plan.get("until", "") not in (folder / "calls.jsonl").read_text():
                del read["status"]
            read["metadata"]["uid"] = plan.get("uid", "ours")
            print(json.dumps(read))
    elif "--watch" in words:
        print("NAME   READY   STATUS", flush=True)
        time.sleep(SECONDS)
    elif "pods" in words:
        print(json.dumps({"items": plan["pods"]}))
    elif "logs" in words:
        lines = plan["logs"]
        if "cut" in plan and "--since=10s" not in words:
            print(*lines[: plan["cut"]], sep="\n")
            return 1
        print(*lines[plan.get("cut", 0) :], sep="\n", flush=True)
        if plan.get("endless"):
            wait_for(lambda: not job.exists())
            print("chunk 3 is kept", flush=True)
    return 0


def wait_for(happened: Any) -> None:
    end = time.monotonic() + SECONDS
    while not happened() and time.monotonic() < end:
        time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
