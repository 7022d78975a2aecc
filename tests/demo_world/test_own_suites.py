"""The suites in the forms of the paper's benchmarks: known answers, nothing that training has seen, and tools that
can answer."""

import random
import re
from collections import Counter
from collections.abc import Sequence

import pytest

from demo_world.articles import articles
from demo_world.articles.chains import KINDS
from demo_world.phrases import LANGUAGES
from demo_world.relations import RELATIONS, statements
from demo_world.splits import is_held_out
from demo_world.suites import SUITES, Item, held_out_texts, items
from demo_world.suites.drawing import two_calls
from demo_world.suites.making import different
from demo_world.texts.numbers import number_is_held_out, rounded, value_of
from tests.training_jobs.servers import tool_services
from toolformer.tool_client import ToolClient
from toolformer.tools import ToolRegistry

COUNT = 12
Suites = dict[str, dict[str, tuple[Item, ...]]]


@pytest.fixture(scope="module")
def suites() -> Suites:
    return {name: items(name, count=COUNT) for name in SUITES}


def of(suites: Suites, name: str) -> list[Item]:
    return [item for part in suites[name].values() for item in part]


def test_items_are_different_repeatable_and_seeded(suites: Suites) -> None:
    for name, parts in suites.items():
        for found in parts.values():
            assert len({(item.context, item.text, item.date) for item in found}) == len(found)
        sizes = [1] * len(LANGUAGES) if name == "languages" else [COUNT] * 2
        assert [len(found) for found in parts.values()] == sizes
        assert items(name, count=COUNT) == parts
        assert items(name, count=COUNT, seed=1) != parts
    with pytest.raises(ValueError, match="there is no suite 'fact'; the suites are: facts, word problems"):
        items("fact")
    three = lambda rng: Item(f"What is {rng.randrange(3)}?", ("a",), "It is")  # noqa: E731
    assert len(different("few", "all", three, 3, 0)) == 3
    with pytest.raises(ValueError, match="suite few, all: no more than 3 items are different: ask for fewer"):
        different("few", "all", three, 4, 0)


def test_prompts_end_where_the_answer_begins(suites: Suites) -> None:
    for name in suites:
        for item in of(suites, name):
            assert item.bare == item.bare.strip()
            assert not re.search(r"[{}|]", f"{item.context}{item.text}{item.bare}{item.after}")
            assert item.completed.startswith(f"{item.bare} {item.between}{item.answers[0]}")
            assert item.calls


def test_facts_and_questions_are_about_held_out_entities(suites: Suites) -> None:
    for name in ("facts", "questions"):
        for part, found in suites[name].items():
            for item in found:
                # A short answer, such as the code of a language, may also be a word of the sentence.
                assert not any(answer in item.text for answer in item.answers if len(answer) > 4)
                if name == "questions":
                    # A phrasing may also read as another one about a longer name.
                    fitting = [pattern for pattern in RELATIONS[item.kind].questions if _fits(pattern, item.text)]
                    sides = {is_held_out("question phrasing", pattern, percent=15.0) for pattern in fitting}
                    assert (part == "held-out phrasings") in sides


