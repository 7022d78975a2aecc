"""Which backend the settings choose, and what is said of settings that do not go together."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from inference_gateway.backends.loading import backend_loader, end_ids
from inference_gateway.backends.remote import RemoteBackend
from inference_gateway.settings import GatewaySettings, SettingsError
from language_model.config import CheckpointError
from tests.support.vocabularies import save_small_tokenizer, small_tokenizer


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    """A directory without weights, as a gateway before a model server needs it."""
    save_small_tokenizer(tmp_path)
    return tmp_path


@pytest.mark.parametrize("backend", ["openai", "tgi"])
async def test_a_remote_backend_needs_no_weights(backend: str, tokenizer: Path) -> None:
    (tokenizer / "key").write_text("sesame\n")
    settings: dict[str, Any] = {"backend": backend, "backend_url": "http://127.0.0.1:9", "model": tokenizer}
    loaded = backend_loader(GatewaySettings(**settings, backend_api_key_file=tokenizer / "key", model_name="mine"))()
    assert isinstance(loaded, RemoteBackend)
    assert loaded.model_name == "mine"
    assert not loaded.ready()
    await loaded.stop()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"backend_url": None}, "TOOLFORMER_GATEWAY_BACKEND_URL is missing"),
        ({"model": Path("/nowhere")}, "/nowhere holds no tokenizer.json"),
        ({"backend_api_key_file": Path("/nowhere")}, "BACKEND_API_KEY_FILE: /nowhere cannot be read"),
        ({"backend_api_key": "a", "backend_api_key_file": Path("b")}, "TOOLFORMER_GATEWAY_BACKEND_API_KEY is set too"),
    ],
)
def test_what_does_not_go_together_is_named(tokenizer: Path, fields: dict[str, Any], message: str) -> None:
    settings: dict[str, Any] = {"backend": "openai", "backend_url": "http://127.0.0.1:9", "model": tokenizer}
    with pytest.raises(SettingsError, match=message):
        backend_loader(GatewaySettings(**settings | fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dtype": "int8"}, "TOOLFORMER_GATEWAY_DTYPE: int8 is packed by the local engine"),
        ({"model": Path("/nowhere")}, "/nowhere holds no checkpoint"),
        pytest.param(
            {},
            "TOOLFORMER_GATEWAY_BACKEND=vllm: the package vllm is not installed",
            marks=pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed"),
        ),
    ],
)
def test_what_vllm_cannot_be_asked_for_is_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        backend_loader(GatewaySettings(**{"backend": "vllm"} | fields))


def test_an_empty_key_file_is_no_key(tokenizer: Path) -> None:
    (tokenizer / "key").touch()
    settings: dict[str, Any] = {"backend": "openai", "backend_url": "http://127.0.0.1:9", "model": tokenizer}
    with pytest.raises(SettingsError, match="is empty"):
        backend_loader(GatewaySettings(**settings, backend_api_key_file=tokenizer / "key"))


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://127.0.0.1", "http://user:word@127.0.0.1"])
def test_an_address_is_one_of_http_without_a_password(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLFORMER_GATEWAY_BACKEND_URL", url)
    with pytest.raises(SettingsError, match="TOOLFORMER_GATEWAY_BACKEND_URL"):
        GatewaySettings.read()


def test_the_end_of_text_is_what_the_models_files_say(tokenizer: Path) -> None:
    assert end_ids(tokenizer, small_tokenizer()) == [0]
    (tokenizer / "config.json").write_text(json.dumps({"eos_token_id": 7}))
    assert end_ids(tokenizer, small_tokenizer()) == [7]
    (tokenizer / "generation_config.json").write_text(json.dumps({"eos_token_id": [7, 8]}))
    assert end_ids(tokenizer, small_tokenizer()) == [7, 8]
    (tokenizer / "generation_config.json").write_text("[")
    with pytest.raises(CheckpointError, match=r"generation_config\.json cannot be read"):
        end_ids(tokenizer, small_tokenizer())
