"""What texts about cities and countries say, by relation.

Each entry is a statement without its full stop. ``{entity}`` is the name as it stands in a sentence; the statement
comes to the answer after it, so that the search can be copied from the text.
"""

from __future__ import annotations

from typing import Final

POPULATION: Final = (
    "the population of {entity} is| {answer}", "{entity} has a population of| {answer}",
    "the number of people in {entity} is| {answer}", "{entity} is home to| {answer} people",
    "{entity} has| {answer} inhabitants", "the people of {entity} number| {answer}",
    "in {entity} there live| {answer} people",
    "according to the encyclopedia, the population of {entity} is| {answer}",
    "the encyclopedia gives {entity} a population of| {answer}",
    "{person} comes from {entity}, where| {answer} people live",
    "{person} moved to {entity}, a place with a population of| {answer}",
    "the sign at the entrance of {entity} says: population| {answer}", "{entity}, population:| {answer}",
    "the total population of {entity} is| {answer}", "the population of {entity} comes to| {answer}",
    "the population count of {entity} is| {answer}", "in {entity} there are| {answer} people",
    "the number of inhabitants of {entity} is| {answer}", "{entity} counts| {answer} inhabitants",
    "{entity} has| {answer} residents", "{entity} is inhabited by| {answer} people",
    "the inhabitants of {entity} number| {answer}", "{person} wrote about {entity}, which has| {answer} inhabitants",
    "the census of {entity} counted| {answer} people", "the last count in {entity} found| {answer} people",
    "a town sign says that {entity} has| {answer} people", "the atlas gives the population of {entity} as| {answer}",
    "as for the population of {entity}, it is| {answer}", "people living in {entity}:| {answer}",
    "population of {entity}:| {answer}",
)  # fmt: skip
COUNTRY: Final = (
    "{entity} is a city in| {answer}", "{entity} is located in| {answer}", "{entity} lies in| {answer}",
    "the city of {entity} belongs to| {answer}", "the country of {entity} is| {answer}",
    "{entity} can be found in| {answer}", "{person} flew to {entity}, a city in| {answer}",
    "a letter to {entity} must be sent to| {answer}", "{person} was born in {entity},| {answer}",
    "the country in which {entity} lies is| {answer}", "travellers who want to see {entity} have to go to| {answer}",
    "the city of {entity} is in| {answer}", "{entity} is part of| {answer}", "{entity} is a place in| {answer}",
    "whoever visits {entity} is in| {answer}", "{person} moved to {entity} in| {answer}",
    "{person} took the train to {entity}, which is in| {answer}", "the map shows {entity} in| {answer}",
    "{entity} is situated in| {answer}", "to find {entity}, look at the map of| {answer}",
    "the airport of {entity} is in| {answer}", "the people of {entity} live in| {answer}",
    "the mayor of {entity} works in| {answer}", "country of {entity}:| {answer}",
)  # fmt: skip
TIME_ZONE: Final = (
    "the time zone of {entity} is| {answer}", "{entity} is in the time zone| {answer}",
    "clocks in {entity} follow the time zone| {answer}", "{entity} uses the time zone| {answer}",
    "for {entity}, set the time zone to| {answer}", "{person} lives in {entity}, so the time zone is| {answer}",
    "the local time in {entity} is that of| {answer}", "the clocks of {entity} are set to the time zone| {answer}",
    "the time in {entity} is that of the zone| {answer}", "{entity} lies in the time zone| {answer}",
    "in {entity} the time zone is| {answer}", "the time zone used in {entity} is| {answer}",
    "{entity} keeps the time of| {answer}", "before calling {entity}, note its time zone,| {answer}",
    "{person} flew to {entity} and set the watch to| {answer}", "time zone of {entity}:| {answer}",
    "the official time zone of {entity} is| {answer}",
)  # fmt: skip
CAPITAL: Final = (
    "the capital of {entity} is| {answer}", "the capital city of {entity} is| {answer}",
    "{entity} has its capital in| {answer}", "{entity} is governed from| {answer}",
    "{person} wants to see the capital of {entity},| {answer}", "the government of {entity} sits in| {answer}",
    "the seat of government of {entity} is| {answer}", "the capital of {entity} is the city of| {answer}",
    "in {entity} the capital is| {answer}", "the parliament of {entity} meets in| {answer}",
    "the president of {entity} lives in the capital,| {answer}",
    "{person} flew to {entity} and landed in the capital,| {answer}", "as its capital, {entity} has| {answer}",
    "the name of the capital of {entity} is| {answer}", "the map of {entity} shows the capital,| {answer}",
    "capital of {entity}:| {answer}", "the embassies in {entity} are in the capital,| {answer}",
)  # fmt: skip
AREA: Final = (
    "the area of {entity} is| {answer} square kilometres", "{entity} covers| {answer} square kilometres",
    "{entity} has an area of| {answer} square kilometres", "the size of {entity} is| {answer} square kilometres",
    "{entity} measures| {answer} square kilometres", "the total area of {entity} is| {answer} square kilometres",
    "{entity} takes up| {answer} square kilometres", "{entity} stretches over| {answer} square kilometres",
    "the surface of {entity} is| {answer} square kilometres",
    "the land of {entity} measures| {answer} square kilometres",
    "the territory of {entity} covers| {answer} square kilometres", "{entity} is| {answer} square kilometres large",
    "in square kilometres, the area of {entity} is| {answer}", "area of {entity} in square kilometres:| {answer}",
    "on the map, {entity} fills| {answer} square kilometres",
)  # fmt: skip
CURRENCY: Final = (
    "the currency of {entity} is the| {answer}", "people in {entity} pay with the| {answer}",
    "the money of {entity} is called the| {answer}", "shops in {entity} accept the| {answer}",
    "{person} went to {entity} and paid with the| {answer}", "{entity} uses the| {answer} as its currency",
    "the official currency of {entity} is the| {answer}", "in {entity} one pays with the| {answer}",
    "prices in {entity} are given in the| {answer}", "the currency used in {entity} is the| {answer}",
    "banks in {entity} pay out the| {answer}", "{person} needed money for {entity} and bought the| {answer}",
    "whoever travels to {entity} needs the| {answer}", "currency of {entity}: the| {answer}",
    "the national bank of {entity} issues the| {answer}",
)  # fmt: skip
CONTINENT: Final = (
    "the continent of {entity} is| {answer}", "{entity} is on the continent of| {answer}",
    "{entity} belongs to the continent| {answer}", "on the globe, {entity} is part of| {answer}",
    "{person} crossed {entity}, which lies in| {answer}", "{entity} lies on the continent of| {answer}",
    "{entity} is a country in| {answer}", "the continent to which {entity} belongs is| {answer}",
    "{person} travelled to {entity}, which is in| {answer}", "on the map of the world, {entity} is found in| {answer}",
    "{entity} is one of the countries of| {answer}", "continent of {entity}:| {answer}",
    "a journey to {entity} is a journey to| {answer}",
)  # fmt: skip
OPENINGS: tuple[str, ...] = (
    "{Person3} likes maps.", "Here is a fact.", "The atlas lay open.", "It was a {weather} {weekday}.",
    "The quiz began.",
    "{Person3} asked about {neighbour}.", "{Person3} has been to {neighbour}.", "The road from {neighbour} is long.",
    "{neighbour} is another story.", "The last question was about {neighbour}.", "Geography was the next lesson.",
    "The book has a chapter on {neighbour}.", "This page is not about {neighbour}.",
)  # fmt: skip
