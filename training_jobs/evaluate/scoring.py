"""When an answer is right: the rules of the paper's evaluation (section 4.2), and intervals for shares.

What the paper leaves open is settled here, in one place:

- A **word** is what is between spaces; in scripts that set none (Chinese, Japanese, Thai, ...) each letter is one,
  with its marks.
- **Containing** an answer means that its words are in the completion one after the other. They are compared without
  regard to case, punctuation, typographic variants (NFKC) and the articles *a*, *an*, *the*; a number is compared
  without thousands separators, an abbreviation without its full stops. ``6`` is not in ``16 days``.
- An answer longer than the limit is looked for in as many words as it has itself.
- A **number** may have a sign (``-``, ``−``), a currency sign before it, thousands separators in groups of three, and
  decimals behind a full stop. A comma between other digits separates two numbers.
- An answer with more than two decimals is also right when rounded to two, as the paper's calculator gives it.
- A **pattern** is a regular expression that matches without regard to case, not inside a longer word or number.
- An **equation** is a ``=`` with a number somewhere behind it, in the same line as what the model said first.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

_CURRENCY: Final = "$€£¥₹₽₩₺"
_DIGITS: Final = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|(?<!\w)\.\d+"
_NUMBER: Final = re.compile(rf"(?P<sign>(?<![\w.)])[-−–])?(?:[{_CURRENCY}]\s?(?P<inner>[-−])?)?(?P<digits>{_DIGITS})")
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_ABBREVIATION: Final = re.compile(r"\b(?:[^\W\d_]\.){2,}")
_ARTICLES: Final = frozenset({"a", "an", "the"})
_Z_95: Final = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Rule:
    """How completions of a suite are judged.

    ``kind`` is ``words`` (an answer is within the first ``limit`` words), ``number`` (the first number, or the first
    one of an equation's right side, is an answer) or ``patterns`` (an answer is a pattern that matches somewhere).
    """

    kind: Literal["words", "number", "patterns"]
    limit: int = 0

    def right(self, completion: str, answers: Sequence[str]) -> bool:
        """Whether ``completion`` (without call text) is right."""
        if self.kind == "number":
            return any(right_number(completion, answer) for answer in answers)
        if self.kind == "patterns":
            return any(matches(completion, answer) for answer in answers)
        return any(right_words(completion, answer, self.limit) for answer in answers)


FIRST_FIVE: Final = Rule("words", 5)
"""LAMA, TempLAMA, Dateset (sections 4.2.1 and 4.2.5)."""
FIRST_TWENTY: Final = Rule("words", 20)
"""WebQuestions, Natural Questions, TriviaQA (section 4.2.3)."""
FIRST_TEN: Final = Rule("words", 10)
"""MLQA: an answer within the generation, capped at 10 words (section 4.2.4)."""
FIRST_NUMBER: Final = Rule("number")
"""ASDiv, SVAMP, MAWPS (section 4.2.2)."""
PATTERNS: Final = Rule("patterns")
"""Files of one's own prompts."""


def matches(completion: str, pattern: str) -> bool:
    """Whether the regular expression ``pattern`` matches in ``completion``, not inside a longer word or number."""
    bounded = rf"(?<!\w)(?<!\d[.,])(?:{pattern})(?!\w)(?![.,]\d)"
    return re.search(bounded, completion, re.IGNORECASE | re.DOTALL) is not None


def right_number(completion: str, answer: str) -> bool:
    """The rule for calculations: the first number of the completion is the answer; where the completion has an
    equation, the first number after ``=``. Units, thousands separators and trailing zeros do not matter."""
    said = _first_value(completion)
    wanted = value_of_number(answer)
    if said is None or wanted is None:
        return False
    return said == wanted or said == _hundredths(wanted)


def right_words(completion: str, answer: str, limit: int = FIRST_FIVE.limit) -> bool:
    """The rule for facts: the answer is within the first ``limit`` words (or as many as the answer itself has)."""
    answer, completion = (unicodedata.normalize("NFKC", text) for text in (answer, completion))
    words = _words(answer)
    wanted = _tokens(words)
    if not wanted:  # an emoji, say
        return answer.strip() in completion.split()[:limit]
    said = _tokens(_words(completion)[: max(limit, len(words))])
    if bare := _without_articles(wanted):
        wanted, said = bare, _without_articles(said)
    return any(said[at : at + len(wanted)] == wanted for at in range(len(said) - len(wanted) + 1))


def value_of_number(text: str) -> Fraction | None:
    """The exact value of the first number in ``text``; ``None`` if there is none."""
    found = _NUMBER.search(unicodedata.normalize("NFKC", text).replace("٬", ",").replace("٫", "."))
    if found is None:
        return None
    value = Fraction(found["digits"].replace(",", ""))
    return -value if found["sign"] or found["inner"] else value


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share, from 0 to 1; ``(0, 1)`` where nothing was tried."""
    if not trials:
        return 0.0, 1.0
    share, z2 = successes / trials, _Z_95**2
    middle = share + z2 / (2 * trials)
    spread = _Z_95 * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    scale = 1 + z2 / trials
    # Of no success and of nothing but successes the interval ends at the share itself, which rounding may miss.
    low = 0.0 if not successes else (middle - spread) / scale
    high = 1.0 if successes == trials else (middle + spread) / scale
    return low, high


def _first_value(completion: str) -> Fraction | None:
    line = completion.strip().partition("\n")[0]
    if "=" in line and (behind := value_of_number(line.partition("=")[2])) is not None:
        return behind
    return value_of_number(completion)


def _hundredths(value: Fraction) -> Fraction:
    """``value`` rounded to two decimals, half away from zero."""
    rounded = Fraction(int(abs(value) * 100 + Fraction(1, 2)), 100)
    return -rounded if value < 0 else rounded


def _words(text: str) -> list[str]:
    """The words of ``text``; what is punctuation alone is none."""
    spaced = _UNSPACED.sub(r" \g<0> ", text)
    found: list[str] = []
    for word in spaced.split():
        if unicodedata.category(word[0]).startswith("M") and found:  # a mark that its letter was parted from
            found[-1] += word
        elif any(unicodedata.category(character)[0] in "LN" for character in word):
            found.append(word)
    return found


def _tokens(words: Sequence[str]) -> list[str]:
    """What of ``words`` is compared: their letters and numbers, without punctuation and case."""
    # Symbols such as the plus of "+386" and the degree sign go too: who says 46.05 N is not wrong.
    plain = " ".join(words).casefold()
    plain = _ABBREVIATION.sub(lambda found: f"{found[0].replace('.', '')} ", _THOUSANDS.sub("", plain))
    found: list[str] = []
    word = ""
    for at, character in enumerate(plain):
        inside = unicodedata.category(character)[0] in "LNM" or (
            character == "." and plain[at - 1 : at].isdigit() and plain[at + 1 : at + 2].isdigit()
        )
        if inside:
            word += character
        elif word:
            found.append(word)
            word = ""
    return [*found, word] if word else found


def _without_articles(tokens: Sequence[str]) -> list[str]:
    return [token for token in tokens if token not in _ARTICLES]
