"""Which backend the settings ask for, and loading it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Final, TypeVar

from inference_gateway.backends.base import Backend
from inference_gateway.settings import GatewaySettings, SettingsError, variable
from language_model.config import CheckpointError
from language_model.tokenizer import ByteLevelTokenizer, tokenizer_file

L = TypeVar("L")


def backend_loader(settings: GatewaySettings) -> Callable[[], Backend]:
    """What loads the backend of ``settings``, once what can be checked at once has been.

    Raises:
        SettingsError: if the settings do not go together, or name files that are not there.
    """
    if settings.backend in _IN_PROCESS:
        if not (settings.model / "config.json").is_file():
            raise SettingsError(f"TOOLFORMER_MODEL: {settings.model} holds no checkpoint; name a directory that does")
        if settings.backend == "vllm":
            _check_vllm(settings)
        return lambda: _IN_PROCESS[settings.backend](settings)
    if settings.backend_url is None:
        raise SettingsError(
            f"{variable('backend_url')} is missing: {variable('backend')}={settings.backend} needs the model server's "
            "address, such as http://127.0.0.1:8000"
        )
    if tokenizer_file(settings.model) is None:
        raise SettingsError(
            f"TOOLFORMER_MODEL: {settings.model} holds no tokenizer.json; name a directory with the served model's"
        )
    api_key = _api_key(settings)
    return lambda: _load_remote(settings, api_key)


def _check_vllm(settings: GatewaySettings) -> None:
    if settings.dtype not in ("float32", "bfloat16"):
        raise SettingsError(
            f"{variable('dtype')}: {settings.dtype} is packed by the local engine; with {variable('backend')}=vllm "
            "use float32 or bfloat16, or a checkpoint that is quantized as vLLM reads it"
        )
    if find_spec("vllm") is None:
        raise SettingsError(
            f"{variable('backend')}=vllm: the package vllm is not installed; install it, or put a gateway with "
            f"{variable('backend')}=openai in front of a vLLM elsewhere"
        )


def end_ids(directory: Path, tokenizer: ByteLevelTokenizer) -> list[int]:
    """The end-of-text ids of the model whose ``config.json`` is in ``directory``; where that says none, the one special
    token of the vocabulary.

    Raises:
        CheckpointError: if neither says which they are.
    """
    for name in ("generation_config.json", "config.json"):
        try:
            found = json.loads((directory / name).read_text(encoding="utf-8")).get("eos_token_id")
        except FileNotFoundError:
            continue
        except (OSError, ValueError, AttributeError) as error:
            raise CheckpointError(f"{directory / name} cannot be read: {error}") from error
        ids = found if isinstance(found, list) else [found]
        if ids and all(isinstance(token, int) for token in ids):
            return ids
    if len(tokenizer.special_ids) == 1:
        return list(tokenizer.special_ids)
    raise CheckpointError(
        f"{directory}: nothing says what ends a text; put the model's config.json beside tokenizer.json"
    )


def _api_key(settings: GatewaySettings) -> str | None:
    file = settings.backend_api_key_file
    if settings.backend_api_key is not None:
        if file is not None:
            raise SettingsError(
                f"{variable('backend_api_key_file')}: {variable('backend_api_key')} is set too; keep one"
            )
        return settings.backend_api_key.get_secret_value()
    if file is None:
        return None
    try:
        key = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{variable('backend_api_key_file')}: {file} cannot be read: {error}") from error
    if not key:
        raise SettingsError(f"{variable('backend_api_key_file')}: {file} is empty; put the key on its first line")
    return key


def _limits(kind: Callable[..., L], settings: GatewaySettings, **others: object) -> L:
    """A backend's limits: the settings of the same names, and ``others``."""
    shared = signature(kind).parameters.keys() & GatewaySettings.model_fields.keys()
    return kind(**{name: getattr(settings, name) for name in shared}, **others)


def _load_local(settings: GatewaySettings) -> Backend:
    # Imported here, in the loading thread: torch takes seconds, and the port is to answer before that.
    import torch

    from inference_gateway.backends.local import LocalBackend
    from inference_gateway.engine.limits import EngineLimits
    from language_model.native.packing import Weights

    if settings.torch_threads is not None:
        torch.set_num_threads(settings.torch_threads)
    return LocalBackend.load(
        settings.model,
        limits=_limits(EngineLimits, settings),
        cache_bytes=None if settings.cache_mib is None else settings.cache_mib * 2**20,
        weights=Weights[settings.dtype.upper()],
        device=settings.device,
        model_name=settings.model_name,
        compiled_step=settings.compiled_step,
    )


def _load_vllm(settings: GatewaySettings) -> Backend:
    from inference_gateway.backends.vllm.vllm_backend import VllmBackend, VllmLimits

    return VllmBackend.load(
        settings.model,
        end_ids(settings.model, ByteLevelTokenizer.from_pretrained(settings.model)),
        limits=_limits(VllmLimits, settings),
        max_model_len=settings.max_model_len,
        tensor_parallel=settings.tensor_parallel,
        cache_bytes=None if settings.cache_mib is None else settings.cache_mib * 2**20,
        dtype=settings.dtype,
        reuse_prefixes=settings.reuse_prefixes,
        model_name=settings.model_name,
    )


_IN_PROCESS: Final[Mapping[str, Callable[[GatewaySettings], Backend]]] = {"local": _load_local, "vllm": _load_vllm}
"""What loads the backends that compute here; the others are in front of a server."""


def _load_remote(settings: GatewaySettings, api_key: str | None) -> Backend:
    from inference_gateway.backends.model_server import ModelServer, ServerAddress
    from inference_gateway.backends.remote import RemoteBackend, RemoteLimits
    from inference_gateway.call_vocabulary import CallVocabulary

    assert settings.backend_url is not None
    tokenizer = ByteLevelTokenizer.from_pretrained(settings.model)
    address = ServerAddress(
        settings.backend_url,
        api_key=api_key,
        model=settings.backend_model,
        silence_seconds=settings.backend_silence_seconds,
        connections=settings.max_sequences,
    )
    server: ModelServer
    if settings.backend == "tgi":
        from inference_gateway.backends.tgi import TGIServer

        server = TGIServer(address, tokenizer, settings.backend_top_tokens)
    else:
        from inference_gateway.backends.openai import OpenAIServer

        server = OpenAIServer(address, tokenizer, settings.backend_top_tokens)
    limits = _limits(RemoteLimits, settings, probe_seconds=settings.backend_probe_seconds)
    vocabulary = CallVocabulary.of(tokenizer, end_ids(settings.model, tokenizer))
    return RemoteBackend(server, tokenizer, vocabulary, limits, settings.model_name)
