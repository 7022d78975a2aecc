"""How people ask what the encyclopedia knows, by relation. ``{entity}`` is the name as it stands in a sentence."""

from __future__ import annotations

from typing import Final

_POPULATION: Final = (
    "what is the population of {entity}?", "how large is the population of {entity}?",
    "how many people live in {entity}?",
    "how many inhabitants does {entity} have?", "how many people call {entity} their home?",
    "how many people are there in {entity}?", "what is the number of people in {entity}?",
    "{entity}: what is the population?",
    "what is the total population of {entity}?", "population of {entity}?", "how populous is {entity}?",
    "how many residents does {entity} count?", "can you tell me the population of {entity}?", "{entity} population",
    "how big is the population of {entity}?", "what population does {entity} have?",
)  # fmt: skip
_CURRENCY: Final = (
    "what is the currency of {entity}?", "which currency is used in {entity}?", "what do people in {entity} pay with?",
    "which currency do shops in {entity} accept?", "what is the money of {entity} called?", "currency of {entity}?",
    "what money is used in {entity}?", "in which currency are prices given in {entity}?",
    "what currency do I need in {entity}?", "which money do people use in {entity}?",
)  # fmt: skip

PHRASINGS: Final[dict[str, tuple[str, ...]]] = {
    "city population": _POPULATION,
    "city place": (
        "in which country is {entity}?", "where is {entity} located?", "which country does {entity} lie in?",
        "where is {entity}?", "which country does the city of {entity} belong to?",
        "in what country does {entity} lie?",
        "in which country can {entity} be found?", "what country is {entity} in?", "where does {entity} lie?",
        "to which country does {entity} belong?", "which country is the city of {entity} in?",
    ),
    "city time zone": (
        "what is the time zone of {entity}?", "in which time zone is {entity}?", "which time zone does {entity} use?",
        "which time zone do clocks in {entity} follow?", "which time zone should be set for {entity}?",
        "time zone of {entity}?", "what time zone is {entity} in?", "to which time zone does {entity} belong?",
        "what is the name of the time zone of {entity}?",
    ),
    "city currency": _CURRENCY,
    "city rank": (
        "which number is {entity} among the cities of its country by inhabitants?",
        "what is the rank of {entity} among the cities of its country?", "where does {entity} rank by inhabitants?",
        "what number is {entity} among its country's cities?", "by inhabitants, what is the rank of {entity}?",
        "how does {entity} rank among the cities of its country?",
    ),
    "city distance": (
        "how many kilometres is it from {entity} to the capital?",
        "how far is {entity} from the capital of its country?",
        "what is the distance from {entity} to the capital?", "how far from the capital does {entity} lie?",
        "how many kilometres lie between {entity} and the capital?", "how far is it from {entity} to the capital?",
    ),
    "city coordinates": (
        "what are the coordinates of {entity}?", "which coordinates does {entity} have?", "coordinates of {entity}?",
        "at which coordinates is {entity} found?", "at what coordinates does {entity} lie?",
        "what are the latitude and longitude of {entity}?", "give me the coordinates of {entity}.",
    ),
    "country population": _POPULATION,
    "country capital": (
        "what is the capital of {entity}?", "which city is the capital of {entity}?",
        "where does {entity} have its capital?", "from which city is {entity} governed?",
        "where does the government of {entity} sit?", "what is the seat of government of {entity}?",
        "capital of {entity}?", "what is the name of the capital of {entity}?", "what is the capital city of {entity}?",
    ),
    "country area": (
        "what is the area of {entity}?", "what is the area of {entity} in square kilometres?", "how large is {entity}?",
        "how many square kilometres does {entity} cover?", "what is the size of {entity}?", "area of {entity}?",
        "how many square kilometres does {entity} measure?", "how big is {entity}?",
        "how large an area does {entity} cover?",
    ),
    "country currency": _CURRENCY,
    "country continent": (
        "what is the continent of {entity}?", "on which continent is {entity}?",
        "to which continent does {entity} belong?", "which continent is {entity} part of?",
        "what continent is {entity} on?", "in which continent does {entity} lie?",
    ),
    "country internet domain": (
        "what is the internet domain of {entity}?", "which internet domain does {entity} have?",
        "what do internet addresses of {entity} end with?", "internet domain of {entity}?",
        "which top-level domain does {entity} use?", "what is the internet ending of {entity}?",
    ),
    "country telephone code": (
        "what is the telephone code of {entity}?", "what do telephone numbers of {entity} start with?",
        "which calling code does {entity} have?", "which number do I dial first to call {entity}?",
        "what is the calling code of {entity}?", "telephone code of {entity}?",
    ),
    "country two-letter code": (
        "what is the two-letter code of {entity}?", "which two-letter country code does {entity} have?",
        "two-letter code of {entity}?", "which two letters stand for {entity}?",
        "what is the two-letter country code of {entity}?",
    ),
    "state largest city": (
        "what is the largest city of {entity}?", "which city is the largest in {entity}?",
        "what is the biggest city in {entity}?", "which city of {entity} has the most inhabitants?",
        "what is the most populous city of {entity}?", "largest city of {entity}?",
    ),
    "state postal abbreviation": (
        "what is the postal abbreviation of {entity}?", "which postal abbreviation does {entity} have?",
        "how is {entity} abbreviated in addresses?", "postal abbreviation of {entity}?",
        "which two letters stand for {entity} in an address?", "what is the abbreviation of {entity}?",
    ),
    "county code": (
        "what is the federal code of {entity}?", "which federal county code does {entity} have?",
        "what is the county code of {entity}?", "federal code of {entity}?", "which code does {entity} have?",
        "what is the federal county code of {entity}?",
    ),
    "subdivision country": (
        "which country is {entity} a subdivision of?", "in which country is {entity}?", "where is {entity}?",
        "to which country does {entity} belong?", "which country does {entity} lie in?", "what country is {entity} in?",
    ),
    "subdivision kind": (
        "what kind of subdivision is {entity}?", "which kind of subdivision is {entity}?", "what kind is {entity}?",
        "what type of subdivision is {entity}?", "what is {entity} as a subdivision?", "of which kind is {entity}?",
    ),
    "subdivision code": (
        "what is the code of {entity}?", "which ISO code does {entity} have?", "code of {entity}?",
        "which code does {entity} have?", "what is the ISO code of {entity}?", "by which code is {entity} known?",
    ),
    "language script": (
        "in which script is {entity} written?", "which script is used for {entity}?", "what is the script of {entity}?",
        "what script does {entity} use?", "which writing system does {entity} use?", "how is {entity} usually written?",
    ),
    "language code": (
        "what is the ISO code of {entity}?", "which ISO 639 code does {entity} have?",
        "what is the language code of {entity}?", "which code stands for {entity}?", "language code of {entity}?",
        "what is the ISO 639 code of {entity}?",
    ),
    "currency code": (
        "what is the code of {entity}?", "which code does {entity} have?", "what is the currency code of {entity}?",
        "how is {entity} abbreviated?", "currency code of {entity}?", "which letters stand for {entity}?",
    ),
    "currency number": (
        "what is the number code of {entity}?", "which number code does {entity} have?", "number code of {entity}?",
        "what is the numeric code of {entity}?", "which number stands for {entity}?",
        "what is the ISO number of {entity}?",
    ),
    "holiday date": (
        "when is {entity}?", "on which day is {entity}?", "what is the date of {entity}?", "on what date is {entity}?",
        "when do people celebrate {entity}?", "which day is {entity}?", "on which date does {entity} fall?",
    ),
}  # fmt: skip
"""Phrasings by relation: ``city population``, ``country capital``, ..."""
