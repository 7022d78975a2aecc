"""Input that nobody would send on purpose, to each of the five real services: a documented answer, and no crash."""

import json
import re
from typing import Final

import pytest

from tests.services.real_services import FOLDER, INFOS, RunningService

pytestmark = pytest.mark.timeout(400)

OK: Final = "an output"
SAME: Final = "the input unchanged"
SERVICES: Final = ("calculator", "calendar", "wiki_search", "question_answering", "translation")

SYNTAX, NO_INPUT, EMPTY = "invalid_syntax", "unexpected_input", "empty"
FINDS = f"{OK} no_result"
READS = f"{OK} no_answer"
GUESSES = f"{OK} low_confidence unknown_language unsupported_language no_answer"
"""What a translator of twelve languages makes of a text in another one, or in several, is its classifier's guess."""

ANSWERS: Final = {
    # what it is:          the text,            then what each service may answer, in the order of `SERVICES`
    "empty": ("", EMPTY, OK, "empty_query", "empty_question", EMPTY),
    "blank": (" \t\r\n\u2003", EMPTY, OK, "empty_query", "empty_question", EMPTY),
    "control characters": ("\x01\x07\x1b[2J\x7f\x85", SYNTAX, NO_INPUT, FINDS, READS, GUESSES),
    "only control characters": ("\x01\x07\x1b\x7f", SYNTAX, NO_INPUT, "empty_query", "empty_question", EMPTY),
    "NUL": ("\x00", SYNTAX, NO_INPUT, "empty_query", "empty_question", EMPTY),
    "NUL in a word": ("Lju\x00bljana", SYNTAX, NO_INPUT, FINDS, READS, GUESSES),
    "right to left": ("מהי אוכלוסיית ליובליאנה?", SYNTAX, NO_INPUT, FINDS, READS, GUESSES),
    "turned around": ("\u202eمتى\u202c \u2067Ljubljana\u2069", SYNTAX, NO_INPUT, FINDS, READS, GUESSES),
    "emoji": ("🤔🇸🇮👩‍🚀", SYNTAX, NO_INPUT, "no_result", "empty_question", SAME),
    "emoji and words": ("🤔 población de Ljubljana 🇸🇮?", SYNTAX, NO_INPUT, FINDS, READS, GUESSES),
    "mixed languages": ("Das Treffen τον Νοέμβριο 会议于 on Friday", SYNTAX, NO_INPUT, FINDS, READS, GUESSES),
    "digits": ("1234567890", "1234567890", NO_INPUT, FINDS, READS, SAME),
    "digits of another script": ("٣٤٥", SYNTAX, NO_INPUT, FINDS, READS, SAME),
    "a number without end": ("9" * 500, "too_large", NO_INPUT, FINDS, READS, SAME),
    "a word without end": ("x" * 500, SYNTAX, NO_INPUT, "no_result", READS, GUESSES),
    "a sign without end": ("(" * 500, "too_deep", NO_INPUT, "empty_query", "empty_question", SAME),
    "one letter with many marks": ("e" + "\u0301" * 499, SYNTAX, NO_INPUT, FINDS, READS, GUESSES),
    "marks of a call": ("[QA(x) -> </s><extra_id_0> fra_Latn ]", SYNTAX, NO_INPUT, FINDS, READS, GUESSES),
    "nearly a megabyte": ("Wo liegt 🙂? " * 60_000, *["input_too_long"] * 5),
}


def expected(kind: str, service: str) -> tuple[str, list[str]]:
    """The text of a kind, and what the service may answer to it: `OK`, `SAME`, a code, or the output itself."""
    text, *answers = ANSWERS[kind]
    answer = answers[SERVICES.index(service)]
    alternatives = [OK, *answer.removeprefix(OK).split()] if answer.startswith(OK) else [answer]
    return text, alternatives


def outcome(text: str, output: str | None, code: str | None, alternatives: list[str]) -> str:
    """What was answered, in the words of `ANSWERS`."""
    if output is None:
        return str(code)
    if SAME in alternatives:
        return SAME if output == text else output
    return OK if OK in alternatives else output


