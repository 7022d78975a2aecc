"""The backend that runs a model in this process."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from inference_gateway.backends.base import BackendBusy
from inference_gateway.backends.sessions import QueuedSession
from inference_gateway.call_vocabulary import CallForm, CallVocabulary
from inference_gateway.core import OPTIONAL_SAMPLING, CompletionRequest, FinishReason
from inference_gateway.decoding import DecodingMachine
from inference_gateway.engine.engine import Engine
from inference_gateway.engine.limits import EngineLimits
from inference_gateway.engine.sampling import Sampler
from inference_gateway.engine.stats import EngineStats, Observer
from language_model import checkpoint
from language_model.causal_lm import CausalLM
from language_model.config import CheckpointError, model_type
from language_model.graphs import DecodeGraphs
from language_model.native.compiled import CompiledGPTJ
from language_model.native.library import Unavailable
from language_model.native.packing import Weights
from language_model.other_models.base import OtherCausalLM
from language_model.other_models.from_transformers import load_other
from language_model.other_models.together import Together
from language_model.tokenizer import ByteLevelTokenizer
from toolformer.api_call import SplicedResult

log = logging.getLogger(__name__)


class LocalSession(QueuedSession):
    """A completion in the local engine; see :class:`~inference_gateway.backends.base.Session`."""

    def __init__(self, engine: Engine, request: CompletionRequest, machine: DecodingMachine) -> None:
        super().__init__()
        self._engine = engine
        self._machine = machine
        self._prompt_length = len(request.prompt_ids)
        self._sequence = engine.submit(request, machine, self._pass_on)

    @property
    def room(self) -> int:
        return self._engine.limits.max_model_len - self._prompt_length - len(self._machine.ids)

    def splice(self, result: SplicedResult) -> None:
        self._engine.splice(self._sequence, result)

    def give_up(self) -> None:
        self._engine.give_up(self._sequence)

    def finish(self, reason: FinishReason, message: str = "") -> None:
        self._engine.finish(self._sequence, reason, message)

    def close(self) -> None:
        self._engine.abort(self._sequence)


class LocalBackend:
    """A model on this machine's CPU or GPU: GPT-J, or others through transformers (``language_model/other_models``).

    ``limits.max_model_len`` is capped by the model's positions.
    """

    notices: tuple[str, ...] = ()
    scores_prompts = True
    sampling_fields = OPTIONAL_SAMPLING

    def __init__(
        self,
        model: CausalLM[Any],
        tokenizer: ByteLevelTokenizer,
        model_name: str,
        limits: EngineLimits,
        sampler: Callable[[CallVocabulary, torch.device], Sampler] = Sampler,
    ) -> None:
        """``sampler`` makes what chooses the tokens."""
        self.model_name = model_name
        self.tokenizer = tokenizer
        self.vocabulary = CallVocabulary.of(tokenizer, model.end_ids)
        self.max_model_len = min(limits.max_model_len, model.max_positions)
        capped = dataclasses.replace(limits, max_model_len=self.max_model_len)
        self._engine = Engine(model, sampler(self.vocabulary, model.device), capped)

    @classmethod
    def load(
        cls,
        directory: Path,
        *,
        limits: EngineLimits,
        cache_bytes: int | None = None,
        weights: Weights = Weights.FLOAT32,
        device: str = "cpu",
        model_name: str | None = None,
        compiled_step: bool = True,
    ) -> LocalBackend:
        """Load a checkpoint directory; the model is named after it unless ``model_name`` is given.

        ``cache_bytes`` sets ``limits.cache_tokens``. With ``compiled_step``, steps are computed in compiled code if
        that is available for the model and here; on a GPU decode steps are recorded beforehand and replayed.

        Raises:
            CheckpointError: if the checkpoint cannot be used.
            ValueError: if the cache could not hold one sequence.
        """
        tokenizer = ByteLevelTokenizer.from_pretrained(directory)
        model = _load_model(directory, weights, device, compiled_step=compiled_step)
        if cache_bytes is not None:
            length = min(limits.max_model_len, model.max_positions)
            tokens = cache_bytes // model.cache_bytes_per_token
            limits = dataclasses.replace(limits, cache_tokens=tokens, max_model_len=length)
        return cls(model, tokenizer, model_name or directory.name, limits)

    async def start(self) -> None:
        self._engine.start()

    async def stop(self) -> None:
        await self._engine.stop()

    def ready(self) -> bool:
        return self._engine.alive

    def why_not_ready(self) -> str:
        return "the model's engine has stopped; restart the gateway"

    def open(self, request: CompletionRequest, tools: Mapping[str, CallForm]) -> LocalSession:
        if self._engine.waiting >= self._engine.limits.max_waiting:
            raise BackendBusy(f"{self._engine.limits.max_waiting} completions are waiting already")
        return LocalSession(self._engine, request, DecodingMachine(request, self.vocabulary, tools))

    def observe(self, observer: Observer) -> None:
        """Report the times of each step to ``observer``; to be set before :meth:`start`."""
        self._engine.observe(observer)

    def stats(self) -> EngineStats:
        """Counts for metrics."""
        return self._engine.stats()


def _packed(model: OtherCausalLM[Any], weights: Weights) -> OtherCausalLM[Any]:
    """``model`` with its products in compiled code, if that can be."""
    why = "this kind of model goes through transformers row by row"
    if isinstance(model, Together):
        try:
            model.pack(weights)
        except Unavailable as unavailable:
            why = str(unavailable)
        else:
            log.info("products are computed in compiled code")
            return model
    if weights in (Weights.INT8, Weights.INT4):
        raise CheckpointError(f"dtype {weights.name.lower()}: {why}: take bfloat16")
    log.info("products are computed by torch: %s", why)
    return model


def _load_model(directory: Path, weights: Weights, device: str, *, compiled_step: bool) -> CausalLM[Any]:
    whole = weights in (Weights.INT8, Weights.INT4)
    if whole and (device != "cpu" or not compiled_step):
        raise CheckpointError(
            f"dtype {weights.name.lower()} is for GPT-J (Llama, Mistral, Qwen, GPT-2) in compiled code on a CPU: take "
            "bfloat16"
        )
    dtype = torch.float32 if weights == Weights.FLOAT32 else torch.bfloat16
    if model_type(directory) != "gptj":
        other = load_other(directory, dtype=dtype, device=device)
        return _packed(other, weights) if device == "cpu" and compiled_step else other
    if device == "cpu" and compiled_step:
        try:
            model = CompiledGPTJ.load(directory, weights)
        except Unavailable as why:
            if whole:
                raise CheckpointError(f"dtype {weights.name.lower()}: {why}") from None
            log.info("steps are computed by torch: %s", why)
        else:
            log.info("steps are computed in compiled code")
            return model
    plain = checkpoint.load(directory, dtype=dtype, device=device)
    if compiled_step and plain.device.type == "cuda":
        plain.stepper = DecodeGraphs(plain)
    return plain