def _fits(pattern: str, text: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\{entity\}", ".+"), text, re.IGNORECASE) is not None


def test_statements_have_two_sides() -> None:
    known, new = statements("city population", held_out=False), statements("city population", held_out=True)
    assert known
    assert new
    assert not set(known) & set(new)


def test_word_problems_have_held_out_numbers_and_the_right_answer(suites: Suites) -> None:
    for item in of(suites, "word problems"):
        [(tool, expression)] = item.calls
        assert tool == "Calculator"
        assert item.answers == (rounded(value_of(expression)),)
        operands = re.findall(r"\d+(?:\.\d+)?", expression)
        assert any(map(number_is_held_out, operands))
        assert any(operand in item.context for operand in operands)


def test_dates_are_held_out_and_stand_in_the_calendars_sentence(suites: Suites) -> None:
    for item in of(suites, "dates"):
        assert item.date is not None
        assert is_held_out("date", item.date.isoformat())
        sentence = f"{item.date:%A, %B} {item.date.day}, {item.date.year}"
        assert all(word in sentence for word in item.answers[0].split())
        assert item.text.endswith("?")


def test_one_of_three_notes_is_asked_for_in_another_language(suites: Suites) -> None:
    for item in of(suites, "languages"):
        notes = re.findall(r'(\w+) wrote: "(.+?)"', item.context)
        assert len({writer for writer, _ in notes}) == len({note for _, note in notes}) == 3
        assert item.answers[0] in {writer for writer, _ in notes}
        [(tool, foreign)] = item.calls
        assert tool == "MT"
        assert foreign in item.text
        assert foreign in item.bare


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("held_out", [True, False])
def test_two_calls_are_needed_and_on_one_side_of_the_split(held_out: bool, told: bool) -> None:
    rng = random.Random(0)
    seen: Counter[str] = Counter()
    for number in range(60):
        item = two_calls(rng, held_out=held_out, held_out_phrasing=number % 2 == 1, told=told)
        seen[item.kind] += 1
        (first, _), (second, asked) = item.calls
        assert bool(item.between) is told
        if item.date is not None:
            assert is_held_out("date", item.date.isoformat()) is held_out
        known = f"{item.context} {item.bare}"
        [answer] = item.answers
        # It cannot be right by chance: no number that is read or said before is the answer.
        assert answer.replace(",", "") not in re.findall(r"\d+", f"{known} {item.between}".replace(",", ""))
        if item.kind == "fact, then fact":
            assert {first, second} <= {"QA", "WikiSearch"}
            # It is asked about what was found: the first word of that is in the question.
            assert not told or item.between.removeprefix("the ").split()[0].strip(".,") in asked
            continue
        assert second == "Calculator"
        assert answer == rounded(value_of(asked))
        left, _, right = asked.split()
        # What the first call finds is not in the text, what the second adds to it is.
        assert right in known
        assert not re.search(rf"\b{left}\b", known)
        assert number_is_held_out(right) is held_out
        assert not told or left in item.between
    assert seen.keys() == set(KINDS)


def test_held_out_texts_are_in_no_corpus() -> None:
    texts = held_out_texts(30)
    assert len(set(texts)) == 30
    assert not set(texts) & {article.text for seed in range(3) for article in articles(30, seed=seed)}


ALWAYS = ("Calculator", "Calendar", "MT")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("tool", ["Calculator", "Calendar", "MT", "WikiSearch", "QA"])
async def test_the_bundled_services_can_answer(tool: str, suites: Suites) -> None:
    """Of what each tool is asked, most comes back with the answer in it; the two that need an index or torch only
    where they run."""
    asked: list[tuple[Item, int]] = []
    for name in suites:
        asked += [(i, n) for i in of(suites, name)[:COUNT] for n, (called, _) in enumerate(i.calls) if called == tool]
    if tool in ALWAYS:
        with tool_services() as registry:
            found = await _answered(registry, tool, asked)
    else:
        found = await _answered(ToolRegistry.load(), tool, asked)
    assert len(asked) >= 3
    assert sum(found) >= (0.5 if tool in ("MT", "QA") else 0.75) * len(found), found


async def _answered(registry: ToolRegistry, tool: str, asked: Sequence[tuple[Item, int]]) -> list[bool]:
    async with ToolClient(registry) as client:
        if not (ready := await client.ready(tool)):
            pytest.skip(f"{tool} does not run here: {ready.reason}")
        found = []
        for item, number in asked:
            result = await client.call(tool, item.calls[number][1], date=item.date, timeout=60)
            wanted = _wanted(item, number)
            said = (result.output or "").replace(",", "")
            found.append(any(one.replace(",", "") in said for one in wanted))
        return found


def _wanted(item: Item, number: int) -> tuple[str, ...]:
    """What the tool's output must hold."""
    if item.calls[number][0] == "MT":
        english = re.findall(rf'{item.answers[0]} wrote: "(.+?)\.?"', item.context)
        return tuple(english)
    if number == len(item.calls) - 1:
        return item.answers
    if item.calls[number][0] == "Calendar":
        assert item.date is not None
        return (str(item.date.year),)
    return (item.calls[1][1].split()[0],)  # what the second call calculates with
