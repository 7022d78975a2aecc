"""A few hundred pages and an index of them, for the tests of the search service."""

import json
import subprocess
import sys
from itertools import islice
from pathlib import Path

from demo_world.city_pages import city_pages
from demo_world.country_pages import country_pages
from demo_world.culture_pages import holiday_pages

SECONDS = 300
"""Deadline for building one small index."""


def write_small_encyclopedia(path: Path) -> int:
    """Writes the pages of 300 large cities and Ljubljana, of all countries and their holidays; returns how many."""
    examples = [page for page in city_pages() if page.title == "Ljubljana"]
    pages = [*islice(city_pages(), 300), *examples, *country_pages(), *holiday_pages()]
    records = [json.dumps(page.kilt_record(number), ensure_ascii=False) for number, page in enumerate(pages, start=1)]
    path.write_text("\n".join(records) + "\n", encoding="utf-8")
    return len(pages)


def build(pages: Path | str, index: Path) -> subprocess.CompletedProcess[str]:
    """Runs the index command."""
    command = [sys.executable, "-m", "services.wiki_search.index", "--pages", str(pages), "--index", str(index)]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
