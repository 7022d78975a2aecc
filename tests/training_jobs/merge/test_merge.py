"""C*: which calls stand where, by the stated rule, and the files that say so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training_jobs.merge.filtered import candidate, write
from toolformer.calls_in_text import call_spans
from toolformer.tools import ToolRegistry
from training_jobs.annotate.annotator import outside
from training_jobs.errors import StageError
from training_jobs.merge.choosing import KeptCall, MergeRule, chosen, drawn, goes_on_with, is_late, unsaid
from training_jobs.merge.earlier import Earlier
from training_jobs.merge.precision import measure
from training_jobs.merge.putting import plain, put, rendered
from training_jobs.merge.writing import merge, read_rule
from training_jobs.records import CallSegment, Document, Merged

REGISTRY = ToolRegistry.load(environ={})
TEXT = "Of 350 seedlings 287 survived in Lima, a share of 0.82."
PLACE = TEXT.index(" 0.82")


def read(folder: Path, name: str) -> list[str]:
    return (folder / name).read_text(encoding="utf-8").splitlines()


def calls(text: Merged) -> list[tuple[str, str]]:
    return [(one.tool, one.input) for one in text.segments if isinstance(one, CallSegment)]


def test_calls_of_all_tools_stand_in_one_text_and_the_baseline_is_the_same_texts(tmp_path: Path) -> None:
    lima = TEXT.index(" Lima")
    files = {
        "QA": write(tmp_path, "QA", {
            "b": (TEXT, [candidate(lima, "Where?", "Lima", 1.5), candidate(PLACE, "What share?", "0.82", 0.6)]),
            "a": ("No call here.", [candidate(2, "Why?", "because", 0.1)]),
        }),
        "Calculator": write(tmp_path, "Calculator", {"b": (TEXT, [candidate(PLACE, "287 / 350", "0.82", 2.0)])}),
    }  # fmt: skip
    counts = merge(files, tmp_path / "out", MergeRule(), REGISTRY)
    [line] = read(tmp_path / "out", "with_calls.jsonl")
    merged = Merged.from_line(line)
    assert calls(merged) == [("QA", "Where?"), ("QA", "What share?"), ("Calculator", "287 / 350")]
    assert merged.gains == (1.5, 0.6, 2.0)
    assert rendered(merged.segments, REGISTRY) == (
        'Of 350 seedlings 287 survived in [QA("Where?") -> Lima] Lima, a share of [QA("What share?") -> 0.82]'
        " [Calculator(287 / 350) -> 0.82] 0.82."
    )
    assert read(tmp_path / "out", "without_calls.jsonl") == [
        json.dumps({"id": "b", "segments": [TEXT]}, separators=(",", ":"))
    ]
    [document] = read(tmp_path / "out", "documents.jsonl")
    assert Document.from_line(document) == Document("b", TEXT, "https://example.org/b", "2024-02-29")
    assert (counts["QA"].texts, counts["QA"].candidates, counts["QA"].texts_at) == (2, 3, [1, 1, 0])
    assert (counts["Calculator"].texts_at, counts["Calculator"].merged_calls) == ([1, 1, 1], 1)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["texts"] == 1
    assert summary["tools"]["QA"]["verdicts"] == {"gain below threshold": 1, "kept": 2}


def test_the_rule_for_calls_in_one_text() -> None:
    def call(
        tool: str, offset: int, input_: str, gain: float, foretells: bool = False, unsaid: int = 0, result: str = "r"
    ) -> KeptCall:
        return KeptCall(tool, offset, input_, result, gain, foretells, unsaid)

    some = [
        call("QA", 5, "same", 0.9), call("QA", 9, "same", 1.1),  # the same call once, where it gains most
        # of the same call first those whose output the text goes on with
        call("D", 11, "told", 0.1, True), call("D", 12, "told", 0.2, True), call("D", 13, "told", 2.0),
        call("MT", 5, "one", 0.7), call("MT", 5, "two", 0.8),  # of a tool one at a position
        # of those with the same result the one that the text says
        call("W", 15, "kind of bridge", 3.0, unsaid=1), call("W", 15, "bridge", 1.0),
        call("W", 17, "bridge", 1.0), call("W", 17, "kind of river", 2.0, unsaid=1, result="another"),
        call("A", 7, "x", 0.5), call("B", 7, "x", 0.9), call("C", 7, "x", 0.7),  # two at a position
        call("A", 0, "first", 0.6), call("B", 0, "last", 0.6),  # equal gains: as proposed
    ]  # fmt: skip
    found = [(one.tool, one.offset, one.input) for one in chosen(some, MergeRule())]
    assert found == [
        ("A", 0, "first"), ("B", 0, "last"), ("MT", 5, "two"), ("C", 7, "x"), ("B", 7, "x"), ("QA", 9, "same"),
        ("D", 12, "told"), ("W", 15, "bridge"), ("W", 17, "kind of river"),
    ]  # fmt: skip


def test_a_call_that_is_kept_stands_where_the_text_goes_on_with_its_whole_result(tmp_path: Path) -> None:
    text = '"El vuelo dura 5 horas." In English: The  flight takes 5 hours. "Mar" is sea.'
    result, asked = "The flight takes 5 hours.", "El vuelo dura 5 horas."
    start, later = text.index(" The"), text.index(" 5 hours")
    proposed = [candidate(start, asked, result, 0.01), candidate(later, asked, result, 0.9)]
    never_kept = [candidate(text.index(" sea"), "Mar", "sea", 0.1)]
    files = {"MT": write(tmp_path, "MT", {"a": (text, [*proposed, *never_kept])})}
    merge(files, tmp_path / "out", MergeRule(), REGISTRY)
    [line] = read(tmp_path / "out", "with_calls.jsonl")
    merged = Merged.from_line(line)
    assert merged.segments[0] == text[:start]
    assert (calls(merged), merged.gains) == ([("MT", asked)], (0.01,))

    merge(files, tmp_path / "strict", MergeRule(strict=True), REGISTRY)
    assert read_rule(tmp_path / "strict").strict
    [line] = read(tmp_path / "strict", "with_calls.jsonl")
    merged = Merged.from_line(line)
    assert merged.segments[0] == text[:later]
    assert (calls(merged), merged.gains) == ([("MT", asked)], (0.9,)), "a call stands where its own gain fails"

    truth = {"id": "a", "calls": [{"tool": "MT", "offset": start, "input": asked, "answer": result}]}
    (tmp_path / "truth.jsonl").write_text(json.dumps(truth))
    [found] = measure(files, tmp_path / "truth.jsonl").values()
    assert (found.kept, found.merged, found.merged_right) == (1, 1, 1)
    truth["calls"] = [{"tool": "MT", "offset": start, "input": asked, "answer": "The"}]
    (tmp_path / "truth.jsonl").write_text(json.dumps(truth))
    for strict, right in ((False, 1), (True, 0)):
        [found] = measure(files, tmp_path / "truth.jsonl", rule=MergeRule(strict=strict)).values()
        assert (found.merged, found.merged_right) == (1, right)


@pytest.mark.parametrize(
    ("before", "behind", "asked", "output", "late"),
    [
        ("My letter of November", " 27", "", "Today is Monday, November 27, 1989.", True),
        ("My letter of", " November 27", "", "Today is Monday, November 27, 1989.", False),
        ("It means she rides a bike", " to school.", "Elle va", "She goes by bike to school.", True),
        ("It means she rides a bike", " to school.", "Elle va", "She goes to school by bike.", False),
        ("A sitar is", " a string instrument", "sitar", "Sitar > A sitar is a string instrument.", False),
        ("Who wrote Stabat Mater? Giovanni", " Pergolesi", "Stabat Mater", "It is Giovanni Pergolesi's.", False),
        ("Who wrote Stabat Mater? Giovanni", " Pergolesi", "Stabat Mater", "It is Giovanni Pergolesi.", True),
        ("12 + 3 =", " 15", "12 + 3", "15", False),
        ("Yes, it is", " Monday.", "", "Today is Monday, November 27, 1989.", False),
        ("", "", "", "", False),
    ],
)
def test_a_call_in_the_middle_of_its_result_is_late(
    before: str, behind: str, asked: str, output: str, late: bool
) -> None:
    assert is_late(before, behind, asked, output) is late


def test_a_late_call_is_left_out_unless_the_rule_is_strict(tmp_path: Path) -> None:
    text = "The play is by George Bernard Shaw."
    files = {"QA": write(tmp_path, "QA", {"a": (text, [candidate(21, "Who?", "George Bernard Shaw", 2.0)])})}
    assert merge(files, tmp_path / "out", MergeRule(), REGISTRY)["QA"].merged_texts == 0
    assert merge(files, tmp_path / "strict", MergeRule(strict=True), REGISTRY)["QA"].merged_texts == 1


def test_words_of_a_call_that_its_text_does_not_say() -> None:
    assert unsaid("Who built the Tower Bridge?", "tower bridge") == 0
    assert unsaid("Who built the Tower Bridge?", "kind Tower Bridge builder") == 2


@pytest.mark.parametrize(
    ("text", "output", "expected"),
    [
        (" 408 books.", "408", True),
        (" 4080 books.", "408", False),
        (" so 408", "408", False),
        (" the flight takes 5 hours, it says", "The flight takes 5 hours.", True),
        (" flight takes 5 hours.", "The flight takes 5 hours.", False),
        (" The flight takes 5", "The flight takes 5 hours.", False),
        (" The kite was red. It", "Kite > The kite was red.", True),
        (" Kite", "Kite > The kite was red.", False),
        (" anything", "...", False),
        (" anything", "Kite > ...", False),
        ("", "408", False),
    ],
)
def test_a_text_goes_on_with_an_output_if_it_has_all_its_words(text: str, output: str, expected: bool) -> None:
    assert goes_on_with(text, output) is expected


def test_a_tool_has_examples_in_so_many_texts_and_no_more(tmp_path: Path) -> None:
    texts = {f"d{n}": (TEXT, [candidate(PLACE, "287 / 350", "0.82", 1 + n / 100)]) for n in range(30)}
    files = {"Calculator": write(tmp_path, "Calculator", texts)}
    files["QA"] = write(tmp_path, "QA", {"d3": (TEXT, [candidate(3, "How many?", "350", 0.7)])})
    rule = MergeRule(examples_per_tool=10)
    counts = merge(files, tmp_path / "out", rule, REGISTRY)
    assert read_rule(tmp_path / "out") == rule
    assert read_rule(tmp_path) == MergeRule()
    assert (counts["Calculator"].merged_texts, counts["QA"].merged_texts) == (10, 1)
    ids = [json.loads(line)["id"] for line in read(tmp_path / "out", "with_calls.jsonl")]
    assert ids == sorted(ids)
    # The draw knows neither the order of the texts nor what else there is.
    assert drawn(sorted(texts, reverse=True), "Calculator", MergeRule(10)) == drawn(texts, "Calculator", MergeRule(10))
    assert drawn(texts, "Calculator", MergeRule(10)) != drawn(texts, "Calculator", MergeRule(10, seed=1))
    assert set(ids) - {"d3"} == drawn(texts, "Calculator", MergeRule(10)) - {"d3"}


def test_a_paragraph_is_put_back_into_its_document(tmp_path: Path) -> None:
    whole = "First one.\n\nIl fait froid. It is cold.\nLast one."
    paragraph = "Il fait froid. It is cold."
    foreign = {"w#2": (paragraph, [candidate(14, "Il fait froid.", "It is cold.", 3.0)])}
    apart = {"x#2": ("Not a part of it.", [candidate(3, "Pas", "Not", 3.0)])}
    files = {
        "MT": write(tmp_path, "MT", foreign | apart),
        "WikiSearch": write(tmp_path, "WikiSearch", {"w": (whole, []), "x": (whole, [])}),
    }
    merge(files, tmp_path / "out", MergeRule(), REGISTRY)
    texts = [Merged.from_line(line) for line in read(tmp_path / "out", "with_calls.jsonl")]
    assert [text.id for text in texts] == ["w", "x#2"]
    assert rendered(texts[0].segments, REGISTRY) == whole.replace(
        "froid. It", "froid. [MT(Il fait froid.) -> It is cold.] It"
    )


@given(st.data())
def test_a_text_without_its_calls_is_the_text(data: st.DataObject) -> None:
    text = data.draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
    first, second = (
        [
            KeptCall("QA", offset, f"{name}{number}", "r", 1.0)
            for number, offset in enumerate(sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5))))
        ]
        for name in "ab"
    )
    once = put(first, Merged("d", (text,), ()), REGISTRY)
    assert plain(once.segments) == text
    shown = rendered(once.segments, REGISTRY)
    free = outside(shown, REGISTRY)
    # What is between calls is where a later round may put more.
    assert sum(len(span) for span in call_spans(shown, REGISTRY)) >= len(shown) - len(text)
    places = [place for place, is_free in enumerate(free) if is_free]
    assert len(places) >= 1
    later = [
        KeptCall(one.tool, place, one.input, "s", 2.0)
        for one, place in zip(second, sorted(data.draw(st.permutations(places))[: len(second)]), strict=False)
    ]
    twice = put(later, once, REGISTRY)
    assert plain(twice.segments) == text
    assert [one for one in calls(twice) if one in calls(once)] == calls(once)
    assert len(twice.gains) == len(once.gains) + len(later)
    without = "".join(shown)
    for call in reversed(later):
        without = without[: call.offset] + f' [QA("{call.input}") -> s]' + without[call.offset :]
    assert rendered(twice.segments, REGISTRY) == without


def test_a_later_round_adds_to_what_there_is(tmp_path: Path) -> None:
    first = {
        "Calculator": write(tmp_path / "1", "Calculator", {"d": (TEXT, [candidate(PLACE, "287 / 350", "0.82", 2.0)])})
    }
    merge(first, tmp_path / "out", MergeRule(), REGISTRY)
    earlier = Earlier.load(tmp_path / "out" / "with_calls.jsonl", tmp_path / "out" / "documents.jsonl")
    shown = earlier.rendered("d", REGISTRY)
    behind = shown.index(" 0.82.")
    again = candidate(3, "287 / 350", "0.82", 9.0)  # the text has this call
    second = {
        "Calculator": write(
            tmp_path / "2", "Calculator", {"d": (shown, [again, candidate(behind, "1 - 0.82", "0.18", 1.0)])}
        ),
        "QA": write(tmp_path / "2", "QA", {"d": (shown, [candidate(PLACE, "How many?", "287", 0.8)])}),
    }
    counts = merge(second, tmp_path / "out2", MergeRule(), REGISTRY, earlier=earlier)
    [line] = read(tmp_path / "out2", "with_calls.jsonl")
    assert rendered(Merged.from_line(line).segments, REGISTRY) == (
        'Of 350 seedlings 287 survived in Lima, a share of [QA("How many?") -> 287]'
        " [Calculator(287 / 350) -> 0.82] [Calculator(1 - 0.82) -> 0.18] 0.82."
    )
    assert Merged.from_line(line).gains == (0.8, 2.0, 1.0)
    assert read(tmp_path / "out2", "documents.jsonl") == read(tmp_path / "out", "documents.jsonl")
    assert counts["Calculator"].merged_calls == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"verdict": None}, "candidates.verdict: is missing in 'd'; run the filter first"),
        ({"output": None}, "'d' keeps a call without output or gain"),
        ({"offset": 500}, "offset 500 is behind the end of the text"),
    ],
)
def test_what_is_no_filtered_file_is_reported(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    files = {"QA": write(tmp_path, "QA", {"d": (TEXT, [replace(candidate(3, "q", "r", 1.0), **changes)])})}
    with pytest.raises(StageError, match=message):
        merge(files, tmp_path / "out", MergeRule(), REGISTRY)
    assert not (tmp_path / "out" / "with_calls.jsonl").exists()


def test_precision_counts_what_stands_in_the_right_place_with_the_right_answer(tmp_path: Path) -> None:
    whole = f"A title\n{TEXT}"
    right = [candidate(PLACE, "287 / 350", "0.82", 2.0), candidate(PLACE, "0.82", "0.82", 0.1)]
    wrong = [
        candidate(3, "350", "350", 0.7),
        candidate(PLACE, "350 / 287", "1.22", 0.1),
        candidate(PLACE, "x", None, None),
    ]
    near = candidate(PLACE - 3, "287/350", "0.82", 0.9)
    files = {
        "Calculator": write(tmp_path, "Calculator", {"d#2": (TEXT, [*right, *wrong, near])}),
        "QA": write(tmp_path, "QA", {"d": (whole, [])}),
    }
    truth = tmp_path / "truth.jsonl"
    call = {"tool": "Calculator", "offset": whole.index(" 0.82"), "input": "287 / 350", "answer": "0.82"}
    truth.write_text(json.dumps({"id": "d", "calls": [call]}) + "\n")
    found = measure(files, truth)["Calculator"]
    assert (found.proposed, found.proposed_right, found.kept, found.kept_right) == (6, 2, 3, 1)
    assert (found.before, found.after) == (2 / 6, 1 / 3)
    # The third is the first written otherwise, so both stand in the text; a call written twice would once.
    assert (found.merged, found.merged_right, found.in_texts) == (3, 1, 1 / 3)
    assert measure(files, truth, reach=3)["Calculator"].kept_right == 2
    assert measure(files, truth)["QA"].after == 0


def test_a_call_inside_the_answer_is_right_where_a_word_begins_and_counts_once_in_the_text(tmp_path: Path) -> None:
    text = '"Ruhetag: Montag." means: Closing day: Monday.'
    begins, inside = text.index(" Closing"), text.index(" Monday")
    said = "Closing day: Monday."
    calls = [
        candidate(begins, "Ruhetag: Montag.", said, 0.6),
        candidate(inside, "Ruhetag: Montag.", said, 1.9),
        candidate(inside + 3, "Ruhetag", said, 0.7),
        candidate(text.index(" means"), "Montag", said, 0.8),
    ]
    files = {"MT": write(tmp_path, "MT", {"d": (text, calls)})}
    truth = tmp_path / "truth.jsonl"
    call = {"tool": "MT", "offset": begins, "input": "Ruhetag: Montag.", "answer": "Closing day: Monday"}
    truth.write_text(json.dumps({"id": "d", "calls": [call]}) + "\n")
    found = measure(files, truth)["MT"]
    assert (found.kept, found.kept_right) == (4, 2)
    assert (found.merged, found.merged_right) == (3, 1)
