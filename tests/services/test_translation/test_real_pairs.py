"""Real pairs in small: published files become pairs, and pairs a model that goes on after a kill."""

import json
import random
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from services.translation.train_dictionary import with_articles
from services.translation.train_exam import Exam
from services.translation.train_model import TranslationRecipe, train_model
from services.translation.train_pairs import Pairs, key, main, prepare, read, write
from services.translation.train_phrasebook import phrasebook
from services.translation.train_pools import PairPools
from services.translation.train_sources import Kind, Pair
from services.translation.train_tokenizer import train_tokenizer

WORDS = "one two three four five six seven eight nine ten".split()  # noqa: SIM905


def english(number: int) -> str:
    return f"The {WORDS[number // 10 % 10]} cats see {WORDS[number % 10]} {WORDS[number // 100]} dogs."


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    """The sources, a few lines each, in the forms in which they are published."""
    real = tmp_path / "real"
    lines = [f"{english(n)}\tKatze {n} sieht Hund.\tCC-BY" for n in range(300)]
    (real / "tatoeba_manythings/deu-eng-2018").mkdir(parents=True)
    with zipfile.ZipFile(real / "tatoeba_manythings/deu-eng-2018/deu-eng.zip", "w") as archive:
        archive.writestr("_about.txt", "about")
        archive.writestr("deu.txt", "\n".join(lines) + "\n")
    tests = real / "opus_testsets/tatoeba/deu-eng/tatoeba-test-v1"
    put(tests.with_suffix(".eng"), "".join(f"{english(n)}\n" for n in (0, 1)) + "Forbidden things.\nGood day\n")
    put(tests.with_suffix(".deu"), "Katze 0 sieht Hund!\nKatze 1 sieht Hunde.\nVerbotene Sache.\nGood day\n")
    put(real / "opus_testsets/tico19/en-zh/tico19-test.en", "Wash your hands.\n")
    put(real / "opus_testsets/tico19/en-zh/tico19-test.zh", "請勤洗手來對抗這個疾病。\n")
    put(real / "pawsx/dev-en.tsv", "He came , saw ( and ) won .\tIt 's big .\t1\n")
    put(real / "pawsx/dev-fr.tsv", "Il vint, vit (et) vainquit.\tNS\t1\n")
    for language, asked in (("en", ["Who?", "Where?"]), ("ru", ["Кто?", "Где?"])):
        questions = [{"id": f"q{number}", "question": text} for number, text in enumerate(asked)]
        put(real / f"xquad/xquad.{language}.json", json.dumps({"data": [{"paragraphs": [{"qas": questions}]}]}))
    put(real / "omw/cili/ili-map-pwn30.tab", "i1\t01-n\ni2\t02-n\ni3\t03-n\n")
    put(
        real / "omw/wns/deu/wn-data-deu.tab",
        "# name\tdeu\n01-n\tdeu:lemma\tHunde\n02-n\tdeu:lemma\tHunde\n03-n\tdeu:lemma\tzwei Worte\n",
    )
    synsets = {1: ["see", "dogs"], 2: ["dogs"], 3: ["cats"]}
    put(
        real / "open_english_wordnet/src/yaml/noun.animal.yaml",
        "".join(f"'{n}':\n  ili: i{n}\n  members: {json.dumps(members)}\n" for n, members in synsets.items()),
    )
    put(tmp_path / "keep/tatoeba.deu-eng.deu", "verbotene Sache\n")
    put(tmp_path / "keep/tatoeba.deu-eng.eng", "Forbidden things.\n")
    put(tmp_path / "lama/test.jsonl", json.dumps({"id": "q0_1"}) + "\n")
    return {"real": real, "keep_out": tmp_path / "keep", "lama": tmp_path / "lama"}


