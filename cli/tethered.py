"""``python -m cli.tethered MODULE [ARGUMENT ...]``: ``python -m MODULE``, for as long as the starting process lives.

The starter keeps the other end of this process's standard input open. The kernel closes it however the starter ends,
SIGKILL included, and that is the sign to stop: SIGTERM first, so that requests in progress can end, and after
`GRACE_SECONDS` SIGKILL for the whole process group. Works on every POSIX system.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
from typing import Final

GRACE_SECONDS: Final = 35.0
"""How long the module may take to stop; a server's own drain takes 30 seconds at most."""


def _follow(tether: int) -> None:
    while os.read(tether, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    # A stop that succeeds ends this daemon thread with the process.
    threading.Event().wait(GRACE_SECONDS)
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Run the module named by the first argument; see above.

    Raises:
        SystemExit: no module was named, or the module exits.
    """
    if len(sys.argv) < 2:
        sys.exit("usage: python -m cli.tethered MODULE [ARGUMENT ...]")
    tether = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # The module must not read from the tether.
    os.close(nothing)
    threading.Thread(target=_follow, args=(tether,), name="tether", daemon=True).start()
    module = sys.argv.pop(1)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
