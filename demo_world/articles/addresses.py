"""Addresses of articles: hosts and paths in the shapes that the web has, with and without the day of writing."""

from __future__ import annotations

import datetime
import random
import re

from demo_world.articles.wording import WORDING
from demo_world.culture import MONTHS
from demo_world.texts.patterns import Slots


def address(rng: random.Random, title: str, date: datetime.date, *, dated: bool) -> str:
    """A URL for the article; ``dated`` says whether its path names the day."""
    slots = Slots(rng)
    host = rng.choice(WORDING.hosts).format(a=slots["thing"].replace(" ", ""), b=slots["animal"])
    month = MONTHS[date.month - 1].lower()
    path = rng.choice(WORDING.dated if dated else WORDING.undated).format(
        y=date.year, m=date.month, d=date.day, mon=month[:3], month=month,
        slug=slug(title), section=rng.choice(WORDING.sections), number=rng.randrange(100, 100_000),
    )  # fmt: skip
    return f"{rng.choice(('https', 'https', 'http'))}://{host}{path}"


def slug(title: str) -> str:
    """``title`` as paths spell it: small ASCII letters and digits with hyphens between."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "page"
