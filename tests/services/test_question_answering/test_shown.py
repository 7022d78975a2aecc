"""What a reader is shown: the words marked in a passage, and where the answer begins."""

from dataclasses import replace

import pytest
import torch

from services.question_answering import vocabulary
from services.question_answering.formats import prompt, reader_text, says, target
from services.question_answering.passages import PagePassage
from services.question_answering.reader import Reader, encode_apart
from services.question_answering.shown import ASKED, NAME, NUMBER, Shown, show
from services.question_answering.t5 import T5
from services.question_answering.train_loss import Batch, batch_of, written_loss
from tests.services.test_question_answering.tiny import t5_config

PASSAGE = PagePassage("1", "Telephone", "Ada Merle invented the telephone in 1843. In 1843 Ada was young.")
QUESTION = "When was the invention of the telephone?"
TOKENIZER = vocabulary.learn([reader_text(prompt(QUESTION), PASSAGE)] * 3, vocab_size=400, gaps=4)[1]


def words(shown: Shown, places: list[int]) -> str:
    return TOKENIZER.decode([shown.ids[place] for place in places], skip_special_tokens=False)


def model() -> T5:
    return T5(replace(t5_config(tied=True), vocab_size=500))


def batch(shown: list[list[Shown]], answers: list[str], per_pass: int = 60) -> Batch:
    return batch_of(
        TOKENIZER, shown, [target(one) for one in answers], pad=model().config.pad_id, max_tokens=200, per_pass=per_pass
    )


def test_the_question_s_words_and_numbers_and_names_are_marked_in_the_passage_alone() -> None:
    [shown] = show(TOKENIZER, QUESTION, [PASSAGE], 200, marked=True)
    assert shown.ids == TOKENIZER.encode(reader_text(prompt(QUESTION), PASSAGE)).ids
    assert shown.marks is not None
    marks = {
        mark: [place for place, id_ in enumerate(shown.marks) if id_ == TOKENIZER.token_to_id(mark)]
        for mark in (ASKED, NUMBER, NAME)
    }
    assert words(shown, marks[ASKED]).split() == ["Telephone", "invented", "telephone"]
    assert "".join(words(shown, marks[NUMBER]).split()) == "18431843"
    assert "".join(words(shown, marks[NAME]).split()) == "AdaMerleAda"  # and not `In`
    assert min(place for places in marks.values() for place in places) >= len(TOKENIZER.encode(prompt(QUESTION)).ids)


def test_a_model_without_marks_is_shown_none() -> None:
    [shown] = show(TOKENIZER, QUESTION, [PASSAGE], 200, marked=False)
    assert shown.marks is None


def test_the_answer_is_found_wherever_the_passage_says_it() -> None:
    [shown] = show(TOKENIZER, QUESTION, [PASSAGE], 200, marked=True, answer="1843")
    assert [words(shown, [place]).strip() for place in shown.starts] == ["184", "184"]
    [nowhere] = show(TOKENIZER, QUESTION, [PASSAGE], 200, marked=True, answer="84")
    assert nowhere.starts == ()


def test_what_is_cut_off_is_neither_marked_nor_the_answer() -> None:
    most = len(TOKENIZER.encode(prompt(QUESTION)).ids) + 6
    [shown] = show(TOKENIZER, QUESTION, [PASSAGE], most, marked=True, answer="1843")
    assert shown.marks is not None
    assert len(shown.ids) == len(shown.marks) == most
    assert shown.starts == ()


def test_without_passages_the_question_stands_alone() -> None:
    [shown] = show(TOKENIZER, QUESTION, [], 200, marked=True, answer="1843")
    assert shown.ids == TOKENIZER.encode(reader_text(prompt(QUESTION), PagePassage("", "", ""))).ids
    assert shown.starts == ()


@torch.no_grad()
def test_marks_change_what_a_marked_reader_encodes_and_nothing_else() -> None:
    t5 = model().initialise(0).eval()
    [marked], [plain] = (show(TOKENIZER, QUESTION, [PASSAGE], 200, marked=marked) for marked in (True, False))
    unmarked = Shown(plain.ids, [0] * len(plain.ids))
    states = [encode_apart(t5, [one], 1_000)[0] for one in (marked, plain, unmarked)]
    assert not torch.allclose(states[0], states[1], atol=1e-3)
    torch.testing.assert_close(states[1], states[2])
    both = encode_apart(t5, [unmarked, marked], 1_000)
    torch.testing.assert_close(both[1], states[0], atol=1e-5, rtol=1e-4)
    [answer] = Reader(t5, TOKENIZER, max_tokens=200, max_answer_tokens=4, marked=True).answer([QUESTION], [[PASSAGE]])
    assert 0 <= answer.score <= 1


def test_a_pointed_reader_learns_where_the_answer_begins_and_writes_what_stands_there() -> None:
    torch.manual_seed(0)
    t5 = T5(replace(model().config, pointed=True)).initialise(0)
    other = PagePassage("2", "Piano", "Ben Orla built the piano in 1790.")
    shown = [
        show(TOKENIZER, QUESTION, [other, PASSAGE], 200, marked=True, answer="1843"),
        show(TOKENIZER, QUESTION, [other], 200, marked=True),
    ]
    optimizer = torch.optim.Adam(t5.parameters(), lr=3e-3)
    losses = []
    for _ in range(50):
        loss = written_loss(t5, batch(shown, ["1843", ""]))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    plain = T5(replace(t5.config, pointed=False))
    plain.load_state_dict(t5.state_dict(), strict=False)
    silent, without = (written_loss(one, batch(shown[1:], [""])) for one in (t5, plain))
    assert silent.item() == pytest.approx(without.item()), "no answer, no place to point to"

    together, apart = (written_loss(t5, batch(shown, ["1843", ""], per_pass)) for per_pass in (1_000, 1))
    torch.testing.assert_close(together, apart, atol=1e-4, rtol=1e-4)

    reader = Reader(t5, TOKENIZER, max_tokens=200, max_answer_tokens=6, marked=True)
    said, unsaid = reader.answer([QUESTION, QUESTION], [[other, PASSAGE], [other]])
    assert said.text == "1843"
    assert unsaid.score < 0.02 < said.score <= 1


def test_what_a_pointed_reader_writes_stands_in_its_passages_in_whole_words() -> None:
    t5 = T5(replace(model().config, pointed=True)).initialise(1)
    reader = Reader(t5, TOKENIZER, max_tokens=200, max_answer_tokens=5, marked=True)
    text = reader_text(prompt(QUESTION), PASSAGE)
    [answer] = reader.answer([QUESTION], [[PASSAGE]])
    assert answer.text == "" or says(text, answer.text)


def test_words_and_numbers_are_undivided() -> None:
    [shown] = show(TOKENIZER, QUESTION, [replace(PASSAGE, text="In 1843 9,587,522 rang at 10:30.")], 200, marked=True)
    begin = len(TOKENIZER.encode(prompt(QUESTION)).ids) - 1
    assert shown.inside
    assert min(shown.inside) >= begin
    firsts = [words(shown, [at]).strip()[:1] for at in range(begin, len(shown.ids) - 1) if at not in shown.inside]
    assert [one for one in firsts if one.isdigit()] == ["1", "9", "1"]
