"""The bundled model's job, in small: it learns, goes on after a kill as if there had been none, and its end serves."""

import json
import logging
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from demo_world.phrases import LANGUAGES, phrases
from services.translation.convert import convert
from services.translation.evaluate import (
    evaluate_language,
    evaluate_pairs,
    identified_in_tatoeba,
    measure_throughput,
    min_score,
    without_sense,
)
from services.translation.flores import ENGLISH
from services.translation.flores import LANGUAGES as NAMES
from services.translation.language_id import LanguageIdentifier
from services.translation.train_model import EOS, TranslationRecipe, encode, save_checkpoint, train_model
from services.translation.train_pools import PairPools
from services.translation.train_sources import Pair
from services.translation.train_tokenizer import MASK, SPECIALS, phrase_texts, save_tokenizer, train_tokenizer
from services.translation.translator import Translator

RECIPE = TranslationRecipe(
    vocabulary=2_600, width=16, feed_forward=32, heads=2, encoder_layers=1, decoder_layers=1, positions=128,
    steps=12, batch_tokens=400, warmup_steps=2, cooldown_steps=10, optimizer="adamw", precision="float32",
)  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(RECIPE.vocabulary, phrase_texts(RECIPE.seed, 400))


def test_the_tokenizer_has_nllbs_layout(tokenizer: Tokenizer) -> None:
    assert [tokenizer.id_to_token(number) for number in range(4)] == list(SPECIALS)
    size = tokenizer.get_vocab_size()
    last = [tokenizer.id_to_token(number) for number in range(size - len(NAMES) - 1, size)]
    assert last == [*NAMES, MASK]


def pools(recipe: TranslationRecipe, tokenizer: Tokenizer) -> PairPools:
    """Phrases of the generated world as pairs."""
    drawn = [one for language in LANGUAGES for one in phrases(language, 40, 2, held_out=False)]
    return PairPools(recipe, tokenizer, [Pair("sentence", one.language, one.text, one.english) for one in drawn])


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_phrase_survives_the_tokenizer(tokenizer: Tokenizer, language: str) -> None:
    for phrase in phrases(language, 20, 1, held_out=True):
        ids = encode(tokenizer, language, phrase.english)
        assert (ids[0], ids[-1]) == (tokenizer.token_to_id(language), EOS)
        assert tokenizer.decode(ids, skip_special_tokens=True) == phrase.english


