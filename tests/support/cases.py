"""Cases that are many and nothing but values: tables of a TOML file beside the test, a row a case."""

import tomllib
from pathlib import Path
from typing import Any


def cases(test: str, table: str) -> Any:
    """The ``table`` in the TOML file that is named like the file ``test``."""
    return tomllib.loads(Path(test).with_suffix(".toml").read_text(encoding="utf-8"))[table]
