"""Word problems, as ASDiv, SVAMP and MAWPS have them."""

from __future__ import annotations

import random
from functools import cache

from demo_world.splits import is_held_out
from demo_world.suites.item import Item
from demo_world.texts.calculator import TOOL, Problem, draw_operands
from demo_world.texts.calculator_scenes import SCENES
from demo_world.texts.numbers import rounded
from demo_world.texts.patterns import CALL_MARK, Slots, capitalise
from demo_world.texts.scene import Scene


def word_problem(rng: random.Random, *, held_out_phrasing: bool) -> Item:
    """A situation with held-out numbers, and the question that it asks."""
    scene = rng.choice(_scenes(held_out_phrasing))
    numbers, value = draw_operands(rng, Problem(scene.expression, scene.operands), held_out=True)
    answer = rounded(value)
    slots = Slots(rng, numbers | {"answer": answer})
    situation = capitalise(scene.situation.format_map(slots))
    before, after = scene.conclusion.format_map(slots).split(CALL_MARK)
    return Item(
        capitalise(scene.question.format_map(slots)),
        (answer,),
        f"{situation}, so {before}".rstrip(),
        context=f"{situation}.",
        calls=((TOOL, scene.expression.format_map(numbers)),),
        after=f"{after.removeprefix(f' {answer}')}.",
    )


@cache
def _scenes(held_out: bool) -> tuple[Scene, ...]:
    return tuple(scene for scene in SCENES if is_held_out("phrasing", scene.situation) is held_out)
