"""Wording of texts in which one value follows from another that had to be found first.

``{first}`` is what the first call finds, ``{answer}`` what the second one does; a bar stands where each call goes. A
text with one bar never says ``{first}``: both calls go there. The last row of each list is held out.
"""

from __future__ import annotations

from typing import Final

Wording = tuple[str, str, str, str]

AGES: Final[tuple[Wording, ...]] = (
    ("{person} was born in {y}.", "How old does {person} turn this year?",
     "{Person} was born in {y}. Today is| {first}. {Person} was born in {y} and celebrates in {year} at the age of"
     "| {answer}.", "{year} - {y}"),
    ("The school opened in {y}.", "How many years has the school been open this year?",
     "The school opened in {y}. It is| {first} today. From {y} to {year} the school was open; that makes| {answer}"
     " years of lessons.", "{year} - {y}"),
    ("{person} moved to {place} in {y}.", "How many years ago was that, counted from this year?",
     "{Person} moved to {place} in {y}. We are writing this on| {first}. Between the years {y} and {year} lie| {answer}"
     " years.", "{year} - {y}"),
    ("The club was founded in {y}.", "How old is the club this year?",
     "The club was founded in {y}. Today's date is| {first}. Founded in {y}, the club meets again in {year}, after"
     "| {answer} years.", "{year} - {y}"),
    ("The mill was built in {y}.", "How old is the mill this year?",
     "The mill was built in {y}. The current date is| {first}. The mill was built in {y} and is sold in {year}, when it"
     " is| {answer} years old.", "{year} - {y}"),
    ("Work on the bridge takes {k} years and begins this year.", "In which year does the work end?",
     "Work on the bridge takes {k} years and begins this year. As of today,| {first}, work begins in {year} and takes"
     " {k} years, so it ends in| {answer}.", "{year} + {k}"),
    ("The first tram of {place} ran in {y}.", "How many years of trams has the city had?",
     "The first tram of {place} ran in {y}. The date today is| {first}. The first tram ran in {y} and the last one in"
     " {year}, which is| {answer} years of trams.", "{year} - {y}"),
    ("The theatre was closed in {y}.", "For how many years has the theatre been closed?",
     "The theatre was closed in {y}. Right now the date is| {first}. From {y} to {year} the theatre was closed; that"
     " makes| {answer} years without a play.", "{year} - {y}"),
)  # fmt: skip
"""A situation with its question, the text, and the second value; ``{first}`` is today's date, whose year is ``{year}``,
and ``{y}`` an earlier year. (Knowing the year alone gains too little: calls for it were kept in 11 of 515 texts. And a
sum is told in forms that calculations in prose have: in others the base model proposed 4 of 100 right calls.)"""

UNTOLD_AGES: Final[tuple[Wording, ...]] = (
    (*AGES[0][:2], "{Person} was born in {y}, so this year {person} turns| {answer}.", AGES[0][3]),
    (*AGES[1][:2], "The school opened in {y}, so this year it has been open for| {answer} years.", AGES[1][3]),
    (*AGES[2][:2], "{Person} moved to {place} in {y}; counted from this year that was| {answer} years ago.",
     AGES[2][3]),
    (*AGES[5][:2], "Work on the bridge takes {k} years from this year on, until| {answer}.", AGES[5][3]),
    (*AGES[7][:2], "The theatre was closed in {y}; counted from this year that was| {answer} years ago.", AGES[7][3]),
)  # fmt: skip

WAYS: Final[tuple[Wording, ...]] = (
    ("{person} goes from {entity} to the capital {k} times.", "How many kilometres is that?",
     "One way measures {n} kilometres, so {k} ways are| {answer} kilometres.", "{n} * {k}"),
    ("The way from {entity} to the capital is divided into {k} equal parts.", "How many kilometres is a part?",
     "Divided among {k} parts, the {n} kilometres give an average of| {answer} in each.", "{n} / {k}"),
    ("{person} goes from {entity} to the capital and makes a detour of {k} kilometres.", "How long is the way?",
     "{n} kilometres are the way and {k} the detour, a total of| {answer} kilometres.", "{n} + {k}"),
    ("{person} has done {k} kilometres of the way from {entity} to the capital.", "How many kilometres are left?",
     "Of the {n} kilometres {k} were done, which leaves| {answer}.", "{n} - {k}"),
    ("Each of {k} buses drives from {entity} to the capital.", "How many kilometres do they drive together?",
     "Each of the {k} buses drives {n} kilometres, so the fleet drives| {answer}.", "{n} * {k}"),
)  # fmt: skip
"""What follows from the distance ``{n}`` between a city and its capital, once that is said."""

UNTOLD_WAYS: Final[tuple[Wording, ...]] = (
    (*WAYS[0][:2], "{k} ways from {entity} to the capital are| {answer} kilometres.", WAYS[0][3]),
    (*WAYS[2][:2], "With a detour of {k} kilometres, the way from {entity} to the capital is| {answer} kilometres.",
     WAYS[2][3]),
    (*WAYS[4][:2], "{k} buses that drive from {entity} to the capital drive| {answer} kilometres together.",
     WAYS[4][3]),
)  # fmt: skip

UNTOLD_FACTS: Final[dict[str, tuple[str, ...]]] = {
    "country population": (
        "the country in which {entity} lies has a population of| {answer}",
        "the country of {entity} has| {answer} inhabitants", "where {entity} lies, the whole country counts| {answer}",
    ),
    "country area": (
        "the country in which {entity} lies has an area of| {answer} square kilometres",
        "the country of {entity} covers| {answer} square kilometres",
        "where {entity} lies, the whole country measures| {answer} square kilometres",
    ),
    "city population": (
        "the capital of {entity} has a population of| {answer}", "the capital of {entity} has| {answer} inhabitants",
        "in the capital of {entity} live| {answer} people",
    ),
}  # fmt: skip
"""A fact about what another fact gives: about a city's country, or a country's capital."""
FACT_QUESTIONS: Final[dict[str, str]] = {
    "country population": "How many people live in the country of {entity}?",
    "country area": "How many square kilometres does the country of {entity} have?",
    "city population": "How many people live in the capital of {entity}?",
}
