"""Parallel phrases: the same slots in every language, nothing of babel's own in them, a split by what is said."""

import itertools
import re
import string

import pytest
from babel import Locale

from demo_world.phrases import ENGLISH_CODE, LANGUAGES, WORDINGS, Composition, compositions, lexicon, phrases
from demo_world.phrases_values import KINDS, NAMES

SOME = 400
SCRIPTS = {
    "Cyrl": r"[А-Яа-яЁё]",
    "Hans": r"[\u4e00-\u9fff]",
    "Jpan": r"[\u3040-\u30ff\u4e00-\u9fff]",
    "Arab": r"[\u0600-\u06ff]",
    "Latn": r"[A-Za-z]",
}


def some(*, held_out: bool, seed: int = 0) -> list[Composition]:
    return list(itertools.islice(compositions(seed, held_out=held_out), SOME))


def slots(pattern: str) -> list[str]:
    return sorted(name for _, name, _, _ in string.Formatter().parse(pattern) if name)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_says_every_meaning_with_the_same_slots(language: str) -> None:
    said, english = (WORDINGS[code].patterns for code in (language, ENGLISH_CODE))
    assert {meaning: slots(said[meaning]) for meaning in said} == {one: slots(english[one]) for one in english}
    assert "{foreign}" in WORDINGS[language].who_wrote


def test_there_are_at_least_ten_languages() -> None:
    assert len(LANGUAGES) >= 10
    assert set(WORDINGS) == {*LANGUAGES, ENGLISH_CODE}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_phrase_is_in_its_languages_script_and_complete(language: str) -> None:
    script = SCRIPTS[language.split("_")[1]]
    for composition in some(held_out=False):
        phrase = composition.phrase(language)
        assert phrase.language == language
        assert re.search(script, phrase.text)
        for text in (phrase.text, phrase.english):
            assert not re.search(r"[{}]|\.\.|\w-\w+-\w+-\w+-|  ", text), text
        assert not set(phrase.english) & {"\u00a0", "\u202f"}


@pytest.mark.parametrize("language", sorted(WORDINGS))
def test_every_value_is_shown_in_words_of_the_language(language: str) -> None:
    locale = Locale.parse(WORDINGS[language].locale)
    for composition in some(held_out=False, seed=1):
        for name, value in composition.slots:
            text = KINDS[name.rstrip(string.digits)].show(value, locale)
            assert text
            assert not re.search(r"[a-z]+-(?:centi|milli|kilo)?(?:meter|liter|gram|hour|minute|hectare)", text), text


def test_the_sides_of_the_split_have_nothing_in_common() -> None:
    trained, held_out = some(held_out=False), some(held_out=True)
    assert not any(composition.held_out for composition in trained)
    assert all(composition.held_out for composition in held_out)
    assert not set(trained) & set(held_out)


def test_a_tenth_is_held_out() -> None:
    drawn = [*some(held_out=False, seed=5)]
    again = itertools.islice(compositions(5, held_out=True), 40)
    assert len(set(drawn)) > SOME * 0.9
    assert len(set(again)) >= 38


def test_a_seed_draws_the_same_and_another_draws_others() -> None:
    assert some(held_out=True, seed=3) == some(held_out=True, seed=3)
    assert some(held_out=True, seed=3) != some(held_out=True, seed=4)


def test_phrases_are_different_and_of_one_language() -> None:
    found = phrases("pol_Latn", 100, 2, held_out=True)
    assert len({phrase.text for phrase in found}) == 100
    assert {phrase.language for phrase in found} == {"pol_Latn"}


def test_phrases_of_one_seed_say_the_same_in_all_languages() -> None:
    english = {tuple(phrase.english for phrase in phrases(language, 30, 2, held_out=True)) for language in LANGUAGES}
    assert len(english) == 1


def test_a_language_without_patterns_is_refused() -> None:
    with pytest.raises(KeyError):
        phrases("kor_Hang", 1, 0, held_out=True)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_lexicon_has_every_name(language: str) -> None:
    entries = list(lexicon(language))
    assert len(entries) == sum(len(names) for names in NAMES.values())
    assert all(entry.text and entry.english for entry in entries)


def test_known_phrases() -> None:
    """What CLDR makes of one composition, checked by hand."""
    composition = Composition("flight", (("duration", (5, "duration-hour")),))
    said = {language: composition.phrase(language).text for language in ("pol_Latn", "nld_Latn", "jpn_Jpan")}
    assert said == {
        "pol_Latn": "Lot trwa 5 godzin.",
        "nld_Latn": "De vlucht duurt 5 uur.",
        "jpn_Jpan": "飛行時間は5 時間です。",
    }
    assert composition.phrase("rus_Cyrl").english == "The flight takes 5 hours."
