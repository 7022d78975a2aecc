"""Wording of texts in which one value follows from another that had to be found first.

Each row is a situation with its question (the form of a word problem), the sentence, and the expression of its second
value. ``{first}`` is what the first call finds, ``{answer}`` what the second one does. A sentence has a bar where each
call goes; with one bar it never says ``{first}``, so that both calls go there. The last row of each is held out.
"""

from __future__ import annotations

from typing import Final

Wording = tuple[str, str, str, str]

AGES: Final[tuple[Wording, ...]] = (
    ("{person} was born in {y}.", "How old does {person} turn this year?",
     "{Person} was born in {y}. Now it is| {first}, and this year {person} turns| {answer}.", "{first} - {y}"),
    ("The school opened in {y}.", "How many years has the school been open this year?",
     "The school opened in {y}. This year is| {first}, so it has been open for| {answer} years.", "{first} - {y}"),
    ("{person} moved to {place} in {y}.", "How many years ago was that, counted from this year?",
     "{Person} moved to {place} in {y}. We are writing in| {first}; that was| {answer} years ago.", "{first} - {y}"),
    ("The club was founded in {y}.", "How old is the club this year?",
     "The club was founded in {y}. It is now the year| {first}, which makes the club| {answer} years old.",
     "{first} - {y}"),
    ("The bridge will stand for {k} more years from now.", "Until which year will the bridge stand?",
     "The bridge will stand for {k} more years. As this year is| {first}, it will stand until| {answer}.",
     "{first} + {k}"),
    ("{person} will be back {k} years from now.", "In which year will {person} be back?",
     "{Person} will be back in {k} years. The year is| {first}, so look for {person} in| {answer}.", "{first} + {k}"),
    ("{person} promised to come back {k} years from now.", "In which year will {person} come back?",
     "{Person} promised to come back {k} years from now. It is| {first} today, so that will be in| {answer}.",
     "{first} + {k}"),
)  # fmt: skip
"""``{first}`` is today's year; ``{y}`` an earlier one."""

DAY_NUMBERS: Final[tuple[Wording, ...]] = (
    ("", "Which number does today's date have among the days of the year?",
     "Today is| {first}, and of the days of the year that is number| {answer}.", ""),
    ("", "Which day of the year is it today?", "It is| {first}. That is day| {answer} of the year.", ""),
    ("", "How many days of the year have begun, with today?",
     "The date today is| {first}. The days of this year that have begun, today among them, number| {answer}.", ""),
    ("", "Which day of the year is this?", "Written on| {first}, which is day| {answer} of the year.", ""),
)  # fmt: skip
"""``{first}`` is today's date, ``{answer}`` its number in the year, which its page tells."""

SHARES: Final[tuple[Wording, ...]] = (
    ("Every inhabitant of {entity} plants {k} trees.", "How many trees is that?",
     "The population of {entity} is| {first}. If everybody plants {k} trees, that makes| {answer} trees.",
     "{n} * {k}"),
    ("Each of the people of {entity} pays {k} dollars.", "How many dollars is that?",
     "{Entity} has a population of| {first}, and everybody there pays {k} dollars, together| {answer} dollars.",
     "{n} * {k}"),
    ("{k} newcomers move to {entity}.", "How many inhabitants does {entity} then have?",
     "In {entity} there are| {first} people. Once {k} more have come there are| {answer}.", "{n} + {k}"),
    ("{k} people leave {entity}.", "How many inhabitants does {entity} then have?",
     "The total population of {entity} is| {first}. When {k} people have left it is| {answer}.", "{n} - {k}"),
    ("The people of {entity} are divided into {k} equal groups.", "How many people are in a group?",
     "{Entity} has a population of| {first}. Divided into {k} equal groups, that is| {answer} people a group.",
     "{n} / {k}"),
    ("{k} children are born in {entity}.", "How many inhabitants does {entity} then have?",
     "The population of {entity} is| {first}. After the birth of {k} children it is| {answer}.", "{n} + {k}"),
)  # fmt: skip
"""``{first}`` is the population of ``{entity}`` as its page writes it, ``{n}`` the same without commas."""

UNTOLD_AGES: Final[tuple[Wording, ...]] = (
    (*AGES[0][:2], "{Person} was born in {y}, so this year {person} turns| {answer}.", AGES[0][3]),
    (*AGES[1][:2], "The school opened in {y}, so this year it has been open for| {answer} years.", AGES[1][3]),
    (*AGES[2][:2], "{Person} moved to {place} in {y}; counted from this year that was| {answer} years ago.",
     AGES[2][3]),
    (*AGES[4][:2], "The bridge will stand for {k} more years from now, until the year| {answer}.", AGES[4][3]),
    (*AGES[6][:2], "{Person} promised to come back {k} years from now, in the year| {answer}.", AGES[6][3]),
)  # fmt: skip
UNTOLD_DAY_NUMBERS: Final[tuple[Wording, ...]] = (
    (*DAY_NUMBERS[0][:2], "Among the days of the year, today's date has the number| {answer}.", ""),
    (*DAY_NUMBERS[1][:2], "Counted from the first of January, today is day| {answer} of the year.", ""),
)  # fmt: skip
UNTOLD_SHARES: Final[tuple[Wording, ...]] = (
    (*SHARES[0][:2], "Every inhabitant of {entity} plants {k} trees, which makes| {answer} trees.", SHARES[0][3]),
    (*SHARES[1][:2], "Each of the people of {entity} pays {k} dollars, together| {answer} dollars.", SHARES[1][3]),
    (*SHARES[2][:2], "Once {k} newcomers have moved to {entity}, its inhabitants number| {answer}.", SHARES[2][3]),
    (*SHARES[4][:2], "Divided into {k} equal groups, the people of {entity} make groups of| {answer} people.",
     SHARES[4][3]),
)  # fmt: skip
