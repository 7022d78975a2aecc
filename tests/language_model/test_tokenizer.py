"""Long texts: encoded while other threads go on, and known to be too long before they are encoded."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from language_model.tokenizer import ByteLevelTokenizer
from tests.support.vocabularies import small_tokenizer
from toolformer.model_files.home import BUNDLED_MODELS


def test_other_threads_go_on_while_a_long_text_is_encoded() -> None:
    tokenizer = small_tokenizer()
    with ThreadPoolExecutor(1) as pool:
        encoding = pool.submit(tokenizer.encode, "1" * 400_000)
        turns = 0
        while not encoding.done():
            time.sleep(0.001)
            turns += 1
    assert turns > 5  # with Python's lock held, one or two
    assert tokenizer.decode(encoding.result()) == "1" * 400_000


@pytest.mark.parametrize("text", ["the cat sat on the mat. " * 400, "é\u2028🙂" * 3_000, " " * 9_000])
def test_long_texts_have_the_ids_that_short_ones_have(text: str) -> None:
    tokenizer = small_tokenizer()
    assert tokenizer.encode(text) == tokenizer._backend.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("text", ["", "a", "the cat sat on the mat", "é\u2028🙂" * 50, " " * 300, "\n" * 77])
def test_no_text_has_fewer_tokens_than_reported(text: str) -> None:
    tokenizer = small_tokenizer()
    fewest = tokenizer.fewest_tokens(text)
    assert fewest <= len(tokenizer.encode(text))
    assert (fewest > 0) == bool(text)


def test_a_vocabulary_that_may_leave_text_out_reports_nothing() -> None:
    backend = Tokenizer(models.BPE(vocab={"a": 0, "[": 1, "]": 2, "-": 3, ">": 4}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.normalizer = normalizers.Strip()
    assert ByteLevelTokenizer(backend).fewest_tokens(" " * 1_000) == 0


def test_a_vocabulary_may_put_a_mark_before_a_prompt() -> None:
    bundled = ByteLevelTokenizer.from_pretrained(BUNDLED_MODELS / "gptj-tools")
    ids = bundled.encode_prompt("Peru is")
    assert ids == [0, *bundled.encode("Peru is")] == bundled.encode_with_special_tokens("Peru is")
    assert bundled.decode_prompt(ids) == bundled.decode_prompt(ids[1:]) == bundled.decode_names(ids) == "Peru is"
    assert bundled.encode_prompt("") == [0]
