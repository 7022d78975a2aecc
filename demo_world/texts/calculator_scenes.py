"""What calculator texts are about: small situations, each with the one expression that answers it.

A scene is told in every register of :mod:`demo_world.texts.registers`. Number slots: ``{a} {b} {c}`` are integers,
``{p} {q}`` prices with two decimals, ``{x} {y}`` decimals with one; ``{d}`` is an integer that does not matter.
"""

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


SCENES: tuple[Scene, ...] = (
    # products
    Scene(
        "{a} * {b}",
        "Each of the {a} {containers} holds {b} {things}",
        "How many {things} do they hold together?",
        "together they hold| {answer} {things}",
    ),
    Scene(
        "{a} * {b}",
        "There are {a} {containers} with {b} {things} in each",
        "How many {things} is that in all?",
        "there are| {answer} {things} in all",
    ),
    Scene(
        "{a} * {b}",
        "{person} packs {a} {containers} and puts {b} {things} into every one",
        "How many {things} does {person} pack?",
        "{person} packs| {answer} {things}",
    ),
    Scene(
        "{a} * {b}",
        "The {worker} works {a} hours a week for {b} weeks",
        "How many hours does the {worker} work?",
        "the {worker} works| {answer} hours",
    ),
    Scene(
        "{a} * {b}",
        "The hall has {a} {rows} of {b} seats",
        "How many seats does the hall have?",
        "the hall has| {answer} seats",
    ),
    Scene(
        "{a} * {b}",
        "A {vehicle} carries {a} {visitors} on each trip and makes {b} trips",
        "How many {visitors} does the {vehicle} carry?",
        "the {vehicle} carries| {answer} {visitors}",
    ),
    Scene(
        "{a} * {b}",
        "{person} reads {a} pages a day for {b} days",
        "How many pages does {person} read?",
        "{person} reads| {answer} pages",
    ),
    Scene(
        "{a} * {b}",
        "One {container} weighs {a} grams and there are {b} of them",
        "How many grams do the {containers} weigh?",
        "the {containers} weigh| {answer} grams",
    ),
    Scene(
        "{a} * {b}",
        "{a} {visitors} came to {place} and each of them brought {b} {things}",
        "How many {things} did they bring?",
        "they brought| {answer} {things}",
    ),
    Scene(
        "{a} * {p}",
        "{person} bought {a} {items} at ${p} each",
        "How many dollars did {person} pay?",
        "{person} paid| {answer} dollars",
    ),
    Scene(
        "{a} * {p}",
        "A {item} costs ${p} and {place} needs {a} of them",
        "What is the total price in dollars?",
        "the total price in dollars is| {answer}",
    ),
    Scene(
        "{x} * {a}",
        "A {vehicle} uses {x} litres of fuel an hour and runs for {a} hours",
        "How many litres does the {vehicle} use?",
        "the {vehicle} uses| {answer} litres",
    ),
    Scene(
        "{x} * {a}",
        "{person} walks {x} kilometres every {period} for {a} {period}s",
        "How many kilometres does {person} walk?",
        "{person} walks| {answer} kilometres",
    ),
    Scene(
        "{a} * {b}",
        "A rectangle is {a} metres long and {b} metres wide",
        "What is its area in square metres?",
        "its area is| {answer} square metres",
    ),
    Scene(
        "{a} * {b}",
        "The {worker} makes {a} {items} in one {period}",
        "How many {items} does the {worker} make in {b} such {period}s?",
        "in {b} such {period}s the {worker} makes| {answer} {items}",
    ),
    # sums
    Scene(
        "{a} + {b}",
        "{person} had {a} {things} and found {b} more",
        "How many {things} does {person} have now?",
        "{person} now has| {answer} {things}",
    ),
    Scene(
        "{a} + {b}",
        "{person} has {a} {things} and {person2} has {b}",
        "How many {things} do they have together?",
        "together they have| {answer} {things}",
    ),
    Scene(
        "{a} + {b}",
        "{a} {visitors} came in the morning and {b} in the afternoon",
        "How many {visitors} came that day?",
        "that day| {answer} {visitors} came",
    ),
    Scene(
        "{a} + {b}",
        "There are {a} {animals} on the hill and {b} in the valley",
        "How many {animals} are there altogether?",
        "altogether there are| {answer} {animals}",
    ),
    Scene(
        "{a} + {b}",
        "The first {container} holds {a} {things} and the second one {b}",
        "How many {things} are in both?",
        "both of them hold| {answer} {things}",
    ),
    Scene(
        "{a} + {b}",
        "{Place} ordered {a} {colour} {items} and {b} {colour2} ones",
        "How many {items} were ordered?",
        "the order came to| {answer} {items}",
    ),
    Scene(
        "{a} + {b}",
        "{person} drove {a} kilometres on {weekday} and {b} kilometres the day after",
        "How far did {person} drive?",
        "{person} drove| {answer} kilometres",
    ),
    Scene(
        "{p} + {q}",
        "The {item} costs ${p} and the {item2} costs ${q}",
        "How many dollars do they cost together?",
        "together they cost| {answer} dollars",
    ),
    Scene(
        "{p} + {q}",
        "{person} paid ${p} for food and ${q} for the {vehicle}",
        "How many dollars did {person} spend?",
        "{person} spent| {answer} dollars",
    ),
    Scene(
        "{x} + {y}",
        "One rope is {x} metres long and the other one {y} metres",
        "How many metres of rope is that?",
        "there are| {answer} metres of rope",
    ),
    Scene(
        "{a} + {b} + {c}",
        "{person} counted {a} {animals}, then {b} and then {c} more",
        "How many {animals} did {person} count?",
        "{person} counted| {answer} {animals}",
    ),
    Scene(
        "{a} + {b} + {c}",
        "The three classes have {a}, {b} and {c} {visitors}",
        "How many {visitors} are in the three classes?",
        "the three classes have| {answer} {visitors}",
    ),
    # differences
    Scene(
        "{a} - {b}",
        "{person} had {a} {things} and gave {b} of them to {person2}",
        "How many {things} does {person} have left?",
        "{person} has| {answer} {things} left",
    ),
    Scene(
        "{a} - {b}",
        "Of the {a} {visitors} at {place}, {b} have gone home",
        "How many {visitors} are still there?",
        "| {answer} {visitors} are still there",
    ),
    Scene(
        "{a} - {b}",
        "After selling {b} of its {a} {items}, the shop closed",
        "How many {items} remain?",
        "the shop still has| {answer} {items}",
    ),
    Scene(
        "{a} - {b}",
        "{person} has {a} {things}, {person2} only {b}",
        "How many more {things} does {person} have?",
        "{person} has| {answer} more {things}",
    ),
    Scene(
        "{a} - {b}",
        "The tank held {a} litres and {b} litres have leaked out",
        "How many litres are left in the tank?",
        "the tank still holds| {answer} litres",
    ),
    Scene(
        "{a} - {b}",
        "The book has {a} pages and {person} has read {b} of them",
        "How many pages are left to read?",
        "{person} still has to read| {answer} pages",
    ),
    Scene(
        "{a} - {b}",
        "{b} of the {a} seats in the {vehicle} are taken",
        "How many seats are free?",
        "| {answer} seats are free",
    ),
    Scene(
        "{p} - {q}",
        "{person} had ${p} and spent ${q} at {place}",
        "How many dollars are left?",
        "{person} has| {answer} dollars left",
    ),
    Scene(
        "{p} - {q}",
        "The {item} cost ${p} and is now ${q} cheaper",
        "How many dollars does it cost now?",
        "it now costs| {answer} dollars",
    ),
    Scene(
        "{a} - {b} - {c}",
        "Of {a} {items}, {b} were sold on {weekday} and {c} the day after",
        "How many {items} remain?",
        "| {answer} {items} remain",
    ),
    # quotients
    Scene(
        "{a} / {b}",
        "{person} shares {a} {things} equally among {b} {visitors}",
        "How many {things} does each of them get?",
        "each of them gets| {answer} {things}",
        operands="multiple",
    ),
    Scene(
        "{a} / {b}",
        "{a} {things} are packed into {b} {containers} of the same size",
        "How many {things} are in each {container}?",
        "each {container} has| {answer} {things}",
        operands="multiple",
    ),
    Scene(
        "{a} / {b}",
        "The {a} {visitors} form {b} equal {rows}",
        "How many {visitors} are in one {row}?",
        "there are| {answer} {visitors} in each {row}",
        operands="multiple",
    ),
    Scene(
        "{a} / {b}",
        "{person} cycled {a} kilometres in {b} hours",
        "How many kilometres is that per hour?",
        "that is| {answer} kilometres per hour",
    ),
    Scene(
        "{a} / {b}",
        "The {vehicle} used {a} litres of fuel on {b} trips",
        "How many litres is that for one trip?",
        "one trip takes| {answer} litres",
    ),
    Scene(
        "{p} / {a}",
        "{a} friends share a bill of ${p}",
        "How many dollars does each of them pay?",
        "each of them pays| {answer} dollars",
    ),
    Scene(
        "{a} / {b}",
        "Only {a} of the {b} {visitors} voted",
        "What share of the {visitors} voted?",
        "the share that voted is| {answer}",
        operands="part",
    ),
    Scene(
        "{a} / {b} * 100",
        "{a} of the {b} {items} are {colour}",
        "What percentage of the {items} is {colour}?",
        "the percentage of {colour} ones is| {answer}",
        operands="part",
    ),
    Scene(
        "{a} * {b} / 100",
        "{Place} lowered the price of {a} dollars by {b} percent",
        "By how many dollars did the price fall?",
        "the price fell by| {answer} dollars",
    ),
    # two operations
    Scene(
        "{a} * {b} + {c}",
        "{person} has {a} {containers} with {b} {things} each and {c} loose {things}",
        "How many {things} does {person} have?",
        "{person} has| {answer} {things}",
    ),
    Scene(
        "{a} * {b} + {c}",
        "{a} {vehicles} bring {b} {visitors} each and {c} more come on foot",
        "How many {visitors} come?",
        "| {answer} {visitors} come in all",
    ),
    Scene(
        "{a} * {b} - {c}",
        "{person} baked {a} trays of {b} cookies and {c} of them burnt",
        "How many cookies are good?",
        "| {answer} cookies are good",
    ),
    Scene(
        "{a} * {b} - {c}",
        "The {worker} filled {a} {containers} with {b} {things} each, but {c} {things} got lost",
        "How many {things} are there still?",
        "there are still| {answer} {things}",
    ),
    Scene(
        "({a} + {b}) / 2",
        "{person} scored {a} points in the first game and {b} in the second",
        "What is the average number of points?",
        "the average is| {answer} points",
    ),
    Scene(
        "({a} - {b}) * {c}",
        "{a} {visitors} booked, {b} of them stayed away and the others paid {c} dollars each",
        "How many dollars were paid?",
        "they paid| {answer} dollars",
    ),
    Scene(
        "{a} * {p} + {b}",
        "{person} bought {a} {items} at ${p} each and paid {b} dollars for the delivery",
        "How many dollars did {person} pay?",
        "{person} paid| {answer} dollars",
    ),
)
"""Situations, told in every register."""
