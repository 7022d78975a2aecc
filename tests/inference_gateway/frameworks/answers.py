"""What the clients print: for each way to ask, the text and the calls as data."""

import json
import sys
from collections.abc import Callable
from typing import Any

Answer = tuple[str, Any]
"""A text, and the list of calls if the client gives access to it."""


def show(ask: Callable[[str, bool], dict[str, Answer]]) -> None:
    """Print what ``ask`` gets at the base URL of the command line, with calls shown and hidden."""
    answers = {way: ask(sys.argv[1], way == "shown") for way in ("shown", "hidden")}
    sys.stdout.write(json.dumps(answers))
