"""The bundled encyclopedia: pages in KILT's shape, written from facts in sentences of the project's own.

    python -m demo_world.encyclopedia --out pages.jsonl

Every page is true as of the packages its facts come from. The same packages give the same bytes in every
process.
"""

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from demo_world.city_pages import city_pages
from demo_world.country_pages import (
    continent_pages,
    country_pages,
    county_pages,
    state_pages,
    subdivision_pages,
)
from demo_world.culture_pages import currency_pages, day_pages, holiday_pages, language_pages
from demo_world.facts.fact_pages import with_facts
from demo_world.page import Page


def pages() -> Iterator[Page]:
    """Every page once, in a fixed order; no two have the same title. Those of `demo_world.facts` come last."""
    return with_facts(generated_pages())


def generated_pages() -> Iterator[Page]:
    """The pages of the generated world, without the facts beside it."""
    return chain(
        continent_pages(),
        country_pages(),
        state_pages(),
        language_pages(),
        currency_pages(),
        holiday_pages(),
        day_pages(),
        city_pages(),
        subdivision_pages(),
        county_pages(),
    )


def kilt_records() -> Iterator[dict[str, Any]]:
    """The pages as records of a KILT knowledge source, numbered from 1."""
    return (page.kilt_record(number) for number, page in enumerate(pages(), start=1))


def kilt_lines() -> Iterator[bytes]:
    """The records as JSON lines in UTF-8, each with its line feed."""
    for record in kilt_records():
        yield json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def write(path: Path) -> tuple[int, str]:
    """Writes the encyclopedia to `path`, whole or not at all; returns the number of pages and the SHA-256.

    Raises OSError where the folder is missing or cannot be written.
    """
    digest, count = hashlib.sha256(), 0
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with unfinished.open("wb") as out:
            for line in kilt_lines():
                digest.update(line)
                out.write(line)
                count += 1
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return count, digest.hexdigest()


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the encyclopedia as KILT JSON lines."""
    parser = argparse.ArgumentParser(prog="python -m demo_world.encyclopedia", description=main.__doc__)
    parser.add_argument("--out", type=Path, required=True, help="file to write, for example pages.jsonl")
    out: Path = parser.parse_args(arguments).out
    if not out.parent.is_dir():
        parser.error(f"--out: the folder {out.parent} does not exist; make it first")
    count, digest = write(out)
    sys.stdout.write(f"{count:,} pages in {out}, sha256 {digest}\n")


if __name__ == "__main__":
    main()
