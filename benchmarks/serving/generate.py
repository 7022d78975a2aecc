"""transformers' ``generate`` for a server: one request at a time, and every segment from the start."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.serving.load import Job
from benchmarks.serving.record import Record
from benchmarks.serving.ways import Tools, unanswered
from inference_gateway.call_vocabulary import CallVocabulary
from toolformer.api_call import ARROW


class Generate:
    """Greedy, in float32, in this process. While a tool works for a request, another is computed."""

    def __init__(self, model: Path, tools: Tools) -> None:
        import transformers

        self._model = transformers.GPTJForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
        self._model.generation_config.eos_token_id = None  # every request makes all its tokens
        self._model.generation_config.pad_token_id = 0
        self._tools = tools
        self._openings = sorted(CallVocabulary.of(tools.tokenizer, []).openings)
        self._turn = asyncio.Lock()

    async def run(self, job: Job, record: Record) -> None:
        """See `Way`."""
        ids = self._tools.tokenizer.encode(job.prompt)
        left, may_call = job.tokens, job.calls
        while True:
            made = await self._segment(ids, left, record, may_call=may_call)
            record.text += self._text(made)
            left -= len(made)
            if not left:
                record.end(time.perf_counter(), job.tokens)
                return
            ids = [*ids, *made]
            record.recomputed += len(ids) - 1
            if call := self._tools.read(self._text(made)):
                record.call(time.perf_counter(), shown=True)
                result = await self._tools.answer(call)
                record.answer(time.perf_counter())
                record.text = record.text.removesuffix(unanswered(call))
                ids, may_call = [*ids, *result.ids], False

    async def _segment(self, ids: list[int], tokens: int, record: Record, *, may_call: bool) -> list[int]:
        """The ids that follow ``ids``: as many as asked for, without a call or up to its arrow."""
        async with self._turn:
            return await asyncio.to_thread(self._generate, ids, tokens, record, may_call)

    def _generate(self, ids: list[int], tokens: int, record: Record, may_call: bool) -> list[int]:
        prompt = torch.tensor([ids])
        with torch.inference_mode():
            out = self._model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                do_sample=False,
                max_new_tokens=tokens,
                streamer=_Noting(record),
                stopping_criteria=[self._at_arrow] if may_call else None,
                suppress_tokens=None if may_call else self._openings,
            )
        made: list[int] = out[0, len(ids) :].tolist()
        return made

    def _at_arrow(self, ids: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        """transformers' stopping criterion: whether each row ends with the arrow."""
        return torch.tensor([self._text(row[-4:].tolist()).endswith(ARROW) for row in ids])

    def _text(self, ids: list[int]) -> str:
        return b"".join(map(self._tools.tokenizer.token_bytes, ids)).decode(errors="replace")


class _Noting:
    """transformers' streamer: notes when tokens come. What comes first is the prompt."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._begun = False

    def put(self, _: torch.Tensor) -> None:
        if self._begun:
            self._record.token(time.perf_counter())
        self._begun = True

    def end(self) -> None:
        """Nothing is left to tell."""
