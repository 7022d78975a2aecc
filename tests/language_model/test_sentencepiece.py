"""SentencePiece vocabularies beside SentencePiece itself."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers

from language_model.config import CheckpointError
from language_model.sentencepiece import read_model
from language_model.tokenizer import ByteLevelTokenizer
from tests.support.vocabularies import (
    save_sentencepiece,
    sentencepiece_model,
    sentencepiece_tokenizer,
    small_vocabulary,
)

sentencepiece = pytest.importorskip("sentencepiece")

KINDS = ["bpe", "unigram"]
texts = st.text(st.sampled_from("aé1 .\n🙂 本[]>-A(T▁<x05D/s"), max_size=40) | st.text(max_size=40)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@given(text=texts, kind=st.sampled_from(KINDS))
def test_a_text_is_its_tokens_bytes(text: str, kind: str) -> None:
    tokenizer = sentencepiece_tokenizer(kind)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.decode_prompt(tokenizer.encode_prompt(text)) == text


@given(text=texts.map(lambda text: text.replace("▁", "").replace("<", "")), kind=st.sampled_from(KINDS))
def test_a_prompt_has_sentencepieces_ids(text: str, kind: str) -> None:
    theirs = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model(kind))
    assert sentencepiece_tokenizer(kind).encode_prompt(text) == theirs.encode(text, add_bos=True)


def test_text_that_follows_gets_no_space(kind: str) -> None:
    tokenizer = sentencepiece_tokenizer(kind)
    assert [tokenizer.token_bytes(token) for token in tokenizer.encode(" [")] == [b" ["]
    assert [tokenizer.token_bytes(token) for token in tokenizer.encode("]")] == [b"]"]
    assert len(tokenizer.encode(" ->")) == {"bpe": 1, "unigram": 3}[kind]
    assert tokenizer.written(tokenizer.encode(" [")[0]) == "▁["


def test_names_of_tokens_in_a_text_are_text(kind: str) -> None:
    tokenizer = sentencepiece_tokenizer(kind)
    text = "</s> <s><0x5D> <unk>"
    ids = tokenizer.encode(text)
    assert not tokenizer.special_ids & set(ids)
    assert b"]" not in map(tokenizer.token_bytes, ids)
    assert tokenizer.decode(ids) == text
    assert tokenizer.encode_prompt(text)[0] == tokenizer.special_tokens["<s>"]
    assert not tokenizer.special_ids & set(tokenizer.encode_prompt(text)[1:])


def test_a_character_may_be_several_tokens() -> None:
    tokenizer = sentencepiece_tokenizer()
    assert [tokenizer.token_bytes(token) for token in tokenizer.encode("漢")] == [b"\xe6", b"\xbc", b"\xa2"]


def as_llama_is_published(tokenizer: Tokenizer) -> None:
    """As older files of LLaMA's have it, which is how ours are made."""
    assert tokenizer.normalizer is not None
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])


def as_mistral_is_published(tokenizer: Tokenizer) -> None:
    tokenizer.normalizer = normalizers.Sequence([])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)


def as_gemma_is_published(tokenizer: Tokenizer) -> None:
    """No space before a text."""
    tokenizer.normalizer = normalizers.Replace(" ", "▁")


@pytest.mark.parametrize("publish", [as_llama_is_published, as_mistral_is_published, as_gemma_is_published])
def test_a_tokenizer_json_means_what_its_model_does(publish: object, kind: str, tmp_path: Path) -> None:
    save_sentencepiece(tmp_path, kind)
    backend = read_model(tmp_path / "tokenizer.model")
    publish(backend)  # type: ignore[operator]
    backend.save(str(tmp_path / "tokenizer.json"))
    tokenizer, own = ByteLevelTokenizer.from_pretrained(tmp_path), sentencepiece_tokenizer(kind)
    text = "Peru is [WikiSearch(Peru) -> 漢字] a country.\n"
    assert tokenizer.encode(text) == own.encode(text)
    expected = [1, *own.encode(text)] if publish is as_gemma_is_published else own.encode_prompt(text)
    assert tokenizer.encode_prompt(text) == expected
    assert tokenizer.encode_with_special_tokens(text) == expected


def test_a_configuration_may_leave_the_beginning_out(tmp_path: Path) -> None:
    save_sentencepiece(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"add_bos_token": false}')
    expected = sentencepiece_tokenizer().encode_prompt("Peru")[1:]
    assert ByteLevelTokenizer.from_pretrained(tmp_path).encode_prompt("Peru") == expected


def test_byte_level_prompts_stay_as_they_are() -> None:
    tokenizer = ByteLevelTokenizer(small_vocabulary())
    assert tokenizer.encode_prompt("Peru is") == tokenizer.encode("Peru is")
    assert tokenizer.decode_prompt([0, *tokenizer.encode(" a")]) == "<|endoftext|> a"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"byte_fallback": False}, "not every byte has a piece"),
        ({"normalization_rule_name": "nmt_nfkc"}, "it normalises texts"),
        ({"remove_extra_whitespaces": True}, "it normalises texts"),
    ],
)
def test_a_model_that_cannot_write_every_text_is_refused(
    settings: dict[str, object], said: str, tmp_path: Path
) -> None:
    model = io.BytesIO()
    usual = {"byte_fallback": True, "normalization_rule_name": "identity", "remove_extra_whitespaces": False}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a text"] * 9), model_writer=model, vocab_size=300, hard_vocab_limit=False,
        model_type="bpe", minloglevel=2, **(usual | settings),
    )  # fmt: skip
    (tmp_path / "tokenizer.model").write_bytes(model.getvalue())
    with pytest.raises(CheckpointError, match=said):
        ByteLevelTokenizer.from_pretrained(tmp_path)


def test_a_vocabulary_that_normalises_is_refused(kind: str, tmp_path: Path) -> None:
    save_sentencepiece(tmp_path, kind)
    backend = read_model(tmp_path / "tokenizer.model")
    backend.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(" ", "▁")])
    with pytest.raises(CheckpointError, match="it normalises texts"):
        ByteLevelTokenizer(backend)


def test_other_models_of_that_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_text("IQ== 0\nIg== 1\n")  # as tiktoken writes
    with pytest.raises(CheckpointError, match=r"is no SentencePiece model: put the tokenizer\.json beside it"):
        ByteLevelTokenizer.from_pretrained(tmp_path)
