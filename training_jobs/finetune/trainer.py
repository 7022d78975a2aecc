"""transformers' Trainer with this project's batches, measure of perplexity and checkpoints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812, the field's name for it
from torch.utils.data import DataLoader
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import EvalLoopOutput

from training_jobs.finetune import checkpoints
from training_jobs.finetune.curves import StepClock
from training_jobs.finetune.gptj import IGNORED
from training_jobs.finetune.steps import StepPlan, dealt
from training_jobs.text_encoder import Encoded

Batch = dict[str, Tensor]


def collate(texts: Sequence[Encoded]) -> Batch:
    """``input_ids`` and ``labels`` ``[texts, longest]``, padded at the end with id 0, which no loss counts; where there
    are texts on which the model is to stay as it was, ``as_before`` ``[texts]`` says which."""
    longest = max(len(text.ids) for text in texts)
    ids = torch.zeros(len(texts), longest, dtype=torch.long)
    labels = torch.full_like(ids, IGNORED)
    for row, text in enumerate(texts):
        own = torch.tensor(text.ids)
        ids[row, : len(own)] = own
        labels[row, : len(own)] = own.masked_fill(~torch.tensor(text.learned), IGNORED)
    as_before = torch.tensor([text.as_before for text in texts])
    return {"input_ids": ids, "labels": labels} | ({"as_before": as_before} if as_before.any() else {})


class FinetuneTrainer(Trainer):  # type: ignore[misc]
    """A Trainer whose steps are those of a :class:`StepPlan`, whose held-out loss is the mean over all tokens, and
    whose checkpoints are whole or not there."""

    def __init__(
        self,
        model: Any,
        args: TrainingArguments,
        *,
        texts: Sequence[Encoded],
        held_out: Sequence[Encoded],
        plan: StepPlan,
        evaluation_tokens: int,
        opening: int | None,
        clock: StepClock,
        callbacks: list[TrainerCallback],
        before: Any = None,
        before_weight: float = 1.0,
    ) -> None:
        """``evaluation_tokens``: tokens of a held-out micro-batch, at most, padding and all. ``opening``: the token
        that begins a call, which cannot come in held-out texts. ``before``: the model as it was, where there are texts
        on which it is to stay so; ``before_weight``: theirs in the loss, beside 1 of the others."""
        super().__init__(
            model=model,
            args=args,
            data_collator=collate,
            train_dataset=list(texts),
            eval_dataset=list(held_out),
            callbacks=[clock, *callbacks],
        )
        self.remove_callback(PrinterCallback)
        self._plan, self._clock, self._opening = plan, clock, opening
        self._before, self._before_weight = before, before_weight
        self._held_out_groups = _groups(held_out, self.args.world_size, evaluation_tokens)

    def get_train_dataloader(self) -> DataLoader[Any]:
        """This process' micro-batches; accelerate need not deal them again."""
        return self._loader(self.train_dataset, list(self._plan.micro_batches(self.args.process_index)))

    def get_eval_dataloader(self, eval_dataset: Any = None) -> DataLoader[Any]:
        """This process' part of the held-out texts; every process has as many micro-batches."""
        return self._loader(self.eval_dataset, self._held_out_groups[self.args.process_index :: self.args.world_size])

    def _loader(self, texts: Any, batches: Any) -> DataLoader[Any]:
        return DataLoader(
            texts, batch_sampler=batches, collate_fn=collate, pin_memory=self.args.dataloader_pin_memory
        )  # fmt: skip

    def compute_loss(
        self, model: Any, inputs: Batch, return_outputs: bool = False, num_items_in_batch: Tensor | int | None = None
    ) -> Any:
        """The model's own loss. Where the model is to stay as it was on a text, what counts instead of the text's next
        token is how far the model's distribution of it is from that before: the Kullback-Leibler divergence in nats
        ("learning without forgetting")."""
        if "as_before" not in inputs:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        rows, ids, targets = inputs["as_before"], inputs["input_ids"], inputs["labels"][:, 1:]
        wanted = targets != IGNORED
        logits = model(input_ids=ids).logits[:, :-1].float()
        with torch.no_grad(), self.accelerator.autocast():
            before = self._before(input_ids=ids[rows]).logits[:, :-1][wanted[rows]].float()
        stays = F.kl_div(
            logits[rows][wanted[rows]].log_softmax(-1), before.log_softmax(-1), reduction="sum", log_target=True
        )
        learned = F.cross_entropy(logits[~rows][wanted[~rows]], targets[~rows][wanted[~rows]], reduction="sum")
        return (self._before_weight * stays + learned) / (
            wanted.sum() if num_items_in_batch is None else num_items_in_batch
        )

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Adds what the callbacks measured of a step to its line."""
        if "loss" in logs:
            logs = logs | {"tokens_per_second": round(self._clock.tokens_per_second)}
        super().log(logs, start_time)

    def evaluation_loop(
        self,
        dataloader: DataLoader[Any],
        description: str,
        prediction_loss_only: bool | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> EvalLoopOutput:
        """Loss in nats for each token and perplexity over the held-out texts, calls disabled (section 4.3 of the
        paper): a model that likes to call is not worse for it. The Trainer's own takes the mean over batches, whatever
        their length."""
        model = self.model_wrapped
        model.eval()
        summed = torch.zeros(2, dtype=torch.float64)
        with torch.no_grad(), _barred(model, self._opening):
            for batch in dataloader:
                # Where a text itself has the opening there is nothing to measure once it cannot come.
                if self._opening is not None:
                    batch["labels"][batch["labels"] == self._opening] = IGNORED
                count = int((batch["labels"][:, 1:] != IGNORED).sum())
                outputs = model(**self._prepare_inputs(batch), num_items_in_batch=1)
                summed += torch.tensor([float(outputs["loss"]), count], dtype=torch.float64)
        total, tokens = self.accelerator.reduce(summed.to(self.args.device), reduction="sum").tolist()
        loss = total / tokens
        metrics = {"loss": loss, "perplexity": math.exp(min(loss, 700.0)), "tokens": tokens}
        named = {f"{metric_key_prefix}_{name}": value for name, value in metrics.items()}
        return EvalLoopOutput(predictions=None, label_ids=None, metrics=named, num_samples=len(self.eval_dataset))

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        self.accelerator.wait_for_everyone()
        if self.is_world_process_zero():
            out, step = Path(self.args.output_dir), self.state.global_step
            checkpoints.mark_whole(out, step)
            checkpoints.keep_only(out, {step, self.state.best_global_step or step})
        self.accelerator.wait_for_everyone()


@contextmanager
def _barred(model: Any, token: int | None) -> Iterator[None]:
    """Meanwhile ``token`` never comes next."""
    if token is None:
        yield
        return

    def bar(_: Any, __: Any, logits: Tensor) -> Tensor:
        return logits.index_fill(-1, torch.tensor([token], device=logits.device), float("-inf"))

    unwrapped = model.module if hasattr(model, "module") else model
    hook = unwrapped.get_output_embeddings().register_forward_hook(bar)
    try:
        yield
    finally:
        hook.remove()


def _groups(texts: Sequence[Encoded], processes: int, most_tokens: int) -> list[list[int]]:
    """The held-out texts in micro-batches, as many for each process: sharded, all must take part in each pass."""
    lengths = [len(text.ids) for text in texts]
    whole = StepPlan.of(
        lengths, batch=len(lengths), steps=1, seed=0, processes=processes, micro_batch_tokens=most_tokens
    )  # fmt: skip
    return dealt(range(len(lengths)), lengths, whole.accumulation * processes)