def test_sources_become_clean_pairs_split_by_english(folders: dict[str, Path], tmp_path: Path) -> None:
    pairs = prepare(**folders)
    train, exam = ({(pair.text, pair.english) for pair in part} for part in (pairs.train, pairs.exam))
    assert len(exam) > 2
    assert not {key(text) for _, text in train} & {key(text) for _, text in exam}
    assert not {key(text) for text, _ in train} & {key(text) for text, _ in exam}
    assert all(pair.kind == "sentence" for pair in pairs.exam)
    assert not any("erbotene" in text for text, _ in train | exam)
    assert not any(text in ("Good day", "Кто?") for text, _ in train | exam)
    assert sum(text.startswith("Katze 0 ") for text, _ in train | exam) == 1
    documents = {pair.language: (pair.text, pair.english) for pair in pairs.train if pair.kind == "document"}
    assert documents["zho_Hant"][1] == "Wash your hands."
    assert documents["fra_Latn"] == ("Il vint, vit (et) vainquit.", "He came, saw (and) won.")
    assert documents["rus_Cyrl"] == ("Где?", "Where?")
    assert [(pair.text, pair.english) for pair in pairs.train if pair.kind == "word"] == [("Hunde", "dogs")]

    counts = write(pairs, tmp_path / "out")
    assert counts["digest"] == Pairs(read(tmp_path / "out/train.tsv"), read(tmp_path / "out/exam.tsv")).digest()
    assert prepare(**folders).digest() == counts["digest"]


@pytest.mark.parametrize("missing", ["real/pawsx", "keep", "lama"])
def test_a_missing_source_is_named(missing: str, folders: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / missing).rename(tmp_path / "elsewhere")
    options = [part for name, path in folders.items() for part in (f"--{name.replace('_', '-')}", str(path))]
    with pytest.raises(SystemExit, match=missing):
        main([*options, "--out", str(tmp_path / "out")])


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    german = [Pair("sentence", "deu_Latn", f"Katze {n} sieht l'eau.", english(n)) for n in range(300)]
    russian = [Pair("sentence", "rus_Cyrl", f"Кот {n} видит.", english(n)) for n in range(30)]
    return [*german, *russian, Pair("word", "deu_Latn", "Hund", "dog")]


@pytest.fixture(scope="module")
def tokenizer(pairs: list[Pair]) -> Tokenizer:
    return train_tokenizer(600, (text for pair in pairs for text in (pair.text, pair.english)), spell=True)


@pytest.mark.parametrize("text", ["l'eau, don't (ok) 3.14 €5", "Zażółć ǁ 😀 谢谢", "¿Dónde está?"])
def test_nothing_is_unknown_to_a_tokenizer_that_spells(tokenizer: Tokenizer, text: str) -> None:
    encoded = tokenizer.encode(text, add_special_tokens=False)
    assert "<unk>" not in encoded.tokens
    assert tokenizer.decode(encoded.ids, skip_special_tokens=True) == text


def recipe() -> TranslationRecipe:
    return TranslationRecipe(
        vocabulary=600, width=16, feed_forward=32, heads=2, encoder_layers=1, decoder_layers=1, positions=128,
        dropout=0.1, label_smoothing=0.1, steps=8, batch_tokens=2_000, lexicon_share=0.1, phrase_share=0.01,
        temperature=2.0, plain_share=0.1, warmup_steps=2, cooldown_steps=3,
    )  # fmt: skip


def test_a_pool_draws_each_language_by_its_share_and_fills_its_batches(tokenizer: Tokenizer, pairs: list[Pair]) -> None:
    batches = PairPools(recipe(), tokenizer, pairs).batches(1)
    assert batches == PairPools(recipe(), tokenizer, pairs).batches(1)
    assert max(2 * max(map(len, (*row,))) * len(batch) for batch in batches for row in batch) <= 2_000
    rows = [source for batch in batches for source, _ in batch]
    russian = sum(source[0] == tokenizer.token_to_id("rus_Cyrl") for source in rows) / len(rows)
    assert russian == pytest.approx(0.89 * 30**0.5 / (30**0.5 + 300**0.5), abs=0.02)


def test_the_rate_falls_at_the_end_that_was_chosen() -> None:
    short, long = replace(recipe(), steps=100), replace(recipe(), steps=200)
    assert short.rate_at(50) == long.rate_at(50) == long.rate_at(150) > long.rate_at(199) > long.rate_at(200) == 0
    assert short.rate_at(100) == 0


