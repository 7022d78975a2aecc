"""What suites are made of: questions for dates (as Dateset has them), word problems (as ASDiv, SVAMP and MAWPS have
them), and texts that need two calls, the second of them with what the first has found."""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass
from functools import cache

from demo_world.articles.chains import chain
from demo_world.texts import calculator, calendar
from demo_world.texts.numbers import rounded
from demo_world.texts.patterns import CALL_MARK, Slots, capitalise

_Asked = tuple[str, str, calendar.DatePart]
"""Statement, question, and the part of the day that answers it."""


@dataclass(frozen=True, slots=True)
class Item:
    """Something to ask, with what the generator knows of it.

    Args:
        text: the text to complete, the word problem's question, or the question.
        answers: each of them is right; the first is what the generator says.
        bare: a text of the demo world's own manner that ends where what is to be found begins.
        context: the situation, or the paragraph that the question is about.
        date: the day on which it is asked.
        calls: tool and input of the calls that find the answer, in order.
        between: what of that comes before the answer: the value of a first call, where the answer is a second one's.
        after: how the bare text goes on behind the answer.
        kind: what it is about, where a suite has several kinds.
    """

    text: str
    answers: tuple[str, ...]
    bare: str
    context: str = ""
    date: datetime.date | None = None
    calls: tuple[tuple[str, str], ...] = ()
    between: str = ""
    after: str = "."
    kind: str = ""

    @property
    def completed(self) -> str:
        """The bare text with its answer, as an article has it."""
        return f"{self.bare} {self.between}{self.answers[0]}{self.after}"


def date_question(rng: random.Random, *, held_out_phrasing: bool) -> Item:
    """A question for a part of a held-out day's date, which stands in the calendar's sentence."""
    statement, question, part = rng.choice(_asked(held_out_phrasing))
    day = calendar.draw_date(rng, held_out=True)
    answer = part(day)
    slots = Slots(rng, {"answer": answer})
    before, after = capitalise(statement).format_map(slots).split(CALL_MARK)
    after = f"{after.removeprefix(f' {answer}')}."
    return Item(question.format_map(slots), (answer,), before, date=day, calls=((calendar.TOOL, ""),), after=after)


def word_problem(rng: random.Random, *, held_out_phrasing: bool) -> Item:
    """A situation with held-out numbers, and the question that it asks."""
    scene = rng.choice(calculator.scenes(held_out=held_out_phrasing))
    numbers, value = calculator.draw_operands(rng, scene, held_out=True)
    answer = rounded(value)
    slots = Slots(rng, numbers | {"answer": answer})
    situation = capitalise(scene.situation.format_map(slots))
    before, after = scene.conclusion.format_map(slots).split(CALL_MARK)
    return Item(
        capitalise(scene.question.format_map(slots)),
        (answer,),
        f"{situation}, so {before}".rstrip(),
        context=f"{situation}.",
        calls=((calculator.TOOL, scene.expression.format_map(numbers)),),
        after=f"{after.removeprefix(f' {answer}')}.",
    )


def two_calls(rng: random.Random, *, held_out: bool, held_out_phrasing: bool = False, told: bool = True) -> Item:
    """A text to complete from the first value on.

    If it is ``told`` the completion says that value and goes on to the answer; if not, the answer comes at once.
    """
    drawn = chain(rng, held_out=held_out, held_out_phrasing=held_out_phrasing, told=told)
    before, *said = drawn.parts
    text = "".join(said).lstrip()
    start, end = text.rindex(drawn.answer), text.rindex(drawn.answer) + len(drawn.answer)
    return Item(
        drawn.question, (drawn.answer,), before, context=drawn.situation, date=drawn.date,
        calls=(drawn.first[0], drawn.second[0]), between=text[:start], after=text[end:], kind=drawn.kind,
    )  # fmt: skip


@cache
def _asked(held_out: bool) -> tuple[_Asked, ...]:
    return tuple(
        (statement, question, calendar.PARTS[kind.part])
        for kind in calendar.KINDS
        for statement, question in calendar.statements(kind, held_out=held_out)
        if question and "{other" not in statement
    )
