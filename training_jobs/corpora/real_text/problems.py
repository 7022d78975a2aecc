"""Word problems that one calculation solves: cut from GSM8K's annotated solutions, and made from patterns. Of the wide
ones base models read half of the texts (`made`), and `taught` has the other half.

No open set of one-step problems exists outside the benchmarks, so a solution line with two operands becomes a small
problem of its own, and patterns give all four operations alike, with numbers that do not matter among them.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from demo_world.texts.numbers import rounded, value_of


def _table(name: str) -> Mapping[str, Any]:
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


PHRASES: Final = _table("phrases.toml")
_WIDE: Final = _table("word_problems.toml")
_ANNOTATION: Final = re.compile(r"<<([^<>=]+)=([^<>=]+)>>")
_OPERANDS: Final = re.compile(r"\s*([\d.]+)\s*([-+*/])\s*([\d.]+)\s*")
_WRITTEN: Final = re.compile(r"(\$?)[\d.,$% ()x*/+×÷-]*=\s*\$?\s*(?=<<)")
_NUMBER: Final = re.compile(r"^\s*\$?[\d.,]*\d")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")
_STOP: Final = re.compile(r"([.,?])(?= |$)")
_BEGINNING: Final = re.compile(r"(?:^|[.?!] )[a-z]")
_BESIDE_SHARE: Final = 0.3
_STEPPED_SHARE: Final = 0.65
"""Of the bare calculations, those of more than two numbers or with a known one, such as the minutes of an hour."""
_SMALLEST_SHARE: Final = 25
"""So many times a part of a whole is at most in it."""
_PRICED_SHARE: Final = 0.4
"""Of the amounts of money, those with cents."""
_WHOLE_SHARE: Final = 0.8
"""Of the divisions, those without a rest."""
_WIDE_SHARE: Final = 0.7
"""Of the problems that base models read, those from `word_problems.toml`."""
_MEASURED: Final = ("{far}", "{long}", "{heavy}", "{liquid}")
_MEASURED_SHARE: Final = 0.3
"""Of the measures, those with digits behind a point."""
_SPACED_SHARE: Final = 0.1
"""Of the wide problems, those with a space before each stop, as in texts that a program took apart."""
_SEVERAL_STEPS: Final = "several steps"
_NUMBER_WORDS: Final[Sequence[str]] = PHRASES["words"]["numbers"]


@dataclass(frozen=True, slots=True)
class Problem:
    """A ``text`` that ends where the ``answer`` begins, the ``sum`` that gives it, and how the text ``goes_on`` behind
    the answer, where it does."""

    text: str
    sum: str
    answer: str
    goes_on: str = ""


def calculate(calculation: str) -> str:
    """What the calculator says to it."""
    return rounded(value_of(calculation))


def cut(question: str, solution: str) -> Iterator[Problem]:
    """The one-step problems in a problem of GSM8K: for each line of the ``solution`` whose two operands the
    ``question`` names, the sentences that name them and the line itself."""
    sentences = _SENTENCE_END.split(question.strip())
    for line in solution.splitlines():
        found = _ANNOTATION.findall(line)
        operands = _OPERANDS.fullmatch(found[0][0]) if len(found) == 1 else None
        if operands is None:
            continue
        first, sign, second = operands.groups()
        if sign == "/" and not Decimal(second):
            continue
        needed = [at for at, one in enumerate(sentences[:-1]) if _names(one, first) or _names(one, second)]
        context = " ".join(sentences[at] for at in needed)
        plain = _WRITTEN.sub(r"\1", line)
        before, annotation, behind = plain.partition(f"<<{found[0][0]}={found[0][1]}>>")
        if not annotation or not (_names(context, first) and _names(context, second)):
            continue
        if re.search(r"\d[^.!?]*[-–+*/×=]", before):  # the calculation is written in another form than the annotation's
            continue
        goes_on = _NUMBER.sub("", behind, count=1).strip()
        joined = "" if goes_on[:1] in ".,;%" else " "
        asked = f"{first} {sign} {second}"
        yield Problem(f"{context} {before.strip()}".strip(), asked, calculate(asked), f"{joined}{goes_on or '.'}")


def made(rng: random.Random, names: Sequence[str], things: Sequence[str]) -> Problem:
    """A problem that base models read. All operations are equally frequent."""
    if rng.random() < _WIDE_SHARE:
        return _wide(rng, names, things, 0)
    sign = rng.choice("+-*/")
    pattern = rng.choice([one for one in PHRASES["problem"] if one["sum"][2] == sign])
    text = rng.choice(pattern["text"])
    a, b = _operands(rng, pattern, text)
    name, other = rng.sample(names, 2)
    slots = {
        "name": name, "other": other, "thing": rng.choice(things), "place": rng.choice(PHRASES["words"]["place"]),
        "a": spelled(rng, a), "b": spelled(rng, b), "d": str(rng.randint(2, 99)),
    }  # fmt: skip
    sentences = [text]
    if rng.random() < 0.3:
        sentences.insert(rng.randrange(2), rng.choice(PHRASES["distractors"]["text"]))
    sentences.append(rng.choice(pattern["question"]))
    return _posed(" ".join(sentences).format_map(slots), pattern["sum"], {"a": a, "b": b})


def taught(rng: random.Random, names: Sequence[str], things: Sequence[str]) -> Problem:
    """A problem to teach on, from a text that no base model reads; ``things`` are three or more. All operations are
    equally frequent, and so are problems of several steps."""
    return _wide(rng, names, things, 1)


def _wide(rng: random.Random, names: Sequence[str], things: Sequence[str], half: int) -> Problem:
    """A problem from ``word_problems.toml``, from one ``half``, 0 or 1, of each pattern's texts."""
    kind = rng.choice(("+", "-", "*", "/", _SEVERAL_STEPS))
    pattern = rng.choice([one for one in _WIDE["problem"] if _kind(one["sum"]) == kind])
    text = rng.choice(pattern["text"][half::2] or pattern["text"])
    if kind == _SEVERAL_STEPS:
        numbers = _several(rng, pattern["sum"])
    else:
        numbers = dict(zip("ab", _operands(rng, pattern, text), strict=True))
    slots: dict[str, Any] = {slot: rng.choice(words) for slot, words in _WIDE["words"].items() if slot != "beside"}
    slots["name"], slots["other"] = rng.sample(names, 2)
    slots["thing"], slots["thing2"], slots["thing3"] = rng.sample(things, 3)
    slots |= {slot: spelled(rng, number) for slot, number in numbers.items()} | {"d": str(rng.randint(2, 99))}
    sentences = [text]
    if "question" in pattern:
        if sentences[0][-1] == "." and rng.random() < _BESIDE_SHARE:
            sentences.insert(rng.randrange(2), rng.choice(_WIDE["words"]["beside"]))
        sentences.append(rng.choice(pattern["question"]))
    written = _BEGINNING.sub(lambda found: found[0].upper(), " ".join(sentences).format_map(slots))
    if rng.random() < _SPACED_SHARE:
        written = _STOP.sub(r" \1", written)
    return _posed(written, pattern["sum"], numbers)


