"""Records survive the way through a file, always as the same bytes, and a wrong line says what is wrong with it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training_jobs.records import Annotated, CallSegment, Candidate, Document, Merged, Plain, Record, RecordError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.floats(-1e6, 1e6)
LOSSES = st.none() | NUMBERS
DOCUMENTS = st.builds(
    Document, id=TEXT, text=TEXT, url=st.none() | TEXT, date=st.none() | st.dates().map(str), source=TEXT
)
CANDIDATES = st.builds(
    Candidate,
    position=st.integers(0, 2048),
    offset=st.integers(0, 9000),
    start_probability=st.floats(0, 1),
    input=TEXT,
    output=st.none() | TEXT,
    loss_empty=LOSSES,
    loss_call=LOSSES,
    loss_result=LOSSES,
    gain=LOSSES,
    verdict=st.none() | TEXT,
)
ANNOTATED = st.builds(
    Annotated,
    document=DOCUMENTS,
    tool=TEXT,
    candidates=st.lists(CANDIDATES, max_size=3).map(tuple),
    dropped=st.dictionaries(TEXT, st.integers(0)),
    wrote=st.dictionaries(TEXT, TEXT),
)
CALLS = st.builds(CallSegment, tool=TEXT, input=TEXT, output=TEXT)
MERGED = st.lists(st.tuples(TEXT, CALLS, NUMBERS)).map(
    lambda parts: Merged("1", tuple(x for text, call, _ in parts for x in (text, call)), tuple(g for *_, g in parts))
)


@given(DOCUMENTS | ANNOTATED | MERGED | st.builds(Plain, id=TEXT, segments=st.lists(TEXT).map(tuple)))
def test_a_record_read_back_is_the_record_written(record: Record) -> None:
    line = record.to_line()
    assert line.endswith("}\n")
    assert line.count("\n") == 1
    again = type(record).from_line(line)
    assert again == record
    assert again.to_line() == line


def test_a_line_has_the_fields_in_their_order() -> None:
    candidate = Candidate(3, 11, 0.1234567, "24 * 17", output="408", gain=-0.0000001)
    line = Annotated(
        Document("a", "x", date="2026-11-21"), "Calculator", (candidate,), {"z": 1, "b": 2}, {"z": "x"}
    ).to_line()
    assert line == (
        '{"document":{"id":"a","text":"x","url":null,"date":"2026-11-21","source":""},"tool":"Calculator",'
        '"candidates":[{"position":3,"offset":11,"start_probability":0.123457,"input":"24 * 17","output":"408",'
        '"error":null,"loss_empty":null,"loss_call":null,"loss_result":null,"gain":0.0,"verdict":null}],'
        '"dropped":{"b":2,"z":1},"wrote":{"z":"x"}}\n'
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": None}, "shard 3, line 7: text: Input should be a valid string"),
        ({"text": 5}, "text: Input should be a valid string"),
        ({"date": "2026-11-31"}, "date must be a day as YYYY-MM-DD, not '2026-11-31'"),
        ({"date": "20261121"}, "date must be a day as YYYY-MM-DD"),
        ({"colour": "red"}, "colour: Unexpected keyword argument"),
    ],
)
def test_a_wrong_line_says_where_and_what(change: dict[str, object], message: str) -> None:
    with pytest.raises(RecordError) as raised:
        Document.from_line(json.dumps({"id": "a", "text": "x"} | change), "shard 3, line 7")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_half_a_line_is_no_record() -> None:
    with pytest.raises(RecordError, match=r"line 2: Invalid JSON.*not a Document"):
        Document.from_line('{"id": "a", "te', "line 2")


def test_what_excludes_or_contradicts_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="exclude"):
        Candidate(0, 0, 0.5, "", output="1", error="timeout")
    with pytest.raises(ValueError, match="gain must be a finite number, not nan"):
        Candidate(0, 0, 0.5, "", gain=float("nan"))
    with pytest.raises(ValueError, match="1 calls in the text but 0 gains"):
        Merged("a", ("x", CallSegment("QA", "?", "!")), ())
    with pytest.raises(ValueError, match="half a surrogate pair at 1"):
        Document("a", "x\ud800")
