"""The steps of a run, in order, each a job's command line with what it writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.components import usable_cpus
from cli.console import CommandError
from cli.reproduce import counts
from cli.reproduce.settings import LANGUAGE_ID, Setting, Size
from training_jobs.corpora.real_text.teaching import HELD_OUT, PLAIN
from training_jobs.corpora.web.generating import SHARD_DOCUMENTS, TRUTH_FILE
from training_jobs.evaluate.scaling import AVERAGED
from training_jobs.evaluate.suites import SUITES, TEXTS, named
from training_jobs.merge.writing import DOCUMENTS, SUMMARY, WITHOUT_CALLS
from training_jobs.run_folder import WITH_CALLS, RunFolder

_MERGED = (WITH_CALLS, WITHOUT_CALLS, DOCUMENTS, SUMMARY)
_WEIGHTS = ("model.safetensors", "config.json", "tokenizer.json")

Argument = str | Path


@dataclass(frozen=True, slots=True)
class Step:
    """One step: ``python -m MODULE ARGUMENTS``.

    Args:
        name: what it is called, in logs and marks too.
        title: what it does, for people.
        module: the job.
        arguments: what its product depends on.
        products: the files it is for; it is done when all are there.
        how: further arguments that have no part in the product.
        inputs: files from outside of the run that the product depends on.
        services: whether the tool services must be up.
        gateway: the model that a gateway must serve meanwhile.
        counts: what it counted, once it is done.
        summary: whether it only shows what others made; then it is made again whenever any of them was.
    """

    name: str
    title: str
    module: str
    arguments: tuple[Argument, ...]
    products: tuple[Path, ...]
    how: tuple[Argument, ...] = ()
    inputs: tuple[Path, ...] = ()
    services: bool = False
    gateway: Path | None = None
    counts: Callable[[], dict[str, Any]] = dict
    summary: bool = False


@dataclass(frozen=True, slots=True)
class LoopModel:
    """One base model and what becomes of it. ``folder`` is the model's in the run; ``size`` is ``None`` for a
    checkpoint that was ``given``, which is where it stays."""

    folder: Path
    size: Size | None = None
    given: Path | None = None

    def step(self, name: str) -> str:
        """What a step with it is called; sizes are distinguished."""
        return f"{name}-{self.size}" if self.size else name

    @property
    def base(self) -> Path:
        """The base model's checkpoint."""
        return self.given or self.folder / "pretrain" / "model"

    def positions(self, wanted: int) -> int:
        """The longest text in tokens that it is trained on: ``wanted``, or fewer if a given model has fewer.

        Raises:
            CommandError: the given folder holds no checkpoint.
        """
        if self.given is None:
            return wanted
        try:
            config = json.loads((self.given / "config.json").read_bytes())
            return min(wanted, int(config.get("n_positions") or config["max_position_embeddings"]))
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise CommandError(
                f"--base: {self.given} holds no checkpoint ({error!r}): name one, or train one with --sizes 256x4"
            ) from error

    def row(self, row: str) -> str:
        """What a row of tables is called; sizes are distinguished."""
        return f"{row} {self.size}" if self.size else row


def plan(setting: Setting, run: Path, note: str = "") -> tuple[Step, ...]:
    """The steps of ``setting`` in the folder ``run``; ``note`` is above the results."""
    return tuple(_Plan(setting, run, note).steps())