def test_the_rate_of_a_run_by_the_clock_rises_and_falls() -> None:
    rates = [TranslationRecipe(rate=1.0).rate_by_clock(share) for share in (0, 0.01, 0.02, 0.5, 0.75, 1, 1.1)]
    assert rates == [0, 0.5, 1, 1, 0.5, 0, 0]


def test_a_word_is_also_learned_with_the_article_of_its_sentences() -> None:
    def pair(kind: Kind, language: str, text: str, english: str) -> Pair:
        return Pair(kind, language, text, english)

    words = [
        pair("word", "spa_Latn", "tortuga", "turtle"), pair("word", "spa_Latn", "ver", "see"),
        pair("word", "fra_Latn", "tortuga", "turtle"), pair("word", "spa_Latn", "sol", "sun"),
    ]  # fmt: skip
    sentences = [
        pair("sentence", "spa_Latn", text, "")
        for text in ("Una tortuga nada.", "Veo la tortuga.", "El sol.", "Quiero ver el sol, la ver")
    ]
    assert list(with_articles(words, sentences)) == [
        pair("word", "spa_Latn", "la tortuga", "the turtle"), pair("word", "spa_Latn", "el sol", "the sun"),
    ]  # fmt: skip


def test_the_phrasebook_has_words_with_their_article_and_bare_and_phrases_as_sentences_too() -> None:
    found = {(pair.language, pair.text): pair.english for pair in phrasebook()}
    assert found["spa_Latn", "la tortuga"] == "the turtle"
    assert found["spa_Latn", "tortuga"] == "turtle"
    assert found["fra_Latn", "l'eau"] == "the water"
    assert found["hin_Deva", "कछुआ"] == "turtle"
    assert found["por_Latn", "obrigado"] == "thank you"
    assert found["deu_Latn", "guten Morgen"] == "good morning"
    assert found["deu_Latn", "Guten Morgen"] == "Good morning"
    assert found["deu_Latn", "Guten Morgen."] == "Good morning."
    assert found["spa_Latn", "¿Cómo estás?"] == "How are you?"
    assert found["zho_Hans", "谢谢。"] == "Thank you."


def test_the_phrasebook_is_trained_on_in_place_of_a_dictionary_and_drawn_by_its_share(
    folders: dict[str, Path], tokenizer: Tokenizer
) -> None:
    put(folders["real"] / "omw/wns/deu/wn-data-deu.tab", "01-n\tdeu:lemma\tHund\n02-n\tdeu:lemma\tHunde\n")
    train = prepare(**folders).train
    assert [(pair.kind, pair.english) for pair in train if pair.text == "Hund"] == [("phrase", "dog")]
    drawn = replace(recipe(), phrasebook_share=0.25, phrase_share=0.0, temperature=1.0)
    rows = [row for batch in PairPools(drawn, tokenizer, train).batches(0) for row in batch]
    vietnamese = sum(source[0] == tokenizer.token_to_id("vie_Latn") for source, _ in rows) / len(rows)
    phrases = [pair for pair in train if pair.kind == "phrase"]
    expected = 0.25 * sum(pair.language == "vie_Latn" for pair in phrases) / len(phrases)
    assert vietnamese == pytest.approx(expected, abs=0.005)


def test_a_run_that_was_broken_off_ends_as_if_it_had_not_been(
    tokenizer: Tokenizer, pairs: list[Pair], tmp_path: Path
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    torch.set_num_threads(1)
    pools = PairPools(recipe(), tokenizer, pairs)
    exam = Exam(tokenizer, random.Random(0).sample(pairs, 4))
    expected = train_model(recipe(), tokenizer, whole, pools, examine=exam, examine_every=5).state_dict()
    train_model(replace(recipe(), steps=20), tokenizer, broken, pools, stop_after=3)
    resumed = train_model(recipe(), tokenizer, broken, pools, checkpoint_seconds=0).state_dict()
    assert all(torch.equal(expected[name], resumed[name]) for name in expected)
