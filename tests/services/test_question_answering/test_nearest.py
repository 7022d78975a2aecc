"""The sentences that a reader reads."""

from services.question_answering.nearest import nearest_sentences
from services.question_answering.passages import PagePassage

KORVIN = PagePassage(
    "1-0", "Korvin", "Korvin is a town by the sea. Its lighthouse was built in 1843. In winter the town is quiet."
)
TOWERS = PagePassage("2-0", "Towers", "A lighthouse shows ships the way. A tower is high.")


def nearest(question: str, most: int = 1) -> list[tuple[str, str]]:
    return [(one.heading, one.text) for one in nearest_sentences(question, [KORVIN, TOWERS], most)]


def test_the_nearest_sentence_has_most_of_the_questions_words() -> None:
    assert nearest("When was the lighthouse built?") == [("Korvin", "Its lighthouse was built in 1843.")]
    assert nearest("How high are towers?") == [("Towers", "A tower is high.")]


def test_a_word_of_the_heading_counts_and_the_first_passage_comes_first() -> None:
    assert nearest("the lighthouse of Korvin") == [("Korvin", "Its lighthouse was built in 1843.")]
    assert nearest("a lighthouse", 2)[0] == ("Korvin", "Its lighthouse was built in 1843.")
    assert [heading for heading, _ in nearest("nothing of this kind", 3)] == ["Korvin"] * 3


def test_a_list_is_cut_into_pieces() -> None:
    words = [f"word{number}" for number in range(150)]
    pieces = nearest_sentences("word140?", [PagePassage("3-0", "List", " ".join(words))], 5)
    assert [len(one.text.split()) for one in pieces] == [60, 60, 30]
    assert " ".join(sorted((one.text for one in pieces), key=lambda text: int(text.split()[0][4:]))).split() == words


def test_there_may_be_no_passage() -> None:
    assert nearest_sentences("Who?", [], 3) == []
