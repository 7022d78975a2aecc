"""What texts about cities and countries say, by relation.

Each entry is a statement (without its full stop) and, where one can be asked, the question it answers. ``{entity}``
is the name as it stands in a sentence; the statement comes to the answer after it, so that the query can be copied
from the text.
"""

from __future__ import annotations

POPULATION: tuple[tuple[str, str], ...] = (
    ("the population of {entity} is| {answer}", "What is the population of {entity}?"),
    ("{entity} has a population of| {answer}", "How large is the population of {entity}?"),
    ("the number of people in {entity} is| {answer}", "How many people live in {entity}?"),
    ("{entity} is home to| {answer} people", "How many people call {entity} their home?"),
    ("{entity} has| {answer} inhabitants", "How many inhabitants does {entity} have?"),
    ("the people of {entity} number| {answer}", "How many people are there in {entity}?"),
    ("in {entity} there live| {answer} people", "What is the number of people in {entity}?"),
    (
        "according to the encyclopedia, the population of {entity} is| {answer}",
        "Which population does the encyclopedia give for {entity}?",
    ),
    ("the encyclopedia gives {entity} a population of| {answer}", ""),
    ("{person} comes from {entity}, where| {answer} people live", ""),
    ("{person} moved to {entity}, a place with a population of| {answer}", ""),
    ("the sign at the entrance of {entity} says: population| {answer}", ""),
    ("{entity}, population:| {answer}", "{entity}: what is the population?"),
    ("the total population of {entity} is| {answer}", "What is the total population of {entity}?"),
)
COUNTRY: tuple[tuple[str, str], ...] = (
    ("{entity} is a city in| {answer}", "In which country is {entity}?"),
    ("{entity} is located in| {answer}", "Where is {entity} located?"),
    ("{entity} lies in| {answer}", "Which country does {entity} lie in?"),
    ("the city of {entity} belongs to| {answer}", "Which country does the city of {entity} belong to?"),
    ("the country of {entity} is| {answer}", "What is the country of {entity}?"),
    ("{entity} can be found in| {answer}", "In which country can {entity} be found?"),
    ("{person} flew to {entity}, a city in| {answer}", ""),
    ("a letter to {entity} must be sent to| {answer}", "To which country must a letter to {entity} be sent?"),
    ("{person} was born in {entity},| {answer}", ""),
    ("the country in which {entity} lies is| {answer}", "What is the country in which {entity} lies?"),
    ("travellers who want to see {entity} have to go to| {answer}", ""),
)
TIME_ZONE: tuple[tuple[str, str], ...] = (
    ("the time zone of {entity} is| {answer}", "What is the time zone of {entity}?"),
    ("{entity} is in the time zone| {answer}", "In which time zone is {entity}?"),
    ("clocks in {entity} follow the time zone| {answer}", "Which time zone do clocks in {entity} follow?"),
    ("{entity} uses the time zone| {answer}", "Which time zone does {entity} use?"),
    ("for {entity}, set the time zone to| {answer}", "Which time zone should be set for {entity}?"),
    ("{person} lives in {entity}, so the time zone is| {answer}", ""),
    ("the local time in {entity} is that of| {answer}", ""),
)
CAPITAL: tuple[tuple[str, str], ...] = (
    ("the capital of {entity} is| {answer}", "What is the capital of {entity}?"),
    ("the capital city of {entity} is| {answer}", "Which city is the capital of {entity}?"),
    ("{entity} has its capital in| {answer}", "Where does {entity} have its capital?"),
    ("{entity} is governed from| {answer}", "From which city is {entity} governed?"),
    ("{person} wants to see the capital of {entity},| {answer}", ""),
    ("the government of {entity} sits in| {answer}", "Where does the government of {entity} sit?"),
    ("the seat of government of {entity} is| {answer}", "What is the seat of government of {entity}?"),
)
AREA: tuple[tuple[str, str], ...] = (
    ("the area of {entity} is| {answer} square kilometres", "What is the area of {entity} in square kilometres?"),
    ("{entity} covers| {answer} square kilometres", "How many square kilometres does {entity} cover?"),
    ("{entity} has an area of| {answer} square kilometres", "How large is {entity}?"),
    ("the size of {entity} is| {answer} square kilometres", "What is the size of {entity}?"),
    ("{entity} measures| {answer} square kilometres", "How many square kilometres does {entity} measure?"),
)
CURRENCY: tuple[tuple[str, str], ...] = (
    ("the currency of {entity} is the| {answer}", "What is the currency of {entity}?"),
    ("people in {entity} pay with the| {answer}", "What do people in {entity} pay with?"),
    ("the money of {entity} is called the| {answer}", "What is the money of {entity} called?"),
    ("shops in {entity} accept the| {answer}", "Which currency do shops in {entity} accept?"),
    ("{person} went to {entity} and paid with the| {answer}", ""),
    ("{entity} uses the| {answer} as its currency", "Which currency does {entity} use?"),
)
CONTINENT: tuple[tuple[str, str], ...] = (
    ("the continent of {entity} is| {answer}", "What is the continent of {entity}?"),
    ("{entity} is on the continent of| {answer}", "On which continent is {entity}?"),
    ("{entity} belongs to the continent| {answer}", "To which continent does {entity} belong?"),
    ("on the globe, {entity} is part of| {answer}", "Which continent is {entity} part of?"),
    ("{person} crossed {entity}, which lies in| {answer}", ""),
)
OPENINGS: tuple[str, ...] = (
    "{Person3} likes maps.", "Here is a fact.", "The atlas lay open.", "It was a {weather} {weekday}.",
    "The quiz began.",
    "{Person3} asked about {neighbour}.", "{Person3} has been to {neighbour}.", "The road from {neighbour} is long.",
    "{neighbour} is another story.", "The last question was about {neighbour}.", "Geography was the next lesson.",
    "The book has a chapter on {neighbour}.", "This page is not about {neighbour}.",
)  # fmt: skip
