"""The bundled model declines what it does not know, and still translates what it does."""

from pathlib import Path

import pytest

from demo_world.phrases import LANGUAGES, phrases
from services.translation.app import build_app
from services.translation.engine import BUNDLED, TranslationSettings
from services.translation.evaluate import SEED, share_declined
from services.translation.translator import UNKNOWN, Segment, Translator
from tests.services.test_translation.test_app import until_loaded
from tests.toolformer.http_api.asgi import error_of, running

LINES = Path(__file__).with_name("unknown.tsv").read_text(encoding="utf-8").splitlines()
TEXTS = [(language, text) for language, _, text in (line.partition("\t") for line in LINES)]


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator(BUNDLED, device="cpu", threads=1)


def test_most_nonsense_is_declined_and_few_phrases_are_lost(translator: Translator) -> None:
    assert share_declined(translator, TEXTS) >= 0.75
    known = [(language, one.text) for language in LANGUAGES for one in phrases(language, 10, SEED, held_out=True)]
    assert share_declined(translator, known) <= 0.06


def test_a_token_that_the_vocabulary_lacks_costs_its_share(translator: Translator) -> None:
    [segment] = translator.segments("Heute ist Freitag.", "deu_Latn")
    [known, unknown] = translator.translate([segment, Segment((*segment.tokens[:-2], UNKNOWN, segment.tokens[-1]))])
    assert known.score > 0.95
    assert unknown.score < 1 - 1 / len(segment.tokens)


async def test_the_threshold_is_the_models_unless_a_setting_says_another() -> None:
    text = "Der Hund bellt laut."
    async with running(build_app(TranslationSettings(threads=1))) as client:
        await until_loaded(client)
        response = await client.post("/call", json={"input": text})
        assert response.status_code == 200
        body = response.json()
        assert (body["output"], body["error"]["code"]) == (None, "no_answer")
        assert "of 0.94" in body["error"]["message"]
        typed = await client.get("/translate", params={"text": text})
        assert (typed.status_code, error_of(typed)["code"]) == (422, "no_answer")
    async with running(build_app(TranslationSettings(threads=1, min_score=0))) as client:
        await until_loaded(client)
        assert (await client.post("/call", json={"input": text})).json()["output"]


async def test_one_unsure_sentence_of_several_declines_the_text() -> None:
    async with running(build_app(TranslationSettings(threads=1))) as client:
        await until_loaded(client)
        good = "Heute ist Freitag, der 20. November 2026."
        assert (await client.post("/call", json={"input": good})).json()["output"]
        mixed = (await client.post("/call", json={"input": f"{good} Der Hund bellt laut."})).json()
        assert mixed["error"]["code"] == "no_answer"
