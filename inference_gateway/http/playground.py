"""The page at ``/``, where prompts are tried."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from http_api import Page

PLAYGROUND: Final = Page(Path(__file__).parents[1] / "playground", path="/", parts="/playground")
"""It also uses the style of `http_api.API_PAGE`."""
