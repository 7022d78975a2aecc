"""Pages about languages, currencies, public holidays and the days of the year."""

from collections.abc import Iterator
from datetime import date, timedelta
from functools import partial
from typing import Final

from demo_world.culture import MONTHS, Currency, Holiday, Language, currencies, languages, public_holidays
from demo_world.geography import grouped, with_article
from demo_world.page import Page, bullets, listed, sentence
from demo_world.titles import currency_titles, language_titles

_LEAP_YEAR: Final = 2024


def language_pages() -> Iterator[Page]:
    """A page for each language, by name."""
    titles = language_titles()
    for language in languages():
        yield _language(language, titles[language.code])


def currency_pages() -> Iterator[Page]:
    """A page for each currency that has a title, by code."""
    titles = currency_titles()
    for currency in currencies():
        if currency.code in titles:
            yield _currency(currency, titles[currency.code])


def holiday_pages() -> Iterator[Page]:
    """A page for the public holidays of each country, by country code."""
    for days in grouped(public_holidays(), lambda day: day.country_code).values():
        yield _holidays_of(days)


def day_pages() -> Iterator[Page]:
    """A page for each of the 366 days that a year can have, from January 1."""
    by_date = grouped(public_holidays(), lambda holiday: (holiday.month, holiday.day))
    first = date(_LEAP_YEAR, 1, 1)
    for offset in range(366):
        day = first + timedelta(days=offset)
        yield _day(day, by_date.get((day.month, day.day), []))


def _language(language: Language, title: str) -> Page:
    say, shown = partial(sentence, title, "culture"), [with_article(name) for name in language.countries]
    if shown:
        lead = say("lead", "language", name=language.name, countries=listed(shown))
    else:
        lead = say("lead", "unplaced_language", name=language.name, code=language.code)
    writing = []
    if language.script:
        writing.append(f"{language.name} is usually written in the script called {language.script}.")
    if language.native_name:
        direction = "from right to left" if language.right_to_left else "from left to right"
        writing.append(f"Its own name for itself is {language.native_name}, written {direction}.")
    codes = f"The ISO 639 code of {language.name} is {language.code}."
    return Page(
        title=title,
        lead=(lead,),
        sections=(*((("Writing", (" ".join(writing),)),) if writing else ()), ("Codes", (codes,))),
        categories=("Languages",),
    )


def _currency(currency: Currency, title: str) -> Page:
    places = listed([with_article(name) for name in currency.countries])
    lead = sentence(title, "culture", "lead", "currency", name=currency.name, code=currency.code, countries=places)
    digits = "no decimals" if not currency.decimals else f"{currency.decimals} decimals"
    details = f"Amounts in {currency.plural} are written with {digits}; the number code is {currency.number}."
    if currency.symbol != currency.code:
        details = f"{details} Its sign is {currency.symbol}."
    return Page(title=title, lead=(lead,), sections=(("Amounts", (details,)),), categories=("Currencies",))


def _holidays_of(days: list[Holiday]) -> Page:
    country = with_article(days[0].country)
    counted = "one public holiday" if len(days) == 1 else f"{len(days)} public holidays"
    return Page(
        title=f"Public holidays in {country}",
        lead=(f"In {country}, {counted} fall on the same date every year.",),
        sections=(("Dates", bullets(f"{day.name}: {MONTHS[day.month - 1]} {day.day}" for day in days)),),
        categories=("Public holidays",),
    )


def _day(day: date, holidays: list[Holiday]) -> Page:
    title = f"{MONTHS[day.month - 1]} {day.day}"
    in_leap_years = day.timetuple().tm_yday
    if (day.month, day.day) == (2, 29):
        lead = f"{title} is day {in_leap_years} of a leap year; other years do not have it."
    elif day.month <= 2:
        lead = f"{title} is day {in_leap_years} of the year."
    else:
        lead = f"{title} is day {in_leap_years - 1} of the year, or day {in_leap_years} of a leap year."
    kept = bullets(f"{holiday.country}: {holiday.name}" for holiday in holidays)
    return Page(
        title=title,
        lead=(lead,),
        sections=((("Public holidays", kept),) if kept else ()),
        categories=("Days of the year",),
    )
