"""Where the models are that come with the project."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Final

BUNDLED_MODELS: Final = Path(str(resources.files("toolformer.model_files"))).joinpath("bundled").resolve()
"""``models/`` of a checkout, to which ``bundled`` is a link; where the package is installed, a folder inside it."""
