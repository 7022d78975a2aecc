"""How texts quote a sentence of another language, and how they come to its English.

A text is an entry of `QUOTES` and one of `ENGLISHES`, one right after the other.
"""

from __future__ import annotations

from typing import Final

QUOTES: Final = (
    'the sign at {place} says "{foreign}"', 'over the door stands "{foreign}"', '{person} read aloud: "{foreign}"',
    'the letter begins with "{foreign}"', '{person} wrote "{foreign}"', 'on the box is printed "{foreign}"',
    'the {worker} called: "{foreign}"', 'the last line of the page is "{foreign}"', 'a voice said: "{foreign}"',
    '{person} found a card with the words "{foreign}"', 'the poster at {place} reads "{foreign}"',
    'the message was "{foreign}"', 'in the notebook of {person} stands "{foreign}"', 'the note says "{foreign}"',
    'a {visitor} told {person}: "{foreign}"', 'the first sentence in the guide is "{foreign}"',
    'the text on the {item} is "{foreign}"', 'somebody had written "{foreign}" on the wall of {place}',
    'the answer of the {worker} was "{foreign}"', 'the screen in the {vehicle} shows "{foreign}"',
    '{person} heard "{foreign}" on the radio', 'the e-mail from {person} contains the sentence "{foreign}"',
    'at the entrance of {place} one can read "{foreign}"', 'the newspaper printed "{foreign}"',
    '{person} does not understand "{foreign}"', 'the label on the {container} says "{foreign}"',
    'the book opens with "{foreign}"', '"{foreign}" stands on the ticket', '"{foreign}" was all that {person} said',
    '"{foreign}" is written on the {item}', 'the timetable has the line "{foreign}"',
    'the {visitor} asked about "{foreign}"',
    'we saw "{foreign}" on a sign', 'the form has a line with "{foreign}"', 'my friend {person} sent me "{foreign}"',
)  # fmt: skip
ENGLISHES: Final = (
    ", which means:| {answer}.", ", which means| {answer}.", ", that is,| {answer}.", ". In English:| {answer}.",
    ". In English that is:| {answer}.", ", in English:| {answer}.", ". The English of it is:| {answer}.",
    ". Translated into English:| {answer}.", ". The translation is:| {answer}.", ". Translation:| {answer}.",
    ". English:| {answer}.", ". This means:| {answer}.", ". It means| {answer}.", ". What does it mean?| {answer}.",
    ". What does that mean in English? It means:| {answer}.", ". What is that in English?| {answer}.",
    ". {person2} translated it:| {answer}.", ". {person2} said it in English:| {answer}.",
    ". {person2} explained what it means:| {answer}.", ". To us it means:| {answer}.",
    ". In our language:| {answer}.", ". {person2} put it into English:| {answer}.",
    ". For those who only know English:| {answer}.", ". {person2} knew the English for it:| {answer}.",
    ". An Englishman would say:| {answer}.", ". In other words, in English,| {answer}.",
    ". The English translation reads:| {answer}.", ". Below it stands the English text:| {answer}.",
)  # fmt: skip
"""``{answer}`` is the English without its full stop, ``{foreign}`` brings its own."""

OPENINGS: Final = (
    "It was a {weather} {weekday}.", "{Person3} speaks many languages.", "{Person3} came from far away.",
    "Nobody in {place3} spoke English.", "The journey had begun.", "{Person3} likes languages.", "We were abroad.",
    "The {vehicle3} had crossed the border.", "Not everything is written in English.",
)  # fmt: skip

TAILS: Final = (
    "{Person3} thanked {person4}.", "Now it was clear.", "Nobody had understood it before.", "{Person3} nodded.",
    "That was good to know.", "It was written by hand.", "{Person3} learned the sentence by heart.",
    "The letters were small.", "{Person3} had guessed it.", "It stood there in large letters.",
    "Then the {vehicle} left.",
    "{Person3} laughed.", "The rest could not be read.", "It was a {weather} day.", "{Person3} wrote it down.",
)  # fmt: skip