def test_a_number_is_read_digit_by_digit(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("38.123", add_special_tokens=False).tokens == ["▁", "3", "8", ".", "1", "2", "3"]


def test_a_language_without_a_token_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(ValueError, match="xxx_Latn"):
        encode(tokenizer, "xxx_Latn", "text")


def test_a_run_that_was_broken_off_ends_as_if_it_had_not_been(tokenizer: Tokenizer, tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    torch.set_num_threads(1)
    drawn = pools(RECIPE, tokenizer)
    expected = train_model(RECIPE, tokenizer, whole, drawn).state_dict()
    train_model(RECIPE, tokenizer, broken, drawn, stop_after=7)
    resumed = train_model(RECIPE, tokenizer, broken, drawn).state_dict()
    assert all(torch.equal(expected[name], resumed[name]) for name in expected)


def test_products_in_bfloat16_learn_as_well(tokenizer: Tokenizer, tmp_path: Path) -> None:
    def losses(recipe: TranslationRecipe) -> list[float]:
        run = tmp_path / recipe.precision
        run.mkdir()
        model = train_model(recipe, tokenizer, run, pools(recipe, tokenizer))
        assert {weight.dtype for weight in model.parameters()} == {torch.float32}
        return [json.loads(line)["loss"] for line in (run / "loss.jsonl").read_text().splitlines()]

    assert losses(replace(RECIPE, precision="bfloat16")) == pytest.approx(losses(RECIPE), abs=0.05)


def test_a_run_of_another_recipe_is_not_gone_on_with(tokenizer: Tokenizer, tmp_path: Path) -> None:
    drawn = pools(RECIPE, tokenizer)
    train_model(RECIPE, tokenizer, tmp_path, drawn, stop_after=1)
    with pytest.raises(ValueError, match="another recipe"):
        train_model(replace(RECIPE, seed=1), tokenizer, tmp_path, drawn)


def test_a_run_ends_by_the_clock_and_is_not_gone_on_with(tokenizer: Tokenizer, tmp_path: Path) -> None:
    drawn, endless = pools(RECIPE, tokenizer), replace(RECIPE, steps=1_000_000)
    train_model(endless, tokenizer, tmp_path, drawn, seconds=0.01)
    assert len((tmp_path / "loss.jsonl").read_text().splitlines()) == 1
    with pytest.raises(ValueError, match="by the clock"):
        train_model(endless, tokenizer, tmp_path, drawn, seconds=0.01)


@pytest.mark.slow
def test_the_loss_falls_and_the_model_serves(
    tokenizer: Tokenizer, tmp_path: Path, language_id: Path, caplog: pytest.LogCaptureFixture
) -> None:
    torch.set_num_threads(1)
    recipe = replace(RECIPE, steps=100, rate=1e-2)
    with caplog.at_level(logging.INFO):
        model = train_model(recipe, tokenizer, tmp_path, pools(recipe, tokenizer))
    losses = [float(record.args[2]) for record in caplog.records if "loss" in record.msg]  # type: ignore[index,arg-type]
    assert losses[-1] < losses[0] - 0.5

    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    save_tokenizer(tokenizer, checkpoint)
    save_checkpoint(model, checkpoint)
    convert(str(checkpoint), tmp_path / "converted", languages=LANGUAGES)
    translator = Translator(tmp_path / "converted", device="cpu", threads=1)
    assert translator.manifest.source_languages == LANGUAGES
    quality = evaluate_language(translator, LanguageIdentifier(language_id), "deu_Latn", 4)
    assert 0 <= quality.exact <= 1
    assert 0 <= quality.chrf <= 100
    assert quality.identified > 0
    assert len(quality.wrong) == round((1 - quality.exact) * 4)
    pairs = [Pair("sentence", "deu_Latn", one.text, one.english) for one in phrases("deu_Latn", 6, 1, held_out=True)]
    found = evaluate_pairs(translator, LanguageIdentifier(language_id), pairs)
    assert re.fullmatch(r"[\d.]+( \(μ = [\d.]+ ± [\d.]+\))?", found.bleu)
    assert (found.pairs, found.identified) == (6, 1)
    assert 0 <= found.declined <= 1
    assert 0 <= found.nonsense_declined <= 1
    assert 0 <= min_score(translator, pairs, 0.5) <= min_score(translator, pairs, 1.0) <= 1
    speed = measure_throughput(translator, batch=4, count=12)
    assert min(speed.one_by_one, speed.batched) > 0


def test_lines_of_files_named_like_tatoebas_are_counted(language_id: Path, tmp_path: Path) -> None:
    (tmp_path / "tatoeba.deu-eng.deu").write_text("Das Museum wurde eröffnet.\nThe museum was opened.\n")
    (tmp_path / "tatoeba.deu-eng.eng").write_text("The museum was opened on November 20, 2026.\n")
    (tmp_path / "README").write_text("no sentences")
    identifier = LanguageIdentifier(language_id)
    assert identified_in_tatoeba(identifier, tmp_path) == {"deu_Latn": (1, 2), ENGLISH: (1, 1)}
    with pytest.raises(FileNotFoundError, match="holds no files"):
        identified_in_tatoeba(identifier, tmp_path.parent)


def test_a_text_without_sense_has_the_letters_of_each_word() -> None:
    made = without_sense("Wo ist der Bahnhof?", random.Random(0))
    assert [sorted(word) for word in made.split()] == [sorted(word) for word in ["Wo", "ist", "der", "Bahnhof?"]]
    assert made != "Wo ist der Bahnhof?"
