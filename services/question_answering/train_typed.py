"""Questions as people type them into a field: in few words, in small letters, without a question mark."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

_REWORDED: Final = 0.55
_SMALL: Final = 0.3
_NO_MARK: Final = 0.4

_MADE: Final = {
    "wrote": ("written", "author"), "painted": ("painted", "painter"), "composed": ("composed", "composer"),
    "invented": ("invented", "inventor"), "discovered": ("discovered", "discoverer"),
    "directed": ("directed", "director"), "founded": ("founded", "founder"), "built": ("built", "builder"),
    "created": ("created", "creator"), "made": ("made", "maker"), "designed": ("designed", "designer"),
    "publishes": ("published", "publisher"),
}  # fmt: skip
"""By its verb, what else one asks for a thing's maker with."""
_SIZES: Final = {
    "high": "height", "tall": "height", "long": "length", "deep": "depth", "large": "area", "big": "size",
    "old": "age", "heavy": "weight",
}  # fmt: skip
_WORDINGS: Final[Mapping[str, Sequence[str]]] = {
    r"what (?:is|are) the capital of (.+)": (
        "What is the capital city of {0}?", "Which city is the capital of {0}?", "capital of {0}", "{0} capital",
        "{0} capital city", "What's the capital of {0}?", "Which city is {0}'s capital?", "Tell me the capital of {0}",
        "the capital city of {0}", "Name the capital of {0}",
    ),
    r"(?:what|which) (?:is|was|are|were) the (.+?) of (.+)": (
        "{0} of {1}", "What's the {0} of {1}?", "{1} {0}", "Tell me the {0} of {1}.", "{1}'s {0}",
        "What {0} does {1} have?", "Which is the {0} of {1}?", "What is {1}'s {0}?", "I want to know the {0} of {1}.",
        "Do you know the {0} of {1}?", "the {0} of {1} is what?", "Name the {0} of {1}",
    ),
    r"when was (.+) born": (
        "{0} born", "{0} birth date", "date of birth of {0}", "When is {0}'s birthday?", "birthday of {0}",
        "What is the date of birth of {0}?", "On which day was {0} born?", "{0} was born when?",
        "When's {0}'s birthday", "What day was {0} born?", "When did {0} come into the world?",
    ),
    r"where was (.+) born": (
        "birthplace of {0}", "{0} birthplace", "In which city was {0} born?", "In what town was {0} born?",
        "What is the place of birth of {0}?", "What is {0}'s birthplace?", "{0} was born where?",
        "Where does {0} come from?", "Where is {0} from?",
    ),
    r"when did (.+) die": (
        "{0} death", "{0} date of death", "On what date did {0} die?", "When was the death of {0}?", "death of {0}",
        "{0} died when?", "On which day did {0} die?", "date of death of {0}",
    ),
    r"when was (.+) (founded|built|invented|discovered|published|composed|formed|made)": (
        "{0} {1} when?", "{0} was {1} when", "On what date was {0} {1}?", "Do you know when {0} was {1}?",
        "When exactly was {0} {1}?", "{0} {1}", "date {0} was {1}", "Since when does {0} exist?",
    ),
    r"when did (.+) (begin|start|end|become .+)": (
        "{0} {1} when?", "On what date did {0} {1}?", "{0} {1}", "Do you know when {0} did {1}?",
    ),
    r"where (?:is|lies|are) (.+?)(?: located)?": (
        "Where's {0}?", "{0} location", "Where can I find {0}?", "Where can {0} be found?", "location of {0}",
        "What is the location of {0}?", "{0} is where?", "In which place can I see {0}?", "Where is {0} located?",
        "Where does {0} lie?", "{0} lies where",
    ),
    r"(?:in )?(?:which|what) country (?:is|does|lies) (.+?)(?: in| lie in| lie| belong to)?": (
        "What country is {0} in?", "country of {0}", "{0} country", "In which country is {0}?",
        "Which country is {0} in?", "{0} is in which country?",
    ),
    r"how many (?:people|inhabitants|residents) (?:live in|are there in|does) (.+?)(?: have| count)?": (
        "population of {0}", "{0} population", "How many people live in {0}?", "What is the population of {0}?",
        "How many people are there in {0}?", "how big is the population of {0}", "number of people in {0}",
        "What's {0}'s population?",
    ),
    r"(?:which|what) languages? (?:is|are) spoken in (.+)": (
        "What language do they speak in {0}?", "language of {0}", "What do people speak in {0}?", "{0} language",
        "What language do people speak in {0}?", "Which languages do people in {0} speak?",
    ),
    r"what is the (?:chemical )?symbol (?:of|for) (.+)": (
        "chemical symbol of {0}", "What is the chemical symbol for {0}?", "symbol for {0}", "{0} symbol",
        "Which symbol stands for {0}?", "What symbol does {0} have?",
    ),
    r"how many (.+) (?:has|have) (.+)": (
        "How many {0} does {1} have?", "number of {0} of {1}", "What is the number of {0} of {1}?",
    ),
    r"what is (.+) known for": ("Why is {0} famous?", "What is {0} famous for?", "What did {0} do?"),
    r"what does (.+) stand for": ("What is {0} short for?", "{0} stands for", "{0} meaning", "meaning of {0}"),
    r"who (?:was|is) (.+)": ("Who's {0}?", "Tell me who {0} was.", "{0} was who?"),
    r"what (?:was|is) (.+)": ("What's {0}?", "Tell me what {0} is.", "{0}?", "Which is {0}?", "Can you tell me {0}?"),
}  # fmt: skip
"""Ways to ask, by the beginning of a question; the first that fits is meant."""
_OPENINGS: Final = (
    "Please tell me: {}", "Can you tell me {}", "Do you know {}", "I would like to know {}", "Question: {}", "Hi, {}",
    "tell me {}", "{} Thanks", "Quick question: {}",
)  # fmt: skip
_OPENED: Final = 0.12


