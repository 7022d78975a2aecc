"""Pages as WikiExtractor writes them, read as KILT's: a folder of files ``wiki_00``, ``wiki_01``, ..., each page a
``<doc id title>`` element of plain text.

Its text has lost what marked a heading; see `_is_heading`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from services.pages import MalformedPageError

PAGE_END: Final = b"</doc>"
_PAGE: Final = re.compile(
    r'<doc id="(?P<id>[^"]+)"[^>]* title="(?P<title>[^"]+)"[^>]*>\n(?P<text>.*?)\n?</doc>', re.DOTALL
)
_PAGE_START: Final = re.compile(rb"^(?=<doc )", re.MULTILINE)
_MEANINGS: Final = re.compile(r"may (also )?refer to:")
_HEADING_CHARS: Final = 60
_HEADING_WORDS: Final = 8
_EMPTY_SECTION_WORDS: Final = 3


def extracted_files(folder: Path) -> list[Path]:
    """WikiExtractor's files in `folder` and the folders in it, in the order of their names."""
    return sorted(path for path in folder.rglob("wiki_*") if path.is_file())


def page_elements(block: bytes) -> Iterator[bytes]:
    """The elements of the pages in a part of a file; what is before the first one too, where that is no white space."""
    return (element for element in _PAGE_START.split(block) if element.strip())


def kilt_record(element: bytes) -> dict[str, Any]:
    """The page in an element as a record of a KILT knowledge source.

    A page that only lists what its title may mean answers no question; its record has no text but the title.

    Raises:
        MalformedPageError: it is no whole element.
        UnicodeDecodeError: it is not in UTF-8.
    """
    found = _PAGE.fullmatch(element.decode().strip())
    if found is None:
        raise MalformedPageError('it is not one <doc id="..." title="..."> element, with </doc> on its last line')
    title = html.unescape(found["title"])
    paragraphs = [line.strip() for line in html.unescape(found["text"]).split("\n") if line.strip()]
    if paragraphs and paragraphs[0] == title:
        del paragraphs[0]
    if paragraphs and _MEANINGS.search(paragraphs[0]):
        paragraphs.clear()
    return {"wikipedia_id": found["id"], "wikipedia_title": title, "text": [title, *_with_headings(paragraphs)]}


def _with_headings(paragraphs: Sequence[str]) -> Iterator[str]:
    """The paragraphs, headings marked as KILT marks them; headings in a row are one path from the outermost.

    The first paragraph is none, nor a longer last one: nothing follows it. Sections without text are left out.
    """
    path: list[str] = []
    for number, paragraph in enumerate(paragraphs, start=1):
        is_empty_section = len(paragraph.split()) <= _EMPTY_SECTION_WORDS
        if number > 1 and _is_heading(paragraph) and (number < len(paragraphs) or is_empty_section):
            path.append(paragraph.rstrip(".").replace(":", ","))
            continue
        if path:
            yield f"Section::::{':'.join(path)}."
            path = []
        yield paragraph


def _is_heading(paragraph: str) -> bool:
    """Whether a paragraph is so short that it is a heading, to which WikiExtractor has added a full stop.

    A sentence that is taken for one is still searched, as the heading of what follows it.
    """
    is_short = len(paragraph) < _HEADING_CHARS and len(paragraph.split()) <= _HEADING_WORDS
    return is_short and paragraph.endswith(".") and not paragraph.endswith("..") and paragraph[0] not in "\"'“‘"
