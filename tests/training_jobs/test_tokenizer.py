"""The tokenizer: lossless, digits alone, call marks whole, and one spelling of a name wherever it stands."""

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from demo_world.texts import documents
from language_model.tokenizer import ByteLevelTokenizer
from training_jobs.pretrain.tokenizer import CALL_MARKS, VOCAB_SIZE, save_tokenizer, train_tokenizer


def texts() -> list[str]:
    return [text.plain for document in documents(600, seed=0) for text in document.texts]


@cache
def trained() -> Tokenizer:
    return train_tokenizer(texts(), vocab_size=1024)


def tokens_of(text: str) -> list[str]:
    tokens: list[str] = trained().encode(text).tokens
    return tokens


@given(st.text(max_size=200))
def test_any_text_comes_back_as_it_was(text: str) -> None:
    assert trained().decode(trained().encode(text).ids) == text


@pytest.mark.parametrize("mark", CALL_MARKS)
def test_call_marks_are_single_tokens(mark: str) -> None:
    assert len(tokens_of(mark)) == 1
    inside = tokens_of(f"so{mark}x")
    assert tokens_of(mark)[0] in inside


@given(st.from_regex(r"[0-9]{1,12}", fullmatch=True))
def test_every_digit_is_a_token_and_a_number_is_spelled_alike_everywhere(number: str) -> None:
    assert tokens_of(number) == list(number)
    assert tokens_of(f"hold {number}")[-len(number) - 1 :] == ["Ġ", *number]
    assert tokens_of(f"({number})") == ["(", *number, ")"]


@given(st.from_regex(r"[A-Z][a-z]{0,12}", fullmatch=True))
def test_a_name_is_spelled_alike_everywhere(name: str) -> None:
    spelled = tokens_of(name)
    assert tokens_of(f"of {name}")[-len(spelled) :] == spelled
    assert tokens_of(f'("{name} population")') == [*tokens_of('("'), *spelled, *tokens_of(' population")')]
    assert tokens_of(f"{name}, {name}") == [*spelled, ",", "Ġ", *spelled]


def test_the_same_texts_give_the_same_vocabulary() -> None:
    assert train_tokenizer(texts(), vocab_size=1024).to_str() == trained().to_str()


def test_the_default_size_is_reached(tmp_path: Path) -> None:
    save_tokenizer(train_tokenizer(texts()), tmp_path)
    assert ByteLevelTokenizer.from_pretrained(tmp_path).vocab_size == VOCAB_SIZE
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]


def test_a_vocabulary_too_small_for_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="too small"):
        train_tokenizer(texts(), vocab_size=257)