def as_typed(question: str, rng: random.Random) -> str:
    """``question`` in other words, in small letters or without its mark, or as it is."""
    if rng.random() < _REWORDED and (other := _reworded(question, rng)):
        question = other
    elif question.endswith("?") and rng.random() < _OPENED:
        question = rng.choice(_OPENINGS).format(question[:1].lower() + question[1:])
    if rng.random() < _NO_MARK:
        question = question.rstrip("?.")
    return question.lower() if rng.random() < _SMALL else question


def _reworded(question: str, rng: random.Random) -> str:
    """Another way to ask; empty if none is known."""
    for asked, wordings in _known().items():
        if found := asked.fullmatch(question):
            return rng.choice(wordings).format(*found.groups())
    return ""


@cache
def _known() -> Mapping[re.Pattern[str], Sequence[str]]:
    wordings = dict[str, Sequence[str]]()
    for verb, (made, maker) in _MADE.items():
        wordings[rf"who {verb} (.+)"] = (
            f"{maker} of {{0}}", f"Who is the {maker} of {{0}}?", f"{{0}} was {made} by whom?", f"{{0}} {maker}",
            f"Who was {{0}} {made} by?", f"By whom was {{0}} {made}?", f"Which person {verb} {{0}}?",
            f"What is the name of the {maker} of {{0}}?", f"Who was the {maker} of {{0}}?",
            f"Who was it that {verb} {{0}}?", f"Tell me who {verb} {{0}}", f"{{0}} {made} by",
        )  # fmt: skip
    for size, noun in _SIZES.items():
        wordings[rf"how {size} (?:is|was) (.+)"] = (
            f"What is the {noun} of {{0}}?", f"{noun} of {{0}}", f"{{0}} {noun}", f"What's the {noun} of {{0}}?",
            f"How {size} is {{0}} exactly?", f"What {noun} does {{0}} have?", f"How {size} is {{0}}",
        )  # fmt: skip
    wordings |= _WORDINGS
    return {re.compile(rf"{asked}\s*\?", re.IGNORECASE): found for asked, found in wordings.items()}
