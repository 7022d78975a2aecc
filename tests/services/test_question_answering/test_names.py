"""Names that no found passage has."""

import pytest

from services.question_answering.names import unknown_name
from services.question_answering.passages import PagePassage

PAGES = [
    PagePassage("1-0", "Andy Warhol", "Andy Warhol was born in Pittsburgh."),
    PagePassage("2-0", "Friends", "Courteney Cox is in it. Dürer's pictures are not. Jean-Louis Barrault was French."),
]


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Where was Andy Cox born?", "Andy Cox"),
        ("Where was Andy Warhol born?", None),
        ("Where was Courteney B. Cox born?", None),
        ("When did Albrecht Durer's pictures sell?", "Albrecht Durer"),
        ("Who was Durer?", None),
        ("When was Andrew Warhol Junior born?", "Andrew Warhol Junior"),
        ("When was Andy Andrew Warhol born?", None),
        ("When did Jean-Louis Barrault die?", None),
        ("When did Jean-Louis Warhol die?", "Jean Louis Warhol"),
        ("Where do the French live?", None),
        ("Did Andy Cox meet Courteney Cox?", None),
        ("Did Andy Cox, or Peter Strudel, live?", "Andy Cox"),
        ("Was it sold? When was it sold?", None),
        ("where was andy cox born", None),
        ("WHERE WAS ANDY COX BORN?", None),
        ("Zzyzx?", None),
        ("", None),
    ],
)
def test_a_question_whose_names_stand_in_no_page_together(question: str, name: str | None) -> None:
    assert unknown_name(question, PAGES) == name


def test_without_a_passage_every_name_is_unknown() -> None:
    assert unknown_name("Who was Dürer?", []) == "Dürer"
