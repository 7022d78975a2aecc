"""What articles say around the texts' sentences (``tables/articles.toml``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from demo_world.tables import read


@dataclass(frozen=True, slots=True)
class ArticleWording:
    """Frames and openings of facts, ways to say an answer again, sentences that name the day (by the part of its date),
    titles, calculations in prose (expression and sentence), and parts of addresses."""

    fact_frames: tuple[str, ...]
    fact_openings: tuple[str, ...]
    fact_again: tuple[str, ...]
    number_again: tuple[str, ...]
    date_again: tuple[str, ...]
    english_again: tuple[str, ...]
    dates: tuple[tuple[str, str], ...]
    titles: tuple[str, ...]
    figures: tuple[tuple[str, str], ...]
    hosts: tuple[str, ...]
    sections: tuple[str, ...]
    dated: tuple[str, ...]
    undated: tuple[str, ...]


WORDING: Final = read("articles", ArticleWording)
