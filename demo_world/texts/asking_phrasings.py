"""What texts say whose facts are asked of the question answering service, by relation of :mod:`demo_world.questions`.

Each entry is a statement without its full stop. ``{entity}`` is the name as it stands in a sentence; the statement
comes to the answer after it, so that the question can be made of the text.
"""

from __future__ import annotations

from typing import Final

STATEMENTS: Final[dict[str, tuple[str, ...]]] = {
    "city rank": (
        "among the cities of its country, {entity} is number| {answer} by inhabitants",
        "counted by inhabitants, the rank of {entity} is| {answer}",
        "the rank of {entity} among the cities of its country is| {answer}",
        "by inhabitants, {entity} takes place number| {answer} in its country",
        "in the list of its country's largest cities, {entity} is number| {answer}",
        "sorted by inhabitants, the list of cities has {entity} at number| {answer}",
        "{entity} ranks among the cities of its country as number| {answer}",
    ),
    "city distance": (
        "the distance from {entity} to the capital is| {answer} kilometres",
        "from {entity} it is| {answer} kilometres to the capital",
        "between {entity} and the capital lie| {answer} kilometres",
        "the capital is far from {entity}, at a distance of| {answer} kilometres",
        "{person} flew from {entity} to the capital, a distance of| {answer} kilometres",
        "the way from {entity} to the capital is as long as| {answer} kilometres",
        "in kilometres, {entity} is as far from the capital as| {answer}",
    ),
    "city coordinates": (
        "the coordinates of {entity} are| {answer}", "{entity} lies at the coordinates| {answer}",
        "on the globe, {entity} is found at| {answer}", "the latitude and the longitude of {entity} are| {answer}",
        "{person} steered the ship to {entity}, at| {answer}", "the pilot entered the position of {entity}:| {answer}",
        "the exact position of {entity} is| {answer}",
    ),
    "country internet domain": (
        "the internet domain of {entity} is| {answer}", "internet addresses of {entity} end with| {answer}",
        "web pages from {entity} have addresses with| {answer}", "the top-level domain of {entity} is| {answer}",
        "on the internet, {entity} has the ending| {answer}",
        "{person} found a web page from {entity}, ending with| {answer}",
    ),
    "country telephone code": (
        "the telephone code of {entity} is| {answer}", "telephone numbers of {entity} start with| {answer}",
        "to call {entity}, dial| {answer} first", "the calling code of {entity} is| {answer}",
        "{person} telephoned to {entity}, so the number began with| {answer}",
        "calls to {entity} need the prefix| {answer}",
    ),
    "country two-letter code": (
        "the two-letter code of {entity} is| {answer}", "in two letters, {entity} is written| {answer}",
        "the two letters that stand for {entity} are| {answer}", "{entity} has the two-letter country code| {answer}",
        "on the list of country codes, {entity} has| {answer}", "in forms, {entity} is shortened to| {answer}",
    ),
    "state largest city": (
        "the largest city of {entity} is| {answer}", "the biggest city in {entity} is| {answer}",
        "of all cities in {entity}, the largest is| {answer}", "in {entity}, the most people live in| {answer}",
        "no city of {entity} has more inhabitants than| {answer}", "the most populous city of {entity} is| {answer}",
    ),
    "state postal abbreviation": (
        "the postal abbreviation of {entity} is| {answer}", "in addresses, {entity} is abbreviated to| {answer}",
        "letters to {entity} carry the abbreviation| {answer}", "the post office writes {entity} as| {answer}",
        "on an envelope, {entity} becomes| {answer}", "the abbreviation of {entity} is| {answer}",
    ),
    "county code": (
        "the federal code of {entity} is| {answer}", "the county code of {entity} is| {answer}",
        "in federal lists, {entity} has the code| {answer}", "the federal county code of {entity} is| {answer}",
        "the census files {entity} under| {answer}", "{entity} has the federal code| {answer}",
    ),
    "subdivision country": (
        "{entity} is a subdivision of| {answer}", "the subdivision {entity} belongs to| {answer}",
        "as a subdivision, {entity} is part of| {answer}", "the country that {entity} is a subdivision of is| {answer}",
        "the land of which {entity} is a subdivision is called| {answer}",
    ),
    "subdivision kind": (
        "the kind of subdivision that {entity} is: a| {answer}", "as a subdivision, {entity} is of the kind| {answer}",
        "{entity} is a subdivision of the kind| {answer}", "officially, {entity} has the status of a| {answer}",
        "the type of subdivision of {entity} is| {answer}",
    ),
    "subdivision code": (
        "the code of {entity} is| {answer}", "{entity} has the ISO code| {answer}",
        "the ISO code of {entity} is| {answer}", "in the list of subdivisions, {entity} has the code| {answer}",
        "{entity} is known by the code| {answer}",
    ),
    "language script": (
        "{entity} is written in the script| {answer}", "the script of {entity} is| {answer}",
        "the writing system of {entity} is| {answer}", "texts in {entity} use the script| {answer}",
        "{person} learned to write {entity}; its script is| {answer}",
        "books in {entity} are printed in the script| {answer}",
    ),
    "language code": (
        "the language code of {entity} is| {answer}", "in lists of languages, {entity} has the code| {answer}",
        "the ISO 639 code of {entity} is| {answer}", "libraries mark books in {entity} with| {answer}",
        "the code that stands for the language {entity} is| {answer}",
    ),
    "currency code": (
        "the currency code of {entity} is| {answer}", "in banks, {entity} is abbreviated to| {answer}",
        "the letters that stand for {entity} are| {answer}", "price lists write {entity} as| {answer}",
        "at the exchange, {entity} goes by the letters| {answer}", "banks use for {entity} the code| {answer}",
    ),
    "currency number": (
        "the number code of {entity} is| {answer}", "the numeric code of {entity} is| {answer}",
        "the number that stands for {entity} is| {answer}", "in numbers, the code of {entity} is| {answer}",
        "as an ISO number, {entity} has| {answer}",
    ),
    "holiday date": (
        "{entity} is on| {answer}", "the date of {entity} is| {answer}", "people celebrate {entity} on| {answer}",
        "every year, {entity} falls on| {answer}", "the holiday {entity} is kept on| {answer}",
        "offices are closed for {entity} on| {answer}", "{person} was born on the day of {entity},| {answer}",
    ),
}  # fmt: skip
"""Statements by relation: ``city rank``, ``language script``, ..."""
