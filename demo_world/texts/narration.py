"""Texts that need no tool: short stories with numbers, names, dates and places in them, where there is nothing to
look up.

They keep the model from calling wherever a number stands. Many open like a calculator's text and go another
way; foreign words stand in some that nobody puts into English.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Final

from demo_world.splits import is_held_out
from demo_world.texts.calculator_scenes import SCENES
from demo_world.texts.calendar import draw_date, long_date
from demo_world.texts.encyclopedic import city_pool
from demo_world.texts.foreign import draw_phrase
from demo_world.texts.numbers import draw_number
from demo_world.texts.patterns import Slots, capitalise_pattern
from demo_world.texts.text import Text

_NUMBER_SLOTS: Final = "abcdpqxy"

OPENINGS: Final = (
    "{person} walked to {place} on a {weather} {weekday}.", "{person} and {person2} met in {city}.",
    "The {worker} came to {place} with {a} {things}.", "On {date}, {person} left {city}.",
    "It was a {weather} {weekday} in {city}.", "{person} found a {colour} {item} near {place}.",
    "The {vehicle} to {city} was {a} minutes late.", "Long ago there was a {worker} who kept {a} {animals}.",
    "{person} is {a} years old and lives in {city}.", "A {colour} {vehicle} stood in front of {place}.",
    "The letter from {city} came on {date}.", "There were {a} {visitors} in {place}.",
    "{person} sold a {item} for {a} dollars.", "The road from {city} to {city2} was closed.",
    "In {place} there is a {colour} {container}.", "{person} likes {things} more than {things2}.",
    "Every {weekday} the {worker} visits {place}.", "{person} put {a} {things} into a {colour} {container}.",
    "The {visitors} sang for {a} minutes.", "Nobody knew where the {item} was.", "Room {a} is behind {place}.",
    "The ticket to {city} costs {a} dollars.", "{person} was born on {date}.",
    "The {animals} slept behind {place}.", "{person} called {person2} at {place}.",
    "The old {item} cost ${p}.", 'The sign at {place} said "{foreign}"', '{person} heard somebody say "{foreign}"',
    '"{foreign}" stood on the {item}, and nobody could read it.',
    'On the {container} was written "{foreign}" and below it "{foreign2}"', "{person} asked a question about {city}.",
    "The quiz about {city} and {city2} was over.", '{person} asked: "How far is {city}?" Nobody answered.',
    "Who knows something about {city}? {person} raised a hand.", '{person} wrote "{foreign}" on the wall.',
)  # fmt: skip

CONTINUATIONS: Final = (
    "{person} was tired and went home.", "Then {person2} opened the window.",
    "The {worker} had seen it before.", "It was {weather} outside and nobody minded.",
    "{person2} bought a {item2} instead.", "After {b} minutes the {vehicle} came.",
    "They talked about {things2} and {animals}.", "The {colour2} {item2} was still there.",
    "{person} thought of {city2}.", "The {visitors} waited at {place2}.", "There was no time to lose.",
    "{person2} laughed.", "The next day it was {weather}.", "Everyone wanted to see the {animals}.",
    "{person2} lives at number {b}.", "Later they went to {place2}.",
    "The {container} was {colour2} and very old.", "It happened in {city2}.", "They came back on {weekday2}.",
    "{person2} gave {person} a {thing2}.", "The {worker2} closed the door.",
    "Nobody had opened the {containers} yet.", "The key was in the {container}.",
    "{person2} asked for a {item2}.", "They stayed until the evening.", "The bell of {place2} rang {b} times.",
    "In the end all was well.", "{person} smiled and said nothing.",
    "Most of the {visitors} had left by then.", "The {vehicle} was full.",
)  # fmt: skip

ECHOES: Final = (
    "The list says {a}, {city}, {b} and {c}. {person} reads it aloud: {a}, {city}, {b} and {c}.",
    "{person} spells out the code {a} {b} {c}, and {person2} repeats: {a} {b} {c}.",
    "From {city} to {city2} it is {a} miles, so from {city2} to {city} it is {a} miles too.",
    "The sign says {city} {a} and {city2} {b}. {person} wrote down: {city} {a}, {city2} {b}.",
    "{person} asked about {city}. Nobody in {city} had heard of {person}, but {city2} is not far from {city}.",
    "The letter from {city} has the date {date}. A letter with the date {date} came from {city} after all.",
    "The {item} costs ${p} and the {item2} ${q}. {person} paid ${q} for the {item2} and ${p} for the {item}.",
    "{city}, {city2}, {city3}: {person} learned the names {city}, {city2} and {city3} by heart.",
    "First came number {a}, then {b}, then {c}. In the other direction it was {c}, then {b}, then {a}.",
    "The {vehicle} goes to {city} by way of {city2}. {person2} got off in {city2}, {person} went on to {city}.",
    "{person} lives at number {a} in {city}. The parcel for {city}, number {a}, is for {person}.",
    'The door said "{city} {a}". {person} asked what "{city} {a}" meant.',
    "{person} was born on {date} in {city}. Born in {city} on {date}, {person} is proud of {city}.",
    '{person} read aloud: "{foreign}" {person2} repeated slowly: "{foreign}"',
    'The sign said "{foreign}" and {person} copied it: "{foreign}"',
    'On one side stood "{foreign}", on the other "{foreign2}" {person} read first "{foreign2}" and then "{foreign}"',
    "Ticket {a} is for {city}, ticket {b} for {city2}. {person} has ticket {a} and goes to {city}.",
)
"""Texts that say something twice: nothing teaches a small model to copy as fast as what it can only know by copying."""

_ECHO_SHARE: Final = 0.4


@cache
def openings() -> tuple[str, ...]:
    """First sentences: the narration's own, and the trainable situations that calculator texts tell."""
    situations = (scene.situation for scene in SCENES if not is_held_out("phrasing", scene.situation))
    return (*OPENINGS, *(f"{capitalise_pattern(situation)}." for situation in situations))


def narration_text(rng: random.Random) -> Text:
    """A text of one to four sentences with no call in it; every number, date, city and phrasing is trainable."""
    opening = rng.choice(ECHOES if rng.random() < _ECHO_SHARE else openings())
    continuations = rng.sample(CONTINUATIONS, rng.choice((0, 1, 1, 2)))
    numbers = {slot: draw_number(rng, slot, held_out=False) for slot in _NUMBER_SLOTS}
    cities = rng.sample(city_pool(held_out=False), 3)
    given = numbers | {
        "city": cities[0].name,
        "city2": cities[1].name,
        "city3": cities[2].name,
        "date": long_date(draw_date(rng, held_out=False)),
        "foreign": draw_phrase(rng, held_out=False).text,
        "foreign2": draw_phrase(rng, held_out=False).text,
    }
    plain = " ".join((opening, *continuations)).format_map(Slots(rng, given))
    return Text((plain,), phrasing=opening)
