"""Wording that articles put around what :mod:`demo_world.texts` says: frames, openings, and ways to say an answer
again."""

from __future__ import annotations

from typing import Final

FACT_FRAMES: Final = (
    "{statement}.", "{statement}.", "{statement}.", "As travellers soon find out, {statement}.",
    "On page {d} of the guide it says that {statement}.", "For the record, {statement}.",
    "Readers have asked, so here it is: {statement}.", "{person3} noted that {statement}.",
    "The first thing to know is that {statement}.", "We looked it up, and {statement}.",
    "The figures are plain: {statement}.", "School books say that {statement}.",
    "To answer the letter of {person3}: {statement}.", "It may surprise you that {statement}.",
    "In a talk at {place}, {person3} explained that {statement}.", "The brochure adds that {statement}.",
    "A correction to our last issue: {statement}.", "Here is what we know: {statement}.",
    "Since last year's count we know that {statement}.", "What few people remember: {statement}.",
    "{person3} and {person4} agreed that {statement}.", "Our table lists it too: {statement}.",
    "Among other things, {statement}.", "Then there is this: {statement}.", "The mayor is proud that {statement}.",
    "Officially, {statement}.", "If the gazetteer is right, {statement}.", "By all accounts, {statement}.",
)  # fmt: skip
"""How an article tells a fact; ``{statement}`` is a clause of the texts' phrasings."""

FACT_OPENINGS: Final = (
    "This week we write about {entity}.", "A reader sent us a picture of {entity}.", "{person2} has moved to {entity}.",
    "Today's page is about {entity}.", "Few of us have been to {entity}.", "{entity} was in the news on {weekday}.",
    "Let us turn to {entity}.", "Next on our list is {entity}.", "We had a question about {entity}.",
    "{person2} asked us about {entity}.", "There is much to say about {entity}.", "The journey went on to {entity}.",
)  # fmt: skip

FACT_AGAIN: Final = (
    "{person3} repeated it: {answer}.", "So, once more: {answer}.", "{answer}, to be exact.",
    "In the table you find {answer} next to {entity}.", "Remember {answer} when you think of {entity}.",
    "{person3} wrote {answer} on the card of {entity}.", "For {entity} the list has {answer}.",
    "Nobody would have guessed {answer}.", "In the quiz, {answer} was the right answer.",
    "The entry reads: {entity}, {answer}.", "We checked it, and {answer} is right.",
)  # fmt: skip

NUMBER_AGAIN: Final = (
    "{person3} wrote down {answer}.", "{answer} is a good number.", "Again, that is {answer}.",
    "The report says {answer} as well.", "{answer}, not more and not less.", "{person3} had guessed {answer}.",
    "So the number to remember is {answer}.", "We counted again and got {answer}.", "{answer} it is.",
    "The sign on the door says {answer} too.",
)  # fmt: skip

DATE_AGAIN: Final = (
    "{person3} put {answer} on the form.", "{answer}: that is what the calendar shows.", "Yes, {answer}.",
    "The newspaper has it as well: {answer}.", "{person3} wrote {answer} at the top of the page.",
    "Do not forget: {answer}.",
)  # fmt: skip

ENGLISH_AGAIN: Final = (
    '{person3} repeated: "{answer}."', 'So it said "{answer}."', '"{answer}," {person3} said again.',
    'We wrote "{answer}" below it.', 'In short: "{answer}."', '"{answer}," in plain English.',
)  # fmt: skip

DATES: Final[tuple[tuple[str, str], ...]] = (
    ("full", "Posted on| {answer}."), ("full", "Written at {place} on| {answer}."),
    ("full", "This page was last changed today, {person}'s birthday:| {answer}."),
    ("full", "Dear readers, it is| {answer}, and there is news."),
    ("full", "{person} opened the diary and wrote the date:| {answer}."),
    ("full", "Good morning from {city}; this is the news of| {answer}."),
    ("full", "As we write this, on| {answer}, the {vehicle} to {city} is late."),
    ("full", "The programme for today,| {answer}, begins at noon."),
    ("long", "Dated| {answer}."), ("long", "Prices as of today,| {answer}, are higher than before."),
    ("long", "This offer was made on| {answer} and ends tomorrow."),
    ("long", "The list of {visitors} is complete as of| {answer}."),
    ("weekday", "Today is market day in {city}, as it is every| {answer}."),
    ("weekday", "The library is closed today because it is a| {answer}."),
    ("weekday", "It is a {weather}| {answer} and {place} is full of {visitors}."),
    ("weekday", "What a {weather}| {answer} we are having today."),
    ("weekday", "This being a| {answer}, {place} opens late."),
    ("month", "It is| {answer} now and the {animals} are outside again."),
    ("month", "This month,| {answer}, {place} shows {things}."),
    ("month", "We are in the middle of a {weather}| {answer}."),
    ("month", "The| {answer} issue of our letter is out today."),
    ("year", "Here are the winners of this year,| {answer}."),
    ("year", "So far, the year| {answer} has been {weather}."),
    ("year", "All prices on this page are those of the current year,| {answer}."),
    ("year", "The| {answer} season opens today at {place}."),
)  # fmt: skip
"""A part of today's date, and the sentence that names it."""

TITLES: Final = (
    "Notes from {city}", "News of {place}", "What {person} saw", "A {weather} {weekday}", "{Things} and {things2}",
    "The {worker} of {city}", "Letter to {person}", "A day in {city}", "Facts and figures", "About {city}",
    "{person} and the {animals}", "Page {d}", "The {colour} {item}", "Questions and answers", "From our reporter",
    "On the road to {city}", "Travel notes: {city}", "{Place} today", "The week in numbers", "Diary of {person}",
)  # fmt: skip
