"""Where the project's files are that are no part of the package: compose file, manifests, lock file, history."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(str(resources.files("cli"))).parent.resolve()
"""The folder of the packages: a checkout with those files, or where pip installed the packages, without them."""
