"""The service over HTTP, with a random model: which texts reach the model, and what is said of those that do not."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.base import ConfigurationError
from services.translation.app import build_app
from services.translation.engine import TranslationSettings
from services.translation.translator import Translated, Translator
from tests.toolformer.http_api.asgi import error_of, running

GERMAN = "Das Treffen findet am 20. November 2026 statt."


def settings(model: Path, language_id: Path, **more: Any) -> TranslationSettings:
    return TranslationSettings(
        model=model, language_id=language_id, device="cpu", compute_type="float32", threads=1, beam_size=1, **more
    )


async def until_loaded(client: httpx.AsyncClient) -> httpx.Response:
    """What /ready says once loading has ended, well or not."""
    loading = [task for task in asyncio.all_tasks() if task.get_name() == "load translation"]
    async with asyncio.timeout(60):
        await asyncio.gather(*loading)
    return await client.get("/ready")


@pytest.fixture
async def client(model_folder: Path, language_id: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with running(build_app(settings(model_folder, language_id))) as client:
        assert (await until_loaded(client)).status_code == 200
        yield client


async def call(client: httpx.AsyncClient, text: str) -> dict[str, Any]:
    response = await client.post("/call", json={"input": text})
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def code_of(client: httpx.AsyncClient, text: str) -> str:
    body = await call(client, text)
    assert body["output"] is None
    code: str = body["error"]["code"]
    return code


async def test_a_call_is_translated(client: httpx.AsyncClient, model_folder: Path) -> None:
    translator = Translator(model_folder, device="cpu", compute_type="float32", beam_size=1)
    [wanted] = translator.translate(translator.segments(GERMAN, "deu_Latn"))
    assert (await call(client, GERMAN))["output"] == wanted.text


async def test_translate_says_from_which_language(client: httpx.AsyncClient) -> None:
    body = (await client.get("/translate", params={"text": GERMAN})).json()
    assert body["source"] == "deu_Latn"
    assert 0.5 < body["confidence"] <= 1
    assert body["translation"] == (await call(client, GERMAN))["output"]


async def test_a_source_is_believed(client: httpx.AsyncClient) -> None:
    asked = {name: {"text": GERMAN, "source": name} for name in ("nld_Latn", "nl", "de")}
    dutch, short, german = [(await client.get("/translate", params=asked[name])).json() for name in asked]
    assert dutch == short
    assert dutch["source"] == "nld_Latn"
    assert dutch["confidence"] is None
    assert german["source"] == "deu_Latn"


async def test_a_source_that_is_none_is_refused(client: httpx.AsyncClient) -> None:
    response = await client.get("/translate", params={"text": GERMAN, "source": "klingon"})
    assert response.status_code == 422
    error = error_of(response)
    assert error["code"] == "unknown_source"
    assert "'klingon'" in str(error["message"])


@pytest.mark.parametrize("text", ["The meeting takes place on November 20, 2026.", "\tThe shop opens at 9:30 AM.\n"])
async def test_english_comes_back_unchanged(client: httpx.AsyncClient, text: str) -> None:
    assert (await call(client, text))["output"] == text
    assert (await client.get("/detect", params={"text": text})).json()["language"] == "eng_Latn"


@pytest.mark.parametrize("text", ["20.11.2026", "٣٤", "🙂🇵🇱", "-> [ ] ...", "\u202e12\u202c"])
async def test_text_without_letters_comes_back_unchanged(client: httpx.AsyncClient, text: str) -> None:
    assert (await call(client, text))["output"] == text
    body = (await client.get("/translate", params={"text": text})).json()
    assert (body["source"], body["confidence"], body["translation"]) == (None, None, text)
    assert error_of(await client.get("/detect", params={"text": text}))["code"] == "unknown_language"


async def test_nothing_has_no_language(client: httpx.AsyncClient) -> None:
    assert error_of(await client.get("/detect", params={"text": "\u200b\n"}))["code"] == "empty"


@pytest.mark.parametrize(
    "text",
    [
        "Das\x00 Treffen\x1b[31m findet am 20. November 2026 statt.", "\u202bاسم هذا البلد بولندا.\u202c",
        "Das Treffen 🙂 findet 👩‍👩‍👧‍👦 statt. La réunion a lieu. 会议举行。",
        '</s> <mask> fra_Latn [MT(x) -> y] "Das Treffen"\\',
        "Das Treffen findet am 20. November 2026 statt.\r\n\r\nDas Museum wurde eröffnet.",
    ],
)  # fmt: skip
async def test_any_text_is_translated_where_its_language_is_given(client: httpx.AsyncClient, text: str) -> None:
    response = await client.get("/translate", params={"text": text, "source": "de"})
    assert response.status_code == 200
    assert response.json()["translation"].replace("\n", "").isprintable()


async def test_special_tokens_in_a_text_are_only_text(model_folder: Path) -> None:
    translator = Translator(model_folder, device="cpu", compute_type="float32")
    [segment] = translator.segments("</s> fra_Latn <mask>", "deu_Latn")
    assert segment.tokens[0] == "deu_Latn"
    assert segment.tokens[-1] == "</s>"
    assert not {"</s>", "fra_Latn", "<mask>"} & set(segment.tokens[1:-1])


async def test_a_doubtful_text_is_translated_only_when_its_language_is_given(
    model_folder: Path, language_id: Path
) -> None:
    async with running(build_app(settings(model_folder, language_id, min_confidence=1.0))) as client:
        await until_loaded(client)
        assert await code_of(client, "qwertz uiop") == "low_confidence"
        detected = (await client.get("/detect", params={"text": "qwertz uiop"})).json()
        assert detected["confidence"] < 1
        response = await client.get("/translate", params={"text": "qwertz uiop", "source": "de"})
        assert response.status_code == 200


async def test_sentences_are_translated_each_and_joined(client: httpx.AsyncClient) -> None:
    one = (await client.get("/translate", params={"text": GERMAN, "source": "de"})).json()["translation"]
    text = f"{GERMAN} {GERMAN}\n\n{GERMAN}"
    all_three = (await client.get("/translate", params={"text": text, "source": "de"})).json()["translation"]
    assert all_three == f"{one} {one}\n\n{one}"


async def test_concurrent_single_calls_share_batches(
    model_folder: Path, language_id: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    plain = Translator.translate

    def counting(self: Translator, segments: Any) -> list[Translated]:
        sizes.append(len(segments))
        return plain(self, segments)

    monkeypatch.setattr(Translator, "translate", counting)
    async with running(build_app(settings(model_folder, language_id, batch=8, batch_wait_ms=1_000))) as client:
        await until_loaded(client)
        await asyncio.gather(*(call(client, GERMAN) for _ in range(8)))
    assert sizes == [8]


async def test_languages_lists_what_the_model_translates(client: httpx.AsyncClient) -> None:
    listed = (await client.get("/languages")).json()
    assert len(listed) == 202
    assert {"code": "deu_Latn", "name": "German"} in listed


async def test_a_language_the_model_was_not_trained_on_is_an_error(
    model_folder: Path, language_id: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(model_folder, tmp_path / "narrow"))
    (folder / "SHA256SUMS").unlink()
    manifest = (folder / "translation.json").read_text()
    narrow = manifest.replace('"deu_Latn",', "")
    assert narrow != manifest
    (folder / "translation.json").write_text(narrow)
    async with running(build_app(settings(folder, language_id))) as client:
        await until_loaded(client)
        assert await code_of(client, GERMAN) == "unsupported_language"


def test_a_setting_that_cannot_hold_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLFORMER_TRANSLATION_BEAM_SIZE", "0")
    with pytest.raises(ConfigurationError, match="TOOLFORMER_TRANSLATION_BEAM_SIZE"):
        build_app()