@dataclass(frozen=True, slots=True)
class _Plan:
    setting: Setting
    run: Path
    note: str

    def steps(self) -> Iterator[Step]:
        models = [LoopModel(self.run / size, Size.parse(size)) for size in self.setting.sizes]
        if self.setting.base is not None:
            models.append(LoopModel(self.run / "model", given=self.setting.base))
        if self.setting.real is None:
            yield from self._generated_texts()
        else:
            self._require_real(self.setting.real)
        self._require_data()
        for model in models:
            yield from self._loop(model)
        if len(models) > 1:
            runs = [_evaluation(model, "toolformer") for model in models]
            drawn = any(set(averaged) <= set(named(self.setting.suites)) for averaged in AVERAGED.values())
            figure = self.run / "figure-4.svg" if drawn else None
            yield self._compare("scaling", "accuracy over model size (figure 4)", self.run, runs, figure)

    def _generated_texts(self) -> Iterator[Step]:
        """What base models read, and C."""
        if self.setting.sizes:
            yield self._base_corpus()
        yield self._texts("texts", "write the plain texts C", self.setting.documents, 1)
        chained = "write plain texts in which one value follows from another"
        yield self._texts("texts-chained", chained, self.setting.chained_documents, 3, chained=True)
        yield self._texts("held-out", "write plain texts to hold out", self.setting.held_out_documents, 2)

    def _loop(self, model: LoopModel) -> Iterator[Step]:
        """All that one model goes through."""
        setting = self.setting
        if model.size is not None:
            yield self._pretrain(model, model.size)
        texts = self._real_c(1) or shards(self.run / "texts", setting.documents)
        yield self._calls(model, "calls", "the base model adds calls to C", texts, "round-1", setting.tau)
        if setting.real is None:
            yield self._report(model, "report", "texts", "round-1")
        star = f"round-1/merge/{WITH_CALLS}"
        yield self._finetune(model, "cc", [f"round-1/merge/{WITHOUT_CALLS}"], "finetune on C: the baseline + CC")
        yield self._finetune(model, "toolformer", [star], "finetune on C*: Toolformer")
        yield self._evaluate(model, "base", "base", k=0)
        yield self._evaluate(model, "cc", "+ CC", k=0)
        yield self._evaluate(model, "toolformer", "Toolformer", k=setting.k)
        yield from self._chained_round(model, star) if setting.real is None else self._second_round(model, star)
        runs = [_evaluation(model, name) for name in ("base", "cc", "toolformer", "toolformer-2")]
        yield self._compare(model.step("table"), "put the rows side by side", model.folder, runs)

    def _chained_round(self, model: LoopModel, star: str) -> Iterator[Step]:
        """Round 2 of generated texts: one value follows from another."""
        setting = self.setting
        title = "the base model adds calls to texts in which one value follows from another"
        texts, tools = shards(self.run / "texts-chained", setting.chained_documents), setting.chained_tools
        yield self._calls(model, "calls-2", title, texts, "round-2", setting.chained_tau, tools=tools)
        yield self._report(model, "report-2", "texts-chained", "round-2")
        both = [star, f"round-2/merge/{WITH_CALLS}"]
        yield self._finetune(model, "toolformer-2", both, "go on with C* of both rounds", again=True)
        yield self._evaluate(
            model, "toolformer-2", "Toolformer, round 2", setting.chained_suites,
            k=setting.chained_k, max_calls=setting.chained_calls,
        )  # fmt: skip

    def _second_round(self, model: LoopModel, star: str) -> Iterator[Step]:
        """Round 2 of real texts: the Toolformer adds calls to other texts, and the base model learns from both C*."""
        title, teacher = "the Toolformer adds calls to other texts", model.folder / "toolformer" / "model"
        yield self._calls(model, "calls-2", title, self._real_c(2), "round-2", self.setting.tau, teacher=teacher)
        both = [star, f"round-2/merge/{WITH_CALLS}"]
        yield self._finetune(model, "toolformer-2", both, "finetune on C* of both rounds")
        yield self._evaluate(model, "toolformer-2", "Toolformer, round 2", k=self.setting.k)

    def _real_c(self, round_: int) -> tuple[Argument, ...]:
        """C of a round as the pipeline takes it, if it is of real text."""
        real = self.setting.real
        return () if real is None else ("--corpus", real / f"round-{round_}" / "corpus")

    def _of_real(self, pattern: str) -> tuple[Path, ...]:
        """Its files that are named like this, if text is real: other texts at the same place are another run."""
        return () if self.setting.real is None else tuple(sorted(self.setting.real.glob(pattern)))

    def _require_real(self, real: Path) -> None:
        """What a run needs only after hours is looked for now.

        Raises:
            CommandError: the folder lacks something.
        """
        base = ["manifest.json"] if self.setting.sizes else []
        for pattern in (*base, "round-1/corpus/*.jsonl", "round-2/corpus/*.jsonl", PLAIN, HELD_OUT):
            if not self._of_real(pattern):
                raise CommandError(
                    f"--real: {real} has no {pattern}: make it with toolformer jobs real-text --out {real}"
                )

    def _require_data(self) -> None:
        """The same of the benchmarks.

        Raises:
            CommandError: the files of a suite are not there.
        """
        data = self.setting.data
        for name in named([*self.setting.suites, *self.setting.chained_suites]):
            files = TEXTS[name][1] if name in TEXTS else SUITES[name].files
            if files and (data is None or not all(any(data.glob(one)) for one in files)):
                raise CommandError(f"--data: {name} needs {', '.join(files)}: name the folder of the benchmarks")

    def _base_corpus(self) -> Step:
        out = self.run / "base-corpus"
        return Step(
            "base-corpus",
            "write and encode what base models read",
            "training_jobs.corpora.base",
            _options(out=out, texts=self.setting.base_texts, seed=self.setting.seed),
            (out / "tokenizer.json", out / "tokens.safetensors", out / "manifest.json"),
            services=True,
            counts=lambda: counts.base_corpus(out),
        )

    def _texts(self, name: str, title: str, documents: int, seed: int, *, chained: bool = False) -> Step:
        out = self.run / name
        return Step(
            name,
            title,
            "training_jobs.corpora.web",
            ("generate", *_options(out=out, documents=documents, seed=self.setting.seed + seed, chained=chained)),
            (*shards(out, documents), out / TRUTH_FILE),
            counts=lambda: {"documents": documents},
        )

    def _pretrain(self, model: LoopModel, size: Size) -> Step:
        shape = _options(width=size.width, layers=size.layers, heads=size.heads, rotary_dim=size.rotary_dim)
        numbers = _options(
            steps=self.setting.pretrain_steps, peak_rate=self.setting.pretrain_rate,
            warmup=self.setting.pretrain_warmup, cooldown=self.setting.pretrain_cooldown,
            optimizer=self.setting.pretrain_optimizer,
            positions=self.setting.positions, precision=self.setting.precision, seed=self.setting.seed,
        )  # fmt: skip
        return Step(
            model.step("pretrain"),
            f"pretrain a base model {size.width} wide with {size.layers} layers",
            "training_jobs.pretrain",
            (*_options(corpus=self.setting.real or self.run / "base-corpus", out=model.base.parent), *shape, *numbers),
            _checkpoint(model.base),
            how=_options(checkpoint_every=100),
            inputs=self._of_real("manifest.json"),
            counts=lambda: counts.pretraining(model.base),
        )

    def _calls(
        self, model: LoopModel, name: str, title: str, texts: Sequence[Argument], round_: str, tau: tuple[str, ...],
        tools: tuple[str, ...] = (), teacher: Path | None = None,
    ) -> Step:  # fmt: skip
        """Annotate, execute, filter, merge; a ``teacher`` does it in the base model's place."""
        folder, setting = RunFolder(model.folder / round_), self.setting
        options = _options(
            language_id=LANGUAGE_ID, tools=tools, run=folder.path, model=teacher or model.base, seed=setting.seed,
            chunk=setting.chunk, calls_per_position=setting.calls_per_position, before_words=setting.before_words,
            temperature=setting.temperature, most_positions=setting.most_positions,
            most_samples=setting.most_samples, given_inputs=setting.given_inputs, strict=setting.strict,
            without_result=setting.without_result, tau=tau, precision=setting.calls_precision,
        )  # fmt: skip
        return Step(
            model.step(name),
            title,
            "training_jobs.pipeline",
            (*texts, *options, "--unchecked"),  # also of models that are too small, to measure that
            tuple(folder.merged / file for file in _MERGED),
            how=_options(workers=usable_cpus()),
            inputs=(LANGUAGE_ID, *self._given(model), *self._of_real(f"{round_}/corpus/*.jsonl")),
            services=True,
            counts=lambda: counts.round_of_calls(folder),
        )

    def _report(self, model: LoopModel, name: str, texts: str, round_: str) -> Step:
        folder, out = model.folder / round_, model.folder / round_ / "precision.json"
        return Step(
            model.step(name),
            "how many of the calls are right, by what the generator knows",
            "training_jobs.report",
            _options(run=folder, truth=self.run / texts / TRUTH_FILE, json=out),
            (out,),
            counts=lambda: counts.read(out),
        )

    def _finetune(self, model: LoopModel, name: str, files: Sequence[str], title: str, *, again: bool = False) -> Step:
        """``again``: not the base model but the Toolformer, and over the last of ``files`` several times. Then, and for
        real text, the last checkpoint counts: the texts held out are of another kind, without chains or without
        questions, so the fewer steps the better they are foreseen."""
        setting, out, texts = self.setting, model.folder / name, [model.folder / file for file in files]
        held_out_in = shards(self.run / "held-out", setting.held_out_documents)
        if setting.real is not None:
            texts.append(setting.real / PLAIN)
            held_out_in = (setting.real / HELD_OUT,)
        steps = setting.chained_steps if again else setting.finetune_steps
        held_out = setting.held_out_documents
        options = _options(
            model=model.folder / "toolformer" / "model" if again else model.base, texts=texts,
            times=[1] * (len(files) - 1) + [setting.chained_times] if again else (), out=out, steps=steps,
            batch=setting.finetune_batch, rate=setting.finetune_rate, schedule=setting.finetune_schedule,
            held_out_texts=held_out, evaluate_every=steps if again or setting.real else setting.measure_every,
            precision=setting.precision, sequence_length=model.positions(setting.positions), seed=setting.seed,
            mask_results=setting.mask_results, held_out=held_out_in,
        )  # fmt: skip
        return Step(
            model.step(f"finetune-{name}"),
            title,
            "training_jobs.finetune",
            options,
            (*_checkpoint(out / "model"), out / "curve.jsonl"),
            inputs=(*self._given(model), *self._of_real(PLAIN), *self._of_real(HELD_OUT)),
            counts=lambda: counts.finetuning(texts, out),
        )

    def _evaluate(
        self, model: LoopModel, name: str, row: str, suites: tuple[str, ...] = (), **conditions: int | tuple[int, ...]
    ) -> Step:
        out = _evaluation(model, name)
        checkpoint = model.base if name == "base" else model.folder / name / "model"
        options = _options(
            suites=suites or self.setting.suites, data=self.setting.data, prompts=self.setting.prompts,
            count=self.setting.count, limit=self.setting.limit, seed=self.setting.seed, checkpoint=checkpoint,
            label=model.row(row), out=out, **conditions,
        )  # fmt: skip
        return Step(
            model.step(f"evaluate-{name}"),
            f"ask {row}, through a gateway",
            "training_jobs.evaluate",
            options,
            (out / "results.json",),
            inputs=self._given(model) if name == "base" else (),
            services=True,
            gateway=checkpoint,
            counts=lambda: counts.evaluation(out),
        )

    def _compare(self, name: str, title: str, folder: Path, runs: list[Path], figure: Path | None = None) -> Step:
        page, table = folder / "results.html", folder / "results.md"
        return Step(
            name,
            title,
            "training_jobs.evaluate.compare",
            (*runs, *_options(out=page, markdown=table, figure=figure, note=self.note or None)),
            (page, table, *((figure,) if figure else ())),
            summary=True,
        )

    def _given(self, model: LoopModel) -> tuple[Path, ...]:
        return _checkpoint(model.given) if model.given else ()


def _evaluation(model: LoopModel, name: str) -> Path:
    return model.folder / "evaluation" / name


def _checkpoint(folder: Path) -> tuple[Path, ...]:
    return tuple(folder / name for name in _WEIGHTS)


def shards(folder: Path, documents: int) -> tuple[Path, ...]:
    """The files of so many generated texts in ``folder``."""
    return tuple(folder / f"generated-{number:04d}.json.gz" for number in range(-(-documents // SHARD_DOCUMENTS)))


def _options(**values: Any) -> tuple[Argument, ...]:
    """``--NAME VALUE`` for each; several values behind one name, a truth as the name alone; nothing where there is no
    value."""
    words: list[Argument] = []
    for name, value in values.items():
        several = value if isinstance(value, (list, tuple)) else () if value is True else (value,)
        if value is not None and value is not False and value not in ([], ()):
            words += [f"--{name.replace('_', '-')}", *(one if isinstance(one, Path) else str(one) for one in several)]
    return tuple(words)
