"""Hand-made files in the published formats, for tests."""

import json
from pathlib import Path
from typing import Any


def lines(path: Path, records: list[dict[str, Any]]) -> Path:
    """Write JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def whole(path: Path, record: Any) -> Path:
    """Write JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record), encoding="utf-8")
    return path


def _squad(question: str, answers: list[str], name: str) -> dict[str, Any]:
    asked = {"id": name, "question": question, "answers": [{"text": text, "answer_start": 0} for text in answers]}
    paragraph = {"context": "The mill stands in Bled. It has four wheels.", "qas": [asked]}
    return {"version": 1.0, "data": [{"title": "Mill", "paragraphs": [paragraph]}]}


ASDIV = """<?xml version="1.0" encoding="UTF-8" ?>
<Machine-Reading-Corpus-File><ProblemSet>
<Problem ID="p1" Grade="1"><Body>Four hens laid 3 eggs each.</Body><Question>How many eggs are there?</Question>
<Answer>12 (eggs)</Answer><Formula>4*3=12</Formula></Problem>
<Problem ID="p2"><Body>B.</Body><Question>Who was faster?</Question><Answer>Ana</Answer></Problem>
<Problem ID="p3"><Body>B.</Body><Question>Which numbers?</Question><Answer>6 (cm); 15 (cm)</Answer></Problem>
<Problem ID="p4"><Body>B.</Body><Question>How late is it?</Question><Answer>5:45</Answer></Problem>
<Problem ID="p5"><Body>B.</Body><Question>How much is left?</Question><Answer>2.5</Answer></Problem>
</ProblemSet></Machine-Reading-Corpus-File>"""


def write_all(data: Path) -> Path:
    """A file of each benchmark under ``data``, laid out as the real ones."""
    lines(data / "lama/Squad/test.jsonl", [
        {"masked_sentences": ["The gate is painted [MASK]."], "obj_label": "green", "id": "s1"},
        {"masked_sentences": ["The [MASK] gate is old."], "obj_label": "green", "id": "s2"},
    ])  # fmt: skip
    lines(data / "lama/Google_RE/place_of_birth_test.jsonl", [
        {"masked_sentences": ["Ana Kos is a potter .", "She was born in [MASK] ."], "obj_label": "Bled",
         "obj_aliases": ["Bled, Slovenia", ""], "uuid": "g1", "sub_label": "Ana Kos"},
        {"masked_sentences": ["Born in [MASK] , she left ."], "obj_label": "Bled", "obj_aliases": [], "uuid": "g2",
         "sub_label": "Eva Kos"},
    ])  # fmt: skip
    lines(data / "lama/Google_RE/date_of_birth_test.jsonl", [
        {"masked_sentences": ["Ana Kos (born [MASK]) ."], "obj_label": "1941", "obj_aliases": [], "uuid": "g3",
         "sub_label": "Ana Kos"},
    ])  # fmt: skip
    lines(data / "lama/relations.jsonl", [
        {"relation": "P106", "template": "[X] is a [Y] by profession ."},
        {"relation": "P101", "template": "[X] works in the field of [Y] ."},
    ])  # fmt: skip
    lines(data / "lama/TREx/P101.jsonl", [
        {"uuid": "t3", "obj_label": "logic", "sub_label": "Ana Kos", "predicate_id": "P101", "evidences": [
            {"obj_surface": "logician", "masked_sentence": "A [MASK] she was."}]},
    ])  # fmt: skip
    lines(data / "lama/TREx/P106.jsonl", [
        {"uuid": "t1", "obj_label": "pottery", "sub_label": "Eva", "predicate_id": "P106", "evidences": [
            {"obj_surface": "potter", "masked_sentence": "[MASK] by trade, she stayed a [MASK]."},
            {"obj_surface": "potter", "masked_sentence": "Ana was a [MASK] "},
        ]},
        {"uuid": "t1", "obj_label": "pottery", "sub_label": "Eva", "predicate_id": "P106", "evidences": [
            {"obj_surface": "potter", "masked_sentence": "Eva was a [MASK]."}]},
        {"uuid": "t2", "obj_label": "pottery", "sub_label": "Eva", "predicate_id": "P106", "evidences": [
            {"obj_surface": "potter", "masked_sentence": "A [MASK] was she."}]},
    ])  # fmt: skip
    (data / "asdiv").mkdir(parents=True)
    (data / "asdiv/ASDiv.xml").write_text(ASDIV, encoding="utf-8")
    whole(data / "svamp/SVAMP.json", [
        {"ID": "c1", "Body": "A cup costs 7 dollars", "Question": "What do 3 cups cost?", "Answer": 21.0},
        {"ID": "c2", "Body": "B.", "Question": "What is half of a million?", "Answer": 500000.0},
    ])  # fmt: skip
    whole(data / "mawps/mawps_source.json", [
        {"iIndex": 1, "sQuestion": " Two of 8 are gone. How many are left?", "lSolutions": [6.0]},
        {"iIndex": 2, "sQuestion": "A third of one?", "lSolutions": ["0.3333333333"]},
        {"iIndex": 3, "sQuestion": "Which two?", "lSolutions": [1.0, 2.0]},
    ])  # fmt: skip
    whole(data / "webquestions/main/test.json", [
        {"qId": "w1", "qText": "what grows in bled", "answers": ["Lime trees", "Reed"]},
        {"utterance": "where is bled?",
         "targetValue": '(list (description "Upper \\"Carniola\\"") (description Slovenia))'},
        {"qId": "w3", "qText": "who knows?", "answers": []},
    ])  # fmt: skip
    lines(data / "nq_open/NQ-open.dev.jsonl", [{"question": "where is bled", "answer": ["Slovenia", "Upper Carniola"]}])
    lines(data / "triviaqa/test.jsonl", [
        {"id": "q1", "question": '"Who said ""no""?"', "golden_answers": ["Ana", "Ana Kos"]},
    ])  # fmt: skip
    for language, question in {"es": "¿Dónde está el molino?", "en": "Where is the mill?"}.items():
        whole(data / f"mlqa/dev/dev-context-en-question-{language}.json", _squad(question, ["Bled", "in Bled"], "m1"))
    for language in ("de", "hi", "vi", "zh", "ar"):
        whole(data / f"mlqa/dev/dev-context-en-question-{language}.json", _squad("?", ["Bled", "in Bled"], "m1"))
    lines(data / "templama/val.json", [
        {"query": "Ana Kos works for _X_.", "answer": [{"name": "Bled Pots"}, {"name": "Clay Ltd"}], "date": "2014",
         "id": "Q1"},
        {"query": "_X_ is the mayor of Bled.", "answer": [{"name": "Eva"}], "date": "2014", "id": "Q2"},
    ])  # fmt: skip
    (data / "wikitext/wikitext-2-raw").mkdir(parents=True)
    (data / "wikitext/wikitext-2-raw/wiki.test.raw").write_text(
        " \n = Mill = \n \n The mill stands . \n \n = = Wheels = = \n Four . \n \n = Gate = \n A gate . \n"
    )
    lines(data / "webtext/derived/ccnet_like.json", [
        {"raw_content": "A page about a mill.", "url": "http://a.example/x", "language": "en"},
        {"raw_content": "  ", "url": "http://a.example/y", "language": "en"},
    ])  # fmt: skip
    return data
