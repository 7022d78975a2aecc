"""What a run is: its numbers, in three settings, and an option of the command for each."""

from __future__ import annotations

import argparse
import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Self, get_args, get_origin, get_type_hints

from cli.checkout import CHECKOUT
from cli.console import CommandError
from toolformer.model_files.home import BUNDLED_MODELS
from training_jobs.evaluate.example import Prompts, SuiteError
from training_jobs.evaluate.suites import named
from training_jobs.finetune.recipe import Schedule
from training_jobs.records import WithoutResult

BUNDLED_BASE: Final = BUNDLED_MODELS / "base"
"""The base model that comes with the project."""
LANGUAGE_ID: Final = BUNDLED_MODELS / "translation-small" / "lid.ftz"
"""The fastText classifier that comes with the project."""


_HEAD: Final = 64
"""Width of an attention head, as of the bundled models; half of it is rotated."""
_FOLDERS: Final = ("base", "real", "data")
"""Settings that name a folder."""
_NARROW: Final = (16, 32, 48)
"""Widths of a single, smaller head."""


@dataclass(frozen=True, slots=True)
class Size:
    """A shape of GPT-J. Written ``256x4``: 256 wide, 4 layers."""

    width: int
    layers: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """The size that is written like this.

        Raises:
            CommandError: if it is none.
        """
        found = re.fullmatch(r"(\d{1,5})x(\d{1,3})", text)
        size = cls(int(found[1]), int(found[2])) if found else cls(0, 0)
        if not size.layers or not size.width or (size.width % _HEAD and size.width not in _NARROW):
            raise CommandError(
                f"--sizes: {text!r} is no size: write WIDTHxLAYERS, such as 256x4; the width is a multiple of {_HEAD}, "
                f"or one of {_NARROW}"
            )
        return size

    @property
    def heads(self) -> int:
        """Attention heads."""
        return max(1, self.width // _HEAD)

    @property
    def rotary_dim(self) -> int:
        """Dimensions of a head that are rotated."""
        return min(self.width, _HEAD) // 2

    def __str__(self) -> str:
        return f"{self.width}x{self.layers}"


_SHOWN: Final = {int: "N", float: "X", Path: "DIR", str: "TEXT"}


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _require(good: bool, name: str, rule: str, found: object) -> None:
    if not good:
        raise CommandError(f"{_option(name)} {rule}, not {found}")


def _is_finite(number: str) -> bool:
    try:
        return math.isfinite(float(number))
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Setting:
    """The numbers that the results depend on, each with its meaning; the defaults are those of the setting ``full``.

    Raises:
        CommandError: if one cannot hold; the message names its option.
    """

    seed: Annotated[int, "of all that is drawn; each set of texts has one of its own made from it"] = 0
    sizes: Annotated[tuple[str, ...], "base models to pretrain, each as WIDTHxLAYERS"] = ("128x3", "256x4", "384x6")
    base: Annotated[Path | None, "start from this checkpoint and pretrain none"] = None

    real: Annotated[
        Path | None, "folder that `toolformer jobs real-text` made: base models read its corpus, and C is of its texts"
    ] = None
    data: Annotated[Path | None, "folder of the benchmarks, for the paper's suites"] = None

    base_texts: Annotated[int, "texts that base models read"] = 100_000
    pretrain_steps: Annotated[int, "steps of pretraining, of 4,096 tokens each"] = 5_500
    pretrain_rate: Annotated[float, "learning rate of pretraining"] = 3e-3
    pretrain_warmup: Annotated[int, "steps in which it rises"] = 200
    pretrain_cooldown: Annotated[float, "last share of the steps, in which it falls"] = 0.2
    pretrain_optimizer: Annotated[str, "of its layers' matrices: adamw or muon"] = "adamw"
    positions: Annotated[int, "longest text of a base model, in tokens"] = 1_024
    precision: Annotated[str, "of the products in training: bfloat16 or float32"] = "bfloat16"

    documents: Annotated[int, "plain texts to write, on which the model teaches itself"] = 5_000
    chained_documents: Annotated[int, "plain texts in which one value follows from another, for round 2"] = 1_500
    held_out_documents: Annotated[int, "plain texts that decide which checkpoint of a finetuning is the best"] = 1_000
    chunk: Annotated[int, "documents that are annotated and scored in one go; what a kill loses"] = 64
    temperature: Annotated[float, "of the sampled calls; lower, fewer and more alike"] = 1.0
    most_positions: Annotated[int, "places of a text where calls are sampled; a tool's k, if it is less"] = 20
    most_samples: Annotated[int, "calls sampled there; a tool's m, if it is less"] = 10
    tau: Annotated[tuple[str, ...], "nats that a call must gain, or TOOL=NATS"] = (
        "0.5",
        "Calculator=1.0",
        "MT=0.1",
    )
    chained_tau: Annotated[tuple[str, ...], "the same where one value follows from another"] = (
        "0.5",
        "WikiSearch=1.0",
        "QA=1.0",
    )
    calls_per_position: Annotated[
        int, "calls at a place of C*, at most; a second one of the same fact uses up a chain"
    ] = 1
    strict: Annotated[bool, "no call of C* stands where its own gain is below what it must gain"] = False
    without_result: Annotated[
        str, "what a result is compared with: empty, [name(input) -> ], or closed, [name(input)]"
    ] = "empty"
    calls_precision: Annotated[str, "of the products in annotating and scoring: bfloat16 or float32"] = "float32"
    before_words: Annotated[bool, "calls only where a word begins"] = True
    given_inputs: Annotated[bool, "numbers and names in a call's input must be in the text before it"] = True

    finetune_steps: Annotated[int, "steps of finetuning"] = 600
    finetune_batch: Annotated[int, "texts of such a step"] = 64
    finetune_rate: Annotated[float, "learning rate of finetuning; the paper's 1e-5 hardly moves a small model"] = 3e-4
    finetune_schedule: Annotated[str, "how it goes on after the first tenth: constant, linear or cosine"] = "linear"
    mask_results: Annotated[bool, "leave what tools answered out of the loss; the paper does not"] = False
    measure_every: Annotated[int, "steps between two measures of perplexity on held-out texts"] = 100

    suites: Annotated[tuple[str, ...], "what base, + CC and Toolformer are asked"] = ("own",)
    prompts: Annotated[str, "bare, the text alone, or the paper's"] = "bare"
    count: Annotated[int, "questions in each part of a suite; most suites have two parts"] = 200
    limit: Annotated[int | None, "questions of a suite, at most"] = None
    k: Annotated[tuple[int, ...], "how freely Toolformer may call (section 4.2 of the paper); 0: not at all"] = (
        0,
        1,
        3,
        10,
    )
    chained_tools: Annotated[tuple[str, ...], "whose calls round 2 adds; nothing follows from a translation here"] = (
        "Calculator",
        "Calendar",
        "WikiSearch",
        "QA",
    )
    chained_suites: Annotated[tuple[str, ...], "what the Toolformer of round 2 is asked"] = ("own",)
    chained_times: Annotated[int, "times that a pass of round 2's finetuning goes over its texts; over others once"] = 5
    chained_steps: Annotated[int, "steps of round 2's finetuning, which begins with the Toolformer"] = 250
    chained_calls: Annotated[tuple[int, ...], "calls of a completion in round 2, at most"] = (1, 2)
    chained_k: Annotated[int, "how freely it may call"] = 3

    def __post_init__(self) -> None:
        for one in dataclasses.fields(self):
            value = getattr(self, one.name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                least = 0 if one.name == "seed" else 1 if isinstance(value, int) else 1e-12
                _require(value >= least, one.name, f"must be {'at least 0' if not least else 'above 0'}", value)
        for name, known in (
            ("precision", ("bfloat16", "float32")),
            ("calls_precision", ("bfloat16", "float32")),
            ("pretrain_optimizer", ("adamw", "muon")),
            ("finetune_schedule", get_args(Schedule)),
            ("without_result", get_args(WithoutResult)),
            ("prompts", get_args(Prompts)),
        ):
            value = getattr(self, name)
            _require(value in known, name, f"must be one of {', '.join(known)}", value)
        rule = f"must be at most the {self.finetune_steps} of --finetune-steps"
        _require(self.measure_every <= self.finetune_steps, "measure_every", rule, self.measure_every)
        if self.base is None and not self.sizes:
            raise CommandError("there is no model to begin with: name --sizes, or a checkpoint with --base")
        if self.base is not None and self.sizes:
            raise CommandError("--base takes the place of --sizes: give one of them")
        _require(all(one >= 0 for one in self.k), "k", "must be numbers of at least 0", self.k)
        _require(all(one >= 1 for one in self.chained_calls), "chained_calls", "must be above 0", self.chained_calls)
        for name in ("tau", "chained_tau"):
            for one in getattr(self, name):
                _require(_is_finite(one.rpartition("=")[2]), name, "must be numbers of nats, or TOOL=number", repr(one))
        for size in self.sizes:
            Size.parse(size)
        for name in ("suites", "chained_suites"):
            try:
                named(getattr(self, name))
            except SuiteError as error:
                raise CommandError(f"{_option(name)}: {str(error).removeprefix('--suites: ')}") from error

    def as_json(self) -> dict[str, Any]:
        """Plain values; of a folder its place in the project, or else its name."""
        fields = dataclasses.asdict(self)
        for name in _FOLDERS:
            if (folder := fields[name]) is not None:
                inside = folder.is_relative_to(CHECKOUT)
                fields[name] = folder.relative_to(CHECKOUT).as_posix() if inside else folder.name
        return fields


_REAL: Final = "real"
SETTINGS: Final[Mapping[str, Setting]] = {
    "full": Setting(),
    "short": Setting(
        sizes=(),
        base=BUNDLED_BASE,
        documents=150,
        chained_documents=50,
        held_out_documents=40,
        chunk=16,
        finetune_steps=20,
        finetune_batch=16,
        measure_every=10,
        chained_steps=10,
        count=6,
        k=(0, 10),
        chained_suites=("own-two-calls",),
    ),
    _REAL: Setting(
        sizes=("64x2", "128x4", "256x6"),
        pretrain_steps=6_000,
        pretrain_rate=4e-3,
        pretrain_warmup=200,
        pretrain_cooldown=0.3,
        pretrain_optimizer="muon",
        temperature=0.5,
        most_positions=5,
        most_samples=5,
        tau=("0.5", "Calendar=0.3", "WikiSearch=1.0", "QA=1.0", "MT=1.0"),
        without_result="closed",
        calls_precision="bfloat16",
        finetune_steps=400,
        suites=("paper",),
        prompts="paper",
        limit=200,
        k=(0, 10),
    ),
}
"""``full`` takes hours and gives figures; ``short`` takes minutes and shows that every step runs; ``real`` reads
the real text that it is given and takes days; with ``--base`` it takes under three hours (docs/results.md)."""

SHORT_NOTE: Final = "Setting short: it shows that the loop runs from end to end. Its figures mean nothing."


def add_options(parser: argparse.ArgumentParser) -> None:
    """An option for each field of `Setting`; one that is not given stays as the setting has it."""
    group = parser.add_argument_group("the setting's numbers, one by one")
    hints = get_type_hints(Setting, include_extras=True)
    for one in dataclasses.fields(Setting):
        kind, meaning = get_args(hints[one.name])
        several = get_origin(kind) is tuple
        if several or isinstance(kind, UnionType):
            kind = get_args(kind)[0]
        values = ", ".join(f"{name} {_shown(getattr(setting, one.name))}" for name, setting in SETTINGS.items())
        arguments: dict[str, Any] = {"default": argparse.SUPPRESS, "help": f"{meaning} ({values})"}
        if kind is bool:
            group.add_argument(_option(one.name), action=argparse.BooleanOptionalAction, **arguments)
        else:
            group.add_argument(
                _option(one.name), type=kind, nargs="+" if several else None, metavar=_SHOWN[kind], **arguments
            )


def chosen(name: str, options: argparse.Namespace) -> Setting:
    """The setting ``name``, with what ``options`` say otherwise.

    Raises:
        CommandError: if a number cannot hold.
    """
    given = {one.name: getattr(options, one.name) for one in dataclasses.fields(Setting) if hasattr(options, one.name)}
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    # Where the models come from is one choice with two names.
    if "sizes" in given:
        given.setdefault("base", None)
    elif "base" in given:
        given["sizes"] = ()
    given |= {name: given[name].absolute() for name in _FOLDERS if given.get(name) is not None}
    if name == _REAL and "real" not in given:
        raise CommandError(f"--setting {_REAL} needs texts: name their folder with --real")
    return dataclasses.replace(SETTINGS[name], **given)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    if isinstance(value, Path):
        return value.relative_to(CHECKOUT).as_posix()
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