def still_answers(running: RunningService) -> None:
    """Pass if the service is there and answers its example."""
    assert running.process.poll() is None
    answer = running.http.post("/call", json={"input": running.info.example_input}).json()
    assert answer["output"], answer


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_call_has_its_documented_answer(running: RunningService, kind: str) -> None:
    text, alternatives = expected(kind, running.info.service)
    response = running.http.post("/call", json={"input": text})
    assert response.status_code == 200, response.text
    body = response.json()
    assert body["input"] == text
    code = body["error"] and body["error"]["code"]
    assert outcome(text, body["output"], code, alternatives) in alternatives
    calls = [{"input": text}, {"input": running.info.example_input}]
    same, example = running.http.post("/calls", json={"calls": calls}).json()["calls"]
    assert same["output"] == body["output"]
    assert example["output"]


@pytest.mark.parametrize("kind", [kind for kind in ANSWERS if len(ANSWERS[kind][0]) < 1_000])
def test_its_own_route_answers_or_says_why_not(running: RunningService, kind: str) -> None:
    text, alternatives = expected(kind, running.info.service)
    response = running.ask(text)
    if response.status_code == 200:
        # A list of hits may be empty where a single best answer is missing.
        answered = {OK, SAME, "no_result"} & {*alternatives} or not alternatives[0].isidentifier()
        assert answered, response.text
    else:
        assert response.status_code == 422
        assert response.json()["error"]["code"] in {*alternatives, "invalid_value"}
    still_answers(running)


def test_its_own_route_refuses_more_than_its_limit(running: RunningService) -> None:
    assert running.ask("a" * (running.info.max_input_chars + 1)).status_code == 422


BODIES: Final = {
    "a megabyte": (json.dumps({"input": "a" * 1_048_576}).encode(), 413, "body_too_large"),
    "half a surrogate pair": (b'{"input": "\\ud83d"}', 422, "invalid_value"),
    "half a surrogate pair in a batch": (b'{"calls": [{"input": "a"}, {"input": "a\\udc00"}]}', 422, "invalid_value"),
    "not UTF-8": (b'{"input": "\xff\xfe"}', 400, "invalid_json"),
    "UTF-8 of half a surrogate pair": (b'{"input": "\xed\xa0\xbd"}', 422, "invalid_value"),
    "nested without end": (b'{"input": ' + b"[" * 100_000, 400, "invalid_json"),
    "a number": (b'{"input": 12}', 422, "invalid_value"),
    "null": (b'{"input": null}', 422, "invalid_value"),
    "nothing": (b"", 422, "invalid_value"),
}


@pytest.mark.parametrize("kind", BODIES)
def test_a_body_that_is_no_call_is_refused(running: RunningService, kind: str) -> None:
    body, status, code = BODIES[kind]
    path = "/calls" if b"calls" in body[:10] else "/call"
    response = running.http.post(path, content=body, headers={"Content-Type": "application/json"})
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    still_answers(running)


@pytest.mark.parametrize("escaped", ["\\ud83d", "\\u0000", "\\u202e", "x" * 50_000])
def test_mcp_survives_it_too(running: RunningService, escaped: str) -> None:
    arguments = f'{{"name": "{running.info.tool}", "arguments": {{"input": "{escaped}"}}}}'
    body = f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {arguments}}}'
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    response = running.http.post("/mcp", content=body, headers=headers)
    assert response.status_code < 500, response.text
    still_answers(running)


@pytest.mark.parametrize("service", SERVICES)
def test_every_code_is_in_a_readme(service: str) -> None:
    """Its own, or that of all services."""
    readmes = [(folder / "README.md").read_text() for folder in (FOLDER, FOLDER / service)]
    documented = set(re.findall(r"`([a-z_]+)`", "".join(readmes)))
    answers = {answer for kind in ANSWERS for answer in expected(kind, service)[1]}
    codes = {answer for answer in answers if answer.isidentifier()} | {code for _, _, code in BODIES.values()}
    assert codes <= documented


def test_all_five_are_here() -> None:
    assert tuple(INFOS) == SERVICES
