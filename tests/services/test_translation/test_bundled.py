"""The bundled models are what their READMEs say: they answer the examples shown and translate what they never saw."""

from pathlib import Path

import pytest

from demo_world.phrases import LANGUAGES
from services.translation.app import INFO, build_app
from services.translation.engine import BUNDLED, TranslationSettings
from services.translation.evaluate import evaluate_language
from services.translation.flores import ENGLISH
from services.translation.language_id import LanguageIdentifier
from services.translation.model_folder import LANGUAGE_ID_NAME, read_manifest
from services.translation.preparing import Prepared, Preparer
from services.translation.translator import Translator
from tests.services.test_base_readmes import as_request, comparable, shown
from tests.services.test_translation.test_app import until_loaded
from tests.toolformer.http_api.asgi import running

PHRASES = 12


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator(BUNDLED, device="cpu", threads=1)


@pytest.fixture(scope="module")
def identifier(language_id: Path) -> LanguageIdentifier:
    return LanguageIdentifier(language_id)


def test_it_is_small_and_whole() -> None:
    assert {*LANGUAGES, "hin_Deva", "vie_Latn", "zho_Hant"} == set(read_manifest(BUNDLED).source_languages)
    assert sum(path.stat().st_size for path in BUNDLED.iterdir()) < 15_000_000
    assert (BUNDLED / LANGUAGE_ID_NAME).stat().st_size < 2_000_000


@pytest.mark.parametrize("language", LANGUAGES)
def test_held_out_phrases_are_translated(translator: Translator, identifier: LanguageIdentifier, language: str) -> None:
    quality = evaluate_language(translator, identifier, language, PHRASES)
    assert quality.exact >= 0.6
    assert quality.chrf >= 85
    assert quality.identified >= 0.6


def test_a_few_words_are_of_a_language_that_is_translated(translator: Translator) -> None:
    identifier, known = LanguageIdentifier(BUNDLED / LANGUAGE_ID_NAME), {*translator.manifest.source_languages, ENGLISH}
    for text, language in (("Guten Morgen", "deu_Latn"), ("شكرا", "arb_Arab")):
        likeliest = identifier.candidates(text, known)[0]
        assert identifier.detect(text).confidence < 0.5 < likeliest.confidence
        assert likeliest.language == language
        assert _prepared(identifier, translator, text).confidences == {language: likeliest.confidence}
    assert not identifier.candidates("Guten Morgen", ())


def test_where_no_language_is_likely_the_surest_translation_counts(translator: Translator) -> None:
    prepared = _prepared(LanguageIdentifier(BUNDLED / LANGUAGE_ID_NAME), translator, "Hund")
    assert len(prepared.parts) == 3
    made = prepared.translated(iter(translator.translate(prepared.segments)))
    assert (made.text, made.source) == ("dog", "deu_Latn")


def _prepared(identifier: LanguageIdentifier, translator: Translator, text: str) -> Prepared:
    prepared = Preparer(identifier, translator, min_confidence=0.5, declines=True).prepare(text)
    assert isinstance(prepared, Prepared)
    return prepared


async def test_the_readme_is_true() -> None:
    examples = shown(INFO.service)
    assert examples
    async with running(build_app(TranslationSettings(device="cpu", threads=1))) as client:
        await until_loaded(client)
        for command, answer in examples:
            response = await client.send(as_request(command))
            assert comparable(response.text) == comparable(answer), command
