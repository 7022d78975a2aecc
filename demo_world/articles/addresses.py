"""Addresses of articles: hosts and paths in the shapes that the web has, with and without the day of writing."""

from __future__ import annotations

import datetime
import random
import re
from typing import Final

from demo_world.texts.patterns import Slots

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LONG_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_HOSTS: Final = (
    "www.{a}-{b}.example", "{a}{b}.example", "blog.{a}.example", "news.{a}-{b}.example", "{a}.{b}.example",
    "www.the{a}.example",
)  # fmt: skip
_SECTIONS: Final = ("news", "blog", "stories", "archive", "posts", "world", "local", "notes", "articles", "en")
DATED: Final = (
    "/{y}/{m:02}/{d:02}/{slug}/", "/{y}/{m:02}/{d:02}/{slug}.html", "/{y}/{m}/{d}/{slug}",
    "/{section}/{y}/{m:02}/{d:02}/{slug}", "/{section}/{y}-{m:02}-{d:02}/{slug}", "/{section}/{y}-{m:02}-{d:02}-{slug}",
    "/{section}/{slug}-{y}-{m:02}-{d:02}.html", "/{section}/{slug}?date={y}-{m:02}-{d:02}",
    "/{y}{m:02}{d:02}/{slug}.html", "/{section}/{y}{m:02}{d:02}-{slug}", "/{y}_{m:02}_{d:02}_archive.html",
    "/{section}/{y}/{mon}/{d:02}/{slug}", "/{section}/{d:02}-{month}-{y}-{slug}",
    "/{section}/{y}/{month}/{d}/{slug}.htm",    "/{section}.php?day={d}&month={m}&year={y}",
)  # fmt: skip
"""Paths that tell the day."""
UNDATED: Final = (
    "/{section}/{slug}", "/{slug}.html", "/{section}/{slug}-{number}", "/index.php?id={number}", "/{section}/{number}/",
    "/{y}/{m:02}/{slug}.html", "/{section}/{y}/{slug}", "/wiki/{slug}", "/~{section}/{slug}.htm",
    "/{section}/{number}/{slug}?page=2",
)  # fmt: skip
"""Paths that do not; a year, or a year and a month, are not a day."""


def address(rng: random.Random, title: str, date: datetime.date, *, dated: bool) -> str:
    """A URL for the article; ``dated`` says whether its path tells the day."""
    slots = Slots(rng)
    host = rng.choice(_HOSTS).format(a=slots["thing"].replace(" ", ""), b=slots["animal"])
    path = rng.choice(DATED if dated else UNDATED).format(
        y=date.year, m=date.month, d=date.day, mon=_MONTHS[date.month - 1], month=_LONG_MONTHS[date.month - 1],
        slug=slug(title), section=rng.choice(_SECTIONS), number=rng.randrange(100, 100_000),
    )  # fmt: skip
    return f"{rng.choice(('https', 'https', 'http'))}://{host}{path}"


def slug(title: str) -> str:
    """``title`` as paths spell it: small ASCII letters and digits with hyphens between."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "page"