def _kind(steps: str) -> str:
    """The sign of a calculation of ``a`` and ``b`` alone."""
    return _SEVERAL_STEPS if "c" in steps else steps[2]


def _several(rng: random.Random, steps: str) -> dict[str, str]:
    """Numbers with which no step of the calculation falls below one and the last is whole."""
    while True:
        high = rng.choice((20, 60, 60, 300))
        a, b, c = (rng.randint(2, 12 if f"/ {name}" in steps else high) for name in "abc")
        numbers = {"a": str(a), "b": str(b), "c": str(c)}
        answer = calculate(_worked_out(steps, numbers))
        falls = ("a - b" in steps and a <= b) or ("b - c" in steps and b <= c)
        if answer.isdigit() and int(answer) and not falls:
            return numbers


def stepped(rng: random.Random, patterns: Sequence[Mapping[str, Any]]) -> Problem:
    """A calculation as people write it, by one of the patterns, whose ``sum`` may have several steps; one with a
    ``weight`` is drawn so many times as often."""
    [pattern] = rng.choices(patterns, [one.get("weight", 1) for one in patterns])
    steps, text = pattern["sum"], rng.choice(pattern["text"])
    numbers = {name: rng.randint(2, rng.choice((20, 100, 1_000, 10_000))) for name in "abc"}
    if "a - b" in steps:
        numbers["a"], numbers["b"] = max(numbers["a"], numbers["b"]), min(numbers["a"], numbers["b"])
    if "b / a" in steps:  # people name shares of some size
        numbers["b"] = rng.randint(1 + numbers["a"] // _SMALLEST_SHARE, numbers["a"])
    if steps == "a / b" and rng.random() < _WHOLE_SHARE:
        numbers["b"] = rng.randint(2, rng.choice((12, 60)))
        numbers["a"] *= numbers["b"]
    known = {name: f"{number}{_fraction(rng, name, text)}" for name, number in numbers.items()}
    shares = (5, 10, 15, 20, 25, 30, 40, 50, 75, rng.randint(2, 60), rng.randint(2, 32) + Decimal("0.5"))
    known["s"] = str(rng.choice(shares))
    slots = {name: spelled(rng, number, share=0) for name, number in known.items()}
    return _posed(text.format_map(slots), steps, known, pattern.get("goes_on", ""))


def _fraction(rng: random.Random, slot: str, text: str) -> str:
    """What stands behind a whole number: of money in the text often a point and two digits, of a measure one or two."""
    if any(one in text for one in _MEASURED) and rng.random() < _MEASURED_SHARE:
        return f".{rng.randint(1, rng.choice((9, 99)))}"
    priced = f"${{{slot}}}" in text and rng.random() < _PRICED_SHARE
    return f".{rng.choice((rng.randrange(100), 10 * rng.randrange(10), 50)):02}" if priced else ""


def _posed(written: str, calculation: str, numbers: Mapping[str, str], goes_on: str = "") -> Problem:
    """``calculation`` is such as ``a - b``."""
    worked_out = _worked_out(calculation, numbers)
    return Problem(written, worked_out, calculate(worked_out), goes_on)


def _worked_out(calculation: str, numbers: Mapping[str, str]) -> str:
    return re.sub(r"\b[abcs]\b", lambda found: numbers[found[0]], calculation)


def bare(rng: random.Random) -> Problem:
    """A calculation as it is typed: a sum, a part in percent, a product in words, several steps."""
    if rng.random() < _STEPPED_SHARE:
        return stepped(rng, PHRASES["steps"])
    sign = rng.choice("+-*/")
    a, b = _operands(rng, {"divides": sign == "/", "sum": f"a {sign} b", "larger_first": sign == "-"})
    calculation = f"{a} {sign} {b}"
    answer = calculate(calculation)
    kind = rng.random()
    if kind < 0.25:
        share, whole = (
            rng.choice((5, 10, 15, 20, 25, 30, 40, 50, 60, 75, 80, 90, rng.randint(1, 99))),
            rng.randint(2, 999),
        )
        part = f"{whole} * {share} / 100"
        forms = ("What is {s}% of {w}?", "{s}% of {w} is", "{s} percent of {w} is", "How much is {s} percent of {w}?")
        return Problem(rng.choice(forms).format(s=share, w=whole), part, calculate(part))
    word = {"+": ("plus", "added to"), "-": ("minus",), "*": ("times", "multiplied by"), "/": ("divided by",)}[sign]
    if kind < 0.5:
        forms = ("What is {a} {word} {b}?", "{a} {word} {b} is", "How much is {a} {word} {b}?", "{a} {word} {b} equals")
        return Problem(rng.choice(forms).format(a=a, b=b, word=rng.choice(word)), calculation, answer)
    spaced = calculation if rng.random() < 0.8 else calculation.replace(" ", "")
    if rng.random() < 0.2:
        spaced = spaced.replace("*", rng.choice("x×")).replace("/", rng.choice(("÷", ":")))
    return Problem(
        rng.choice(("{} =", "What is {}?", "{}", "{} is", "Calculate {}.", "{} = ?")).format(spaced),
        calculation,
        answer,
    )


def solved(problem: Problem, rng: random.Random) -> str:
    """The problem with its solution, in one of several forms."""
    if problem.goes_on:
        return f"{problem.text} {problem.answer}{problem.goes_on}".replace("$ ", "$")
    form = rng.choice(
        ("{t} The answer is {a}.", "{t} {a}.", "{t} {s} = {a}.", "{t} {s} = {a}. The answer is {a}.", "{t} It is {a}.")
    )
    if problem.text.endswith(("=", "is", "equals")):
        form = rng.choice(("{t} {a}.", "{t} {a}"))
    return form.format(t=problem.text, a=problem.answer, s=problem.sum)


def _operands(rng: random.Random, pattern: Mapping[str, Any], text: str = "") -> tuple[str, str]:
    """Two numbers that fit the pattern and its ``text``: products are small, quotients mostly whole, money in cents."""
    high = rng.choice((20, 100, 100, 1000, 10_000 if pattern["sum"][2] in "+-" else 200))
    a, b = rng.randint(2, high), rng.randint(2, high)
    if pattern["sum"][2] == "*" and rng.random() < 0.7:
        b = rng.randint(2, 30)
    if pattern.get("divides"):
        small, times = rng.randint(2, rng.choice((12, 30))), rng.randint(2, high)
        large = small * times + (rng.randrange(small) if rng.random() < 0.2 else 0)
        return (str(large), str(small)) if pattern["sum"][0] == "a" else (str(small), str(large))
    if a == b:
        a += 1
    first, second = (Decimal(f"{one}{_fraction(rng, slot, text)}") for slot, one in (("a", a), ("b", b)))
    wrong = first < second if pattern.get("larger_first") else first > second and bool(pattern.get("larger_second"))
    return (str(second), str(first)) if wrong else (str(first), str(second))


def spelled(rng: random.Random, number: str, share: float = 0.25) -> str:
    """The number as a text has it: a ``share`` of the small ones in words, large ones often with commas."""
    if number.isdigit():
        if int(number) < len(_NUMBER_WORDS) and rng.random() < share:
            return _NUMBER_WORDS[int(number)]
        if int(number) >= 1000 and rng.random() < 0.7:
            return f"{int(number):,}"
    return number


def _names(text: str, number: str) -> bool:
    """Whether ``text`` has the number, in digits or as a word."""
    if re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d]|[.,]\d)", text.replace(",", "")):
        return True
    small = number.isdigit() and int(number) < len(_NUMBER_WORDS)
    return small and re.search(rf"\b{_NUMBER_WORDS[int(number)]}\b", text.lower()) is not None
