"""The reader and the retriever beside their obvious, slow forms."""

import pytest
import torch

from services.question_answering.formats import prompt, reader_text, retriever_text
from services.question_answering.padding import encoded, padded, text_batches
from services.question_answering.passages import PagePassage
from services.question_answering.reader import Answer, Reader, encode_apart, fused
from services.question_answering.retriever import Retriever
from services.question_answering.shown import Shown
from services.question_answering.t5 import DecoderMemory
from tests.services.test_question_answering.tiny import (
    MAX_TOKENS,
    PASSAGES,
    QUESTIONS,
    lively_bert,
    lively_t5,
    tokenizers,
)


def reader(max_tokens: int = MAX_TOKENS) -> Reader:
    return Reader(lively_t5(), tokenizers()[1], max_tokens=max_tokens, max_answer_tokens=8)


@torch.no_grad()
def slow_answer(question: str, passages: list[PagePassage]) -> tuple[str, float]:
    """Every passage by itself, all states kept, and the whole answer decoded anew for each token."""
    model, tokenizer = lively_t5(), tokenizers()[1]
    states = []
    for passage in passages:
        ids = torch.tensor([tokenizer.encode(reader_text(prompt(question), passage)).ids])
        states.append(model.encode(ids, torch.ones_like(ids, dtype=torch.bool)))
    together = torch.cat(states, dim=1)
    everything = torch.ones(together.shape[:2], dtype=torch.bool)
    written, log_probability = [model.config.pad_id], 0.0
    for _ in range(8):
        logits = model.decode(torch.tensor([written]), DecoderMemory(together, everything))[0, -1]
        best, token = logits.log_softmax(-1).max(-1)
        log_probability += best.item()
        written.append(int(token))
        if token == model.config.eos_id:
            break
    tokens = written[1:]
    return tokenizer.decode(tokens, skip_special_tokens=True).strip(), log_probability / len(tokens)


def test_answers_equal_the_slow_path() -> None:
    passages = [list(PASSAGES[:3]), list(PASSAGES[3:4]), list(PASSAGES[2:8])]
    for question, found, answer in zip(QUESTIONS[:3], passages, reader().answer(QUESTIONS[:3], passages), strict=True):
        text, log_probability = slow_answer(question, found)
        assert answer.text == text
        assert answer.score == pytest.approx(torch.tensor(log_probability).exp().item(), rel=1e-3)


def test_a_batch_answers_as_single_questions_do() -> None:
    passages = [list(PASSAGES[number : number + 3]) for number in range(5)]
    together = reader().answer(QUESTIONS[:5], passages)
    alone = [reader().answer([asked], [found])[0] for asked, found in zip(QUESTIONS[:5], passages, strict=True)]
    assert [answer.text for answer in together] == [answer.text for answer in alone]


def test_without_passages_the_reader_answers_by_itself() -> None:
    [answer] = reader().answer(QUESTIONS[:1], [[]])
    assert isinstance(answer, Answer)
    assert answer.text == slow_answer(QUESTIONS[0], [PagePassage("", "", "")])[0]


@torch.no_grad()
def test_fusing_takes_each_question_its_own_texts() -> None:
    model = lively_t5()
    ids = encoded(tokenizers()[1], [passage.text for passage in PASSAGES[:4]], MAX_TOKENS)
    states = encode_apart(model, [Shown(row) for row in ids], 40)
    together, mask = fused(states, [1, 3])
    assert mask.sum(dim=1).tolist() == [len(ids[0]), sum(map(len, ids[1:]))]
    torch.testing.assert_close(together[0][mask[0]], states[0])
    torch.testing.assert_close(together[1][mask[1]], torch.cat(states[1:]))


def test_a_long_text_loses_its_end_and_keeps_its_marks() -> None:
    for tokenizer, closing in zip(tokenizers(), ("[SEP]", "</s>"), strict=True):
        [whole], [cut] = encoded(tokenizer, ["Ljubljana " * 50], 10_000), encoded(tokenizer, ["Ljubljana " * 50], 12)
        assert len(cut) == 12
        assert cut[-1] == whole[-1] == tokenizer.token_to_id(closing)
        assert cut[:11] == whole[:11]


def test_batches_hold_every_text_once_within_their_tokens() -> None:
    rows = [[1] * length for length in (5, 1, 9, 3, 3, 20)]
    batches = list(text_batches(rows, 10))
    assert sorted(number for batch in batches for number in batch) == list(range(6))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(len(rows[number]) for number in batch) <= 10


@torch.no_grad()
def test_vectors_are_the_mean_of_the_token_states() -> None:
    bert = lively_bert()
    retriever = Retriever(bert, tokenizers()[0], max_tokens=MAX_TOKENS)
    vectors = retriever.embed_passages(PASSAGES)
    for passage, vector in zip(PASSAGES, vectors, strict=True):
        ids, mask = padded([tokenizers()[0].encode(retriever_text(passage)).ids], 0)
        torch.testing.assert_close(vector, bert(ids, mask)[0].mean(dim=0), atol=1e-5, rtol=1e-4)


def test_passages_may_have_an_encoder_of_their_own() -> None:
    both = Retriever(lively_bert(0), tokenizers()[0], max_tokens=MAX_TOKENS, passage_encoder=lively_bert(1))
    tied = Retriever(lively_bert(0), tokenizers()[0], max_tokens=MAX_TOKENS)
    torch.testing.assert_close(both.embed_questions(QUESTIONS), tied.embed_questions(QUESTIONS))
    assert not torch.allclose(both.embed_passages(PASSAGES), tied.embed_passages(PASSAGES))


def test_a_text_may_not_be_longer_than_the_encoder() -> None:
    with pytest.raises(ValueError, match="at most 96"):
        Retriever(lively_bert(), tokenizers()[0], max_tokens=MAX_TOKENS + 1)
