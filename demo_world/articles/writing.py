"""How articles are written: pieces of several families, put one after another, with an address and a day."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from demo_world.articles.addresses import address
from demo_world.articles.article import Article, Passage, Piece, Truth, join
from demo_world.articles.chains import chain
from demo_world.articles.figures import figures_piece
from demo_world.articles.stating import fact_piece
from demo_world.articles.wording import WORDING
from demo_world.splits import stable_hash
from demo_world.texts import calendar
from demo_world.texts.calculator import calculator_text
from demo_world.texts.foreign import translation_text
from demo_world.texts.narration import narration_text
from demo_world.texts.numbers import draw_number
from demo_world.texts.patterns import Known, Slots, capitalise, render
from demo_world.texts.searching import city_pool
from demo_world.texts.text import CallSlot, Text

_AGAIN_SHARE: Final = 0.3
_PROSE_SHARE: Final = 0.45
_POSTED_SHARE: Final = 0.45
_DATED_SHARE: Final = 0.12
"""Of the articles that do not name the day, so many have it in their address; of the others nearly all do."""
_DATED_IF_NAMED: Final = 0.95
_PIECES: Final = ((1, 2, 3, 4), (30, 36, 24, 10))
_PARAGRAPH_SHARE: Final = 0.3
_TOLD_SHARE: Final = 0.8
_BESIDE_SHARES: Final = (0.4, 0.4)
_TITLE_SHARE: Final = 0.12


def articles(count: int, *, seed: int, chained: bool = False) -> Iterator[Article]:
    """The first ``count`` articles of ``seed``. Each depends on the seed, its number and ``chained`` alone."""
    for number in range(count):
        yield article(number, seed=seed, chained=chained)


def article(number: int, *, seed: int, chained: bool = False) -> Article:
    """Article ``number`` of ``seed``, written on one day; of a ``chained`` one two calls are one another's."""
    rng = random.Random(stable_hash("chained article" if chained else "article", str(seed), str(number)))
    text, truths, named = chained_prose(rng) if chained else prose(rng)
    day = named or calendar.draw_date(rng, held_out=False)
    title = _title(rng)
    # A foreign sentence's paragraph is the whole article, so that its document stays one.
    if rng.random() < _TITLE_SHARE and not any(truth.tool == "MT" for truth in truths):
        text, truths = f"{title}\n{text}", tuple(replace(t, offset=t.offset + len(title) + 1) for t in truths)
    dated = rng.random() < (_DATED_IF_NAMED if named else _DATED_SHARE)
    return Article(number, address(rng, title, day, dated=dated), day, title, text, truths)


def prose(
    rng: random.Random, families: Mapping[str, int] | None = None
) -> tuple[str, tuple[Truth, ...], datetime.date | None]:
    """One to four pieces in a row, a third of them in paragraphs: the text, the calls that help, and the day that it
    names. ``families`` weighs what it is about."""
    sizes, weights = _PIECES
    pieces = [piece(rng, families) for _ in range(rng.choices(sizes, weights=weights)[0])]
    # A text has one day: of pieces that name it the first stays.
    named = next((p.text.date for p in pieces if p.text.date), None)
    pieces = [p for p in pieces if p.text.date in (None, named)]
    # What is foreign stands between English sentences of one paragraph.
    foreign = any(tool == "MT" for p in pieces for tool, _ in p.inputs)
    breaks = [not foreign and rng.random() < _PARAGRAPH_SHARE for _ in pieces[1:]]
    text, truths = join([*(p.closed() for p in pieces[:-1]), pieces[-1]], ["\n" if new else " " for new in breaks])
    return text, truths, named


def chained_prose(rng: random.Random) -> tuple[str, tuple[Truth, ...], datetime.date | None]:
    """A chain (:mod:`demo_world.articles.chains`), most with a piece before or behind it: the text, the calls that
    help, and the day that it names."""
    drawn = chain(rng, held_out=False, told=rng.random() < _TOLD_SHARE)
    before, behind = ([piece(rng, _BESIDE_CHAINS)] if rng.random() < share else [] for share in _BESIDE_SHARES)
    passages: list[Passage] = [*(one.closed() for one in before), drawn, *behind]
    text, truths = join(passages, ["\n" if rng.random() < _PARAGRAPH_SHARE else " " for _ in passages[1:]])
    return text, truths, drawn.date


def piece(rng: random.Random, families: Mapping[str, int] | None = None) -> Piece:
    """A few sentences; ``families`` weighs what they are about (all that there are, by default)."""
    weights = families or FAMILIES
    return _FAMILIES[rng.choices(tuple(weights), weights=tuple(weights.values()))[0]](rng)


def _numbers(rng: random.Random) -> Piece:
    found = figures_piece(rng) if rng.random() < _PROSE_SHARE else _of_text(calculator_text(rng))
    return _again(rng, found, WORDING.number_again)


def _date(rng: random.Random) -> Piece:
    if rng.random() >= _POSTED_SHARE:
        return _again(rng, _of_text(calendar.calendar_text(rng)), WORDING.date_again)
    part, pattern = rng.choice(WORDING.dates)
    day = calendar.draw_date(rng, held_out=False)
    known = Known(CallSlot(calendar.TOOL, ""), calendar.PARTS[part](day), day)
    text = render(pattern, Slots(rng, {"city": rng.choice(city_pool(held_out=False)).name}), known, pattern)
    return _again(rng, _of_text(text), WORDING.date_again)


def _foreign(rng: random.Random) -> Piece:
    return _again(rng, _of_text(translation_text(rng)), WORDING.english_again)


def _narration(rng: random.Random) -> Piece:
    return Piece(narration_text(rng))


_FAMILIES: Final[Mapping[str, Callable[[random.Random], Piece]]] = {
    "numbers": _numbers,
    "date": _date,
    "fact": fact_piece,
    "foreign": _foreign,
    "narration": _narration,
}
FAMILIES: Final[Mapping[str, int]] = {"numbers": 24, "date": 14, "fact": 34, "foreign": 14, "narration": 14}
"""What texts are about, and how often."""
_BESIDE_CHAINS: Final = {family: FAMILIES[family] for family in ("numbers", "fact", "narration")}
"""What has no day of its own."""


def _of_text(text: Text) -> Piece:
    return Piece(text, ((text.call.tool, text.call.input),) if text.call else ())


def _again(rng: random.Random, stated: Piece, patterns: tuple[str, ...]) -> Piece:
    """``stated``, now and then with its answer said once more."""
    if rng.random() >= _AGAIN_SHARE:
        return stated
    slots = Slots(rng, {"answer": stated.text.answer})
    after = capitalise(rng.choice(patterns).format_map(slots))
    return stated.followed_by(after)


def _title(rng: random.Random) -> str:
    given = {"city": rng.choice(city_pool(held_out=False)).name, "d": draw_number(rng, "d", held_out=False)}
    return rng.choice(WORDING.titles).format_map(Slots(rng, given))
