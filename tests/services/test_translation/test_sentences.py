"""Text becomes sentences and sentences become text, in scripts with and without spaces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.translation.sentences import join_sentences, split_sentences


def texts(text: str) -> list[str]:
    return [sentence.text for sentence in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Hallo. Wie geht es? Gut!", ["Hallo.", "Wie geht es?", "Gut!"]),
        ("Am 20. November 2026 kommt er. Sie geht.", ["Am 20. November 2026 kommt er.", "Sie geht."]),
        ("Im Jahr 1998. Dann nicht.", ["Im Jahr 1998.", "Dann nicht."]),
        ("Dr. Weber und J. R. Meier kamen z.B. gestern.", ["Dr. Weber und J. R. Meier kamen z.B. gestern."]),
        ("Das kostet 3.50 Euro, ca. 4 Dollar.", ["Das kostet 3.50 Euro, ca. 4 Dollar."]),
        ("Er sagte: „Komm!“ und ging.", ["Er sagte: „Komm!“ und ging."]),
        ("Il dit « Non. » Elle part.", ["Il dit « Non. »", "Elle part."]),
        ("Он пришёл 1 мая 2026 г. Она ушла.", ["Он пришёл 1 мая 2026 г.", "Она ушла."]),
        ("今天是星期五。会议开始了！你来吗？", ["今天是星期五。", "会议开始了！", "你来吗？"]),
        ("「行きます。」と言った。そして", ["「行きます。」", "と言った。", "そして"]),
        ("यह भारत है। वह नेपाल है।", ["यह भारत है।", "वह नेपाल है।"]),
        ("هل أنت هنا؟ نعم.", ["هل أنت هنا؟", "نعم."]),
        ("สวัสดีครับ ผมชื่อสมชาย", ["สวัสดีครับ ผมชื่อสมชาย"]),
        ("Eins\nzwei\n\ndrei", ["Eins", "zwei", "drei"]),
        ("Und so weiter... aber nicht hier.", ["Und so weiter... aber nicht hier."]),
        ("...", ["..."]),
        ("", []),
        (" \n\n ", []),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert texts(text) == sentences


def test_line_breaks_come_back_where_they_were() -> None:
    sentences = split_sentences("Eins. Zwei.\nDrei.\n\n\nVier。Fünf")
    assert join_sentences(sentences, ["1.", "2.", "3.", "4.", "5"]) == "1. 2.\n3.\n\n4. 5"


@given(st.text())
def test_nothing_is_lost(text: str) -> None:
    assert "".join("".join(texts(text)).split()) == "".join(text.split())


@given(st.text(alphabet='.。!? \nAa1"”г'))
def test_no_sentence_is_empty_and_splitting_again_changes_nothing(text: str) -> None:
    for sentence in split_sentences(text):
        assert sentence.text
        assert sentence.text == sentence.text.strip()
        assert texts(sentence.text) == [sentence.text]


def test_a_long_text_is_split_in_one_pass() -> None:
    text = "Ja. " * 50_000
    assert len(split_sentences(text)) == 50_000
