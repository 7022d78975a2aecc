"""Long texts are cut where a reader would pause, and nothing is lost."""

import random

from training_jobs.corpora.web.cutting import cut
from training_jobs.corpora.web.tokens import word_spans
from training_jobs.records import Document


def pieces(text: str, max_tokens: int) -> list[str]:
    found = list(cut(Document("d", text, "u", "2019-01-02", "s"), max_tokens, word_spans))
    if len(found) > 1:
        assert [piece.id for piece in found] == [f"d~{number}" for number in range(1, len(found) + 1)]
    assert all((piece.url, piece.date, piece.source) == ("u", "2019-01-02", "s") for piece in found)
    return [piece.text for piece in found]


def test_a_text_that_fits_stays_what_it_is() -> None:
    document = Document("d", " one two\n", "u")
    assert list(cut(document, 2, word_spans)) == [document]


def test_lines_come_before_sentences_and_sentences_before_tokens() -> None:
    text = "One two. Three four five.\nSix seven eight nine ten eleven twelve"
    assert pieces(text, 8) == ["One two. Three four five.", "Six seven eight nine ten eleven twelve"]
    assert pieces(text, 6) == ["One two.", "Three four five.", "Six seven eight nine ten eleven", "twelve"]
    assert pieces("aaa bbb ccc", 1) == ["aaa", "bbb", "ccc"]


def test_nothing_is_lost_and_no_piece_is_too_long() -> None:
    rng = random.Random(0)
    for _ in range(200):
        text = "".join(rng.choice(("word", "a", " ", " ", ". ", "! ", "\n", "日本。", "?", "é")) for _ in range(80))
        limit = rng.randrange(1, 20)
        found = pieces(text, limit)
        assert "".join("".join(found).split()) == "".join(text.split())
        assert all(len(word_spans(piece)) <= limit for piece in found if len(found) > 1)
        assert all(piece == piece.strip() for piece in found if len(found) > 1)


def test_a_character_of_several_tokens_is_never_cut() -> None:
    def bytewise(text: str) -> list[tuple[int, int]]:
        return [(at, at + 1) for at, character in enumerate(text) for _ in character.encode()]

    found = list(cut(Document("d", "日本語日本語"), 4, bytewise))
    assert "".join(piece.text for piece in found) == "日本語日本語"
