"""The bundled model declines what has no sense, and still translates what has."""

import random
from pathlib import Path

import pytest

from services.translation.app import build_app
from services.translation.engine import BUNDLED, TranslationSettings
from services.translation.evaluate import share_declined, without_sense
from services.translation.translator import UNKNOWN, Segment, Translator
from tests.services.test_translation.test_app import until_loaded
from tests.toolformer.http_api.asgi import error_of, running

LINES = Path(__file__).with_name("everyday.tsv").read_text(encoding="utf-8").splitlines()
NONSENSE = "Die Schnurzel grumpften leise im Wabbelhaus."
EVERYDAY = [(language, text) for language, _, text in (line.partition("\t") for line in LINES)]
NO_PAIRS = {"jpn_Jpan", "pol_Latn", "tur_Latn"}
"""Languages of which the model knows only dates, numbers and the like."""


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator(BUNDLED, device="cpu", threads=1)


def test_most_nonsense_is_declined_and_few_phrases_are_lost(translator: Translator) -> None:
    rng = random.Random(0)
    known = [(language, text) for language, text in EVERYDAY if language not in NO_PAIRS and len(text.split()) > 2]
    assert share_declined(translator, [(language, without_sense(text, rng)) for language, text in known]) >= 0.75
    assert share_declined(translator, known) <= 0.35


def test_a_token_that_the_vocabulary_lacks_costs_its_share(translator: Translator) -> None:
    [segment] = translator.segments("Heute ist Freitag, der 20. November 2026.", "deu_Latn")
    [known, unknown] = translator.translate([segment, Segment((*segment.tokens[:-2], UNKNOWN, segment.tokens[-1]))])
    assert known.score > 0.75
    assert unknown.score < 1 - 1 / len(segment.tokens)


async def test_the_threshold_is_the_models_unless_a_setting_says_another(translator: Translator) -> None:
    text = NONSENSE
    async with running(build_app(TranslationSettings(threads=1))) as client:
        await until_loaded(client)
        response = await client.post("/call", json={"input": text})
        assert response.status_code == 200
        body = response.json()
        assert (body["output"], body["error"]["code"]) == (None, "no_answer")
        assert f"of {translator.manifest.min_score:g})" in body["error"]["message"]
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
        mixed = (await client.post("/call", json={"input": f"{good} {NONSENSE}"})).json()
        assert mixed["error"]["code"] == "no_answer"
