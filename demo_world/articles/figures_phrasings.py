"""Expression and sentence of each calculation in prose. The number slots are those of
:mod:`demo_world.articles.figures`."""

from __future__ import annotations

from typing import Final

PATTERNS: Final[tuple[tuple[str, str], ...]] = (
    ("{y2} - {y}", "The mill of {city} was built in {y} and burnt down in {y2}, when it was| {answer} years old."),
    ("{y2} - {y}", "Founded in {y}, the choir sang for the last time in {y2}, after| {answer} years."),
    ("{y2} - {y}", "{person} was born in {y} and died in {y2} at the age of| {answer}."),
    ("{y2} - {y}", "From {y} to {y2} the bridge was closed; that makes| {answer} years without a bridge."),
    ("{y2} - {y}", "The first tram ran in {y} and the last one in {y2}, which is| {answer} years of trams."),
    ("{y2} - {y}", "Between the two exhibitions of {y} and {y2} lie| {answer} years."),
    ("{y2} - {y}", "The letter of {y} was found in {y2}. It had been lost for| {answer} years."),
    (
        "{y3} - {y}",
        "{city} has had a school since {y}, a theatre since {y2}, and in {y3} the school was| {answer} years old.",
    ),
    ("{y} + {k}", "The house was finished in {y}; {k} years later, in| {answer}, it was sold."),
    ("{y} + {k}", "Work on the tower began in {y} and took {k} years, so it ended in| {answer}."),
    ("{y} - {k}", "In {y} the club was {k} years old, so it goes back to| {answer}."),
    ("{n} - {m}", "Of the {n} tickets {m} were sold, which leaves| {answer} for the evening."),
    ("{n} - {m}", "{n} people voted, {m} of them in favour; the other| {answer} were against."),
    ("{n} - {m}", "The stock fell from {n} to {m} crates, a loss of| {answer}."),
    ("{n} - {m}", "Attendance rose to {n} from {m} the year before, a gain of| {answer} {visitors}."),
    ("{n} - {m}", "The upper lake lies at {n} metres and the lower one at {m}, a difference of| {answer} metres."),
    ("{n} - {m}", "After the first {m} pages of {n} there were still| {answer} to read."),
    ("{n} + {m}", "{n} came by train and {m} by bus, a total of| {answer} {visitors}."),
    (
        "{n} + {m}",
        "In the first half of the year {n} {items} were made, in the second {m}, and in the whole year| {answer}.",
    ),
    ("{n} + {m}", "The north hall seats {n} and the south hall {m}; both together have room for| {answer}."),
    ("{n} + {m}", "Rent is {n} a month and heating another {m}, so the flat costs| {answer} in all."),
    ("{n} + {m}", "{city} planted {n} trees last spring and {m} in autumn, which adds up to| {answer}."),
    ("{n} + {m} + {k}", "The museum counted {n} coins, {m} stamps and {k} medals, together| {answer} pieces."),
    ("{n} + {m} - {k}", "{n} {things} came, then {m} more, but {k} were broken, so| {answer} could be used."),
    ("{k} * {m}", "A season has {k} weeks with {m} {visitors} each, which equals| {answer} {visitors}."),
    ("{k} * {m}", "Each of the {k} {vehicles} carries {m} {things}, so the fleet carries| {answer}."),
    ("{k} * {m}", "At {m} a day, {k} days cost| {answer}."),
    ("{k} * {m}", "The {worker} makes {m} {items} a day; in {k} days that is| {answer}."),
    ("{k} * {p}", "{k} {items} at ${p} each cost| {answer} dollars."),
    ("{k} * {p}", "The fare is ${p}, and a party of {k} pays| {answer} dollars."),
    ("{k} * {x}", "One lap measures {x} kilometres, so {k} laps are| {answer} kilometres."),
    ("{n} / {k}", "The prize of {n} dollars was shared by {k} {workers}, who got| {answer} dollars each."),
    ("{n} / {k}", "{n} kilometres in {k} hours is an average of| {answer} kilometres an hour."),
    ("{n} / {k}", "Divided among {k} {containers}, the {n} {things} give an average of| {answer} in each."),
    ("{n} * {r} / 100", "Of {n} answers {r} percent were right, that is| {answer}."),
    ("{n} * {r} / 100", "A deposit of {r}% on {n} dollars is equal to| {answer} dollars."),
    ("{n} * {r} / 100", "The tax is {r} percent; on a price of {n} it comes to| {answer}."),
    ("{m} / {n} * 100", "{m} of the {n} {visitors} stayed overnight, a share of| {answer} percent."),
    ("{m} / {n} * 100", "Out of {n} seeds {m} grew, which is| {answer} percent."),
    ("{n} / {m}", "With {n} {visitors} and {m} seats there were| {answer} {visitors} for every seat."),
    ("{k} * {m} + {n}", "{k} {containers} of {m} {things} and {n} loose ones make a total of| {answer}."),
    ("({n} + {m}) / 2", "{n} on {weekday} and {m} on {weekday2} is an average of| {answer} a day."),
    (
        "({n} + {m}) * {k}",
        "A night costs {n} and a breakfast {m}; for {k} nights with breakfast {person} paid| {answer}.",
    ),
    (
        "{n} - {k} * {m}",
        "From the {n} litres in the tank {k} cans of {m} litres were filled, so| {answer} litres were left.",
    ),
)  # fmt: skip
