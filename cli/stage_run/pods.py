"""What the pods of a Job do and say, as the cluster tells it."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from cli.console import CommandError, printable
from cli.stage_run.cluster import Cluster, RefusedError
from cli.stage_run.log_lines import LogLines
from cli.stage_run.words import say

_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_AGAIN_SECONDS: Final = 1.0
"""Between one look at a log and the next."""
_STUCK: Final = {
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
}
"""Why a container does not start, where waiting alone does not help."""
Pod = Mapping[str, Any]


class Pods:
    """Follows the log of every pod that starts, and says what becomes of it."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster, self._namespace = cluster, namespace
        self._threads: dict[str, threading.Thread] = {}
        self._over: defaultdict[str, threading.Event] = defaultdict(threading.Event)
        self._left = threading.Event()
        self._said: set[tuple[str, str]] = set()
        self.last_failure = 0
        """The exit status of the container that failed last."""

    def seen(self, pod: Pod) -> bool:
        """Take in what the cluster says of a pod now; whether it ended since it was seen last."""
        name, phase, states = pod["metadata"]["name"], pod.get("status", {}).get("phase"), _states(pod)
        over = self._over[name]
        for words in _hindrances(pod):
            self._once(name, words)
        if name not in self._threads and any("running" in state or "terminated" in state for state in states):
            # Daemons: a log that does not end must not keep the command from ending.
            thread = threading.Thread(target=self._follow, args=(pod, over), name=f"log of {name}", daemon=True)
            self._threads[name] = thread
            thread.start()
        if phase not in {"Succeeded", "Failed"} or over.is_set():
            return False
        over.set()
        if phase == "Failed":
            ends = [state["terminated"] for state in states if "terminated" in state]
            self.last_failure = next((int(end["exitCode"]) for end in ends if end["exitCode"]), 1)
            # Of the pod where it was put off its node, else of the container, such as OOMKilled.
            whys = [pod["status"].get("reason"), *(end.get("reason") for end in ends)]
            why = next((f" ({why})" for why in whys if why and why != "Error"), "")
            say(f"{_shown(pod)} failed with exit status {self.last_failure}{why}")
        return True

    def finish(self, seconds: float) -> None:
        """Wait until the logs are shown to their end, no longer than ``seconds``; no pod goes on."""
        for over in self._over.values():
            over.set()
        deadline = time.monotonic() + seconds
        for name, thread in self._threads.items():
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                say(f"the log of {name} could not be read to its end; kubectl -n {self._namespace} logs {name}")
        self.leave()

    def leave(self) -> None:
        """Follow no log any longer."""
        self._left.set()

    def _once(self, pod: str, words: str) -> None:
        if (pod, words) not in self._said:
            self._said.add((pod, words))
            say(words)

    def _follow(self, pod: Pod, over: threading.Event) -> None:
        name, log = pod["metadata"]["name"], LogLines()
        prefix = f"[{_shown(pod)}] " if _index(pod) is not None else ""
        while not self._left.is_set():
            ended = over.is_set()  # asked before the log is read: then nothing was written since
            try:
                for line in log.fresh(self._cluster.log(name, self._namespace, log.since()), ended=ended):
                    print(printable(prefix + line), flush=True)
                if ended:
                    return
                over.wait(_AGAIN_SECONDS)
            except RefusedError as error:
                if not (error.missing and over.is_set()):  # else the pod is deleted, and its log with it
                    say(str(error))
                return
            except BrokenPipeError:
                return  # nobody reads on; what becomes of the Job is told nevertheless
            except CommandError:
                self._left.wait(_AGAIN_SECONDS)  # whether the cluster is lost says who looks at the Job


def _index(pod: Pod) -> str | None:
    index: str | None = pod["metadata"].get("annotations", {}).get(_INDEX)
    return index


def _shown(pod: Pod) -> str:
    index = _index(pod)
    return f"pod {pod['metadata']['name']}" if index is None else f"shard {index}"


def _states(pod: Pod) -> list[Mapping[str, Any]]:
    return [one.get("state") or {} for one in pod.get("status", {}).get("containerStatuses") or []]


def _hindrances(pod: Pod) -> list[str]:
    """What keeps a pod from starting."""
    nodes = [
        f"{_shown(pod)} finds no node: {condition.get('message', '')}"
        for condition in pod.get("status", {}).get("conditions") or []
        if condition["type"] == "PodScheduled" and condition["status"] == "False"
    ]
    waits = [state.get("waiting") or {} for state in _states(pod)]
    return nodes + [
        f"{_shown(pod)} cannot start: {wait['reason']}: {wait.get('message', '')}; it is tried again until Ctrl-C"
        for wait in waits
        if wait.get("reason") in _STUCK
    ]
