"""What a calculator's text is about: a small situation and the one expression that answers it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Operands = Literal["any", "multiple", "part"]


@dataclass(frozen=True, slots=True)
class Scene:
    """A situation that asks for one number.

    ``expression`` over the number slots is the calculator's input. ``situation`` and ``question`` are whole
    sentences (the situation without its full stop); ``conclusion`` is a clause in lower case with the call's bar
    before the answer. ``operands`` says how ``{a}`` and ``{b}`` belong together: ``multiple`` for an ``{a}`` that
    ``{b}`` divides (things that cannot be cut), ``part`` for an ``{a}`` smaller than ``{b}``.
    """

    expression: str
    situation: str
    question: str
    conclusion: str
    operands: Operands = "any"
