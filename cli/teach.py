"""``toolformer teach``: a tool, a model and texts in; a model that calls the tool and has forgotten nothing out.

The steps are the jobs' own commands, done one after the other as those of ``toolformer reproduce`` are: each is a
process with a log, and what is done is not done again.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
from rich.console import Console

from cli.components import load_registry, usable_cpus
from cli.console import CommandError
from cli.reproduce.command import show
from cli.reproduce.plan import Argument, Step, shards
from cli.reproduce.running import Runner
from cli.reproduce.settings import BUNDLED_BASE
from toolformer.model_files.home import BUNDLED_MODELS
from toolformer.model_files.whole import write_whole
from toolformer.tool_client import ToolClient
from toolformer.tools import Tool, ToolRegistry, UnknownTool
from training_jobs.corpora.web.generating import TRUTH_FILE
from training_jobs.options import job_parser
from training_jobs.run_folder import WITH_CALLS, RunFolder
from training_jobs.settings import finite, positive
from training_jobs.teach import holding_out, varying

BUNDLED: Final = BUNDLED_MODELS / "gptj-tools"
OLD_TOOLS: Final = ("Calculator", "Calendar", "WikiSearch", "QA", "MT")
"""What the bundled model calls; each has a suite of prompts that ask for it."""
_SEED_OF_OLD: Final = 6
"""Of generated texts: no other command's default seed writes these."""
_TOOLS_VARIABLE: Final = "TOOLFORMER_TOOLS"
_OF_DEMONSTRATIONS: Final = "demonstrations"
_RUNS: Final = Path("var") / "teach"
_SECONDS: Final = 10.0
"""In which a service must describe itself."""

_EXAMPLES: Final = """
toolformer teach convert/tools.toml                                  # with texts around its demonstrations
toolformer teach convert/tools.toml --proposals demonstrations       # and their calls, for a small base model
toolformer teach http://127.0.0.1:8110                               # a service that describes itself
toolformer teach Convert --texts texts.jsonl --rule rules:lengths --out RUN
toolformer teach Stock --model M --texts pages/*.json.gz --keep OLD/merge/with_calls.jsonl
"""


@dataclass(frozen=True, slots=True)
class Teaching:
    """What is taught, to which model, in the folder ``run``; ``options`` are the command's."""

    tool: Tool
    old_tools: tuple[str, ...]
    run: Path
    options: argparse.Namespace

    @property
    def model(self) -> Path:
        """Where the model will be."""
        return self.run / "finetuned" / "model"

    @property
    def base(self) -> Path:
        """The model that proposes and scores calls."""
        return Path(self.options.base or (BUNDLED_BASE if self.options.model == BUNDLED else self.options.model))

    def steps(self) -> Iterator[Step]:
        """The jobs' commands, in order."""
        folder = RunFolder(self.run)
        if not self.options.texts:
            yield self._texts()
        yield from self._annotated(folder)
        yield self._executed("", folder, (self.tool.name,))
        yield self._filtered(folder)
        yield self._held_out(folder)
        taught = RunFolder(self.run / holding_out.TAUGHT)
        yield self._merged("", taught, (self.tool.name,))
        kept = tuple(path.absolute() for path in self.options.keep)
        if not kept and self.options.model == BUNDLED and self.old_tools:
            old = RunFolder(self.run / "old")
            yield from self._old(old)
            kept = (old.merged / WITH_CALLS,)
        yield self._finetuned(taught.merged / WITH_CALLS, kept)
        yield self._evaluated("before", self.options.model)
        yield self._evaluated("taught", self.model)
        yield self._page()

    def _texts(self) -> Step:
        out = self.run / "texts"
        numbers = ("--documents", str(self.options.documents), "--seed", str(self.options.seed))
        return Step(
            "texts",
            f"write texts around the demonstrations of {self.tool.name}",
            "training_jobs.teach.varying",
            ("--tool", self.tool.name, "--out", out, *numbers),
            (out / varying.TEXTS_FILE, out / varying.CALLS_FILE),
        )

    def _annotated(self, folder: RunFolder) -> Iterator[Step]:
        """Calls are proposed: by a file, a rule, or the base model, if it follows the prompt's form."""
        own = tuple(path.absolute() for path in self.options.texts)
        texts = own or (self.run / "texts" / varying.TEXTS_FILE,)
        name, rule, proposals = self.tool.name, self.options.rule, self.options.proposals
        annotated = folder.file("annotate", name)
        if rule or proposals:
            who: tuple[Argument, ...] = ("--rule", rule) if rule else ("--proposals", Path(proposals).absolute())
            given: tuple[Path, ...] = (_source(rule),) if rule else (Path(proposals).absolute(),)
            if proposals == _OF_DEMONSTRATIONS:
                who, given = ("--proposals", self.run / "texts" / varying.CALLS_FILE), ()
            yield Step(
                "propose",
                f"propose calls of {name}",
                "training_jobs.teach.proposing",
                (*texts, "--run", self.run, "--model", self.base, "--tools", name, *who),
                (annotated,),
                inputs=(*own, *given),
            )
            return
        corpus = folder.file("corpus", name)
        asked: tuple[Argument, ...] = (
            "--run", self.run, "--model", self.base, "--tools", name, "--before-words", "--given-inputs"
        )  # fmt: skip
        yield Step(
            "corpus",
            "read the texts",
            "training_jobs.corpora.web",
            ("select", *texts, "--out", corpus.parent, "--tools", name, "--language", "any"),
            (corpus,),
            inputs=own,
        )
        yield Step("form", "does the model follow the prompt's form?", "training_jobs.teach.form", asked, ())
        title = f"the base model proposes calls of {name}"
        yield Step("annotate", title, "training_jobs.annotate", asked, (annotated,), how=_workers())

    def _executed(self, prefix: str, folder: RunFolder, tools: tuple[str, ...]) -> Step:
        return Step(
            f"{prefix}execute",
            "ask the tools",
            "training_jobs.execute",
            ("--run", folder.path, "--tools", *tools),
            tuple(folder.file("execute", tool) for tool in tools),
            services=bool(prefix),
        )

    def _filtered(self, folder: RunFolder) -> Step:
        return Step(
            "filter",
            "keep the calls that help",
            "training_jobs.filter",
            ("--run", folder.path, "--tools", self.tool.name, "--model", self.base, "--tau", self.options.tau,
             "--without-result", "closed"),
            (folder.file("filter", self.tool.name),),
            how=_workers(),
        )  # fmt: skip

    def _held_out(self, folder: RunFolder) -> Step:
        name, held_out = self.tool.name, self.run / holding_out.HELD_OUT
        return Step(
            "hold-out",
            "set apart texts to ask about",
            "training_jobs.teach.holding_out",
            ("--run", folder.path, "--tool", name, "--questions", str(self.options.questions)),
            (held_out / f"{name}.jsonl", held_out / holding_out.TEXTS_FILE),
        )

    def _merged(self, prefix: str, folder: RunFolder, tools: tuple[str, ...]) -> Step:
        return Step(
            f"{prefix}merge",
            "put the kept calls into their texts: C*",
            "training_jobs.merge",
            ("--run", folder.path, "--tools", *tools, "--calls-per-position", "1"),
            (folder.merged / WITH_CALLS,),
        )

    def _old(self, folder: RunFolder) -> Iterator[Step]:
        """C* of the bundled model's tools: their generator knows where calls belong, so none need be sampled or
        judged."""
        web, documents = folder.path / "web", self.options.old_documents
        texts = shards(web, documents)
        yield Step(
            "old-texts",
            "write texts of the old tools",
            "training_jobs.corpora.web",
            ("generate", "--out", web, "--documents", str(documents), "--seed", str(_SEED_OF_OLD)),
            (*texts, web / TRUTH_FILE),
        )
        yield Step(
            "old-propose",
            "propose the calls that the generator knows",
            "training_jobs.teach.proposing",
            (*texts, "--run", folder.path, "--model", self.base, "--tools", *self.old_tools,
             "--proposals", web / TRUTH_FILE),
            tuple(folder.file("annotate", tool) for tool in self.old_tools),
        )  # fmt: skip
        yield self._executed("old-", folder, self.old_tools)
        yield Step(
            "old-keep",
            "keep all that have a result",
            "training_jobs.teach.trusting",
            ("--run", folder.path, "--tools", *self.old_tools),
            tuple(folder.file("filter", tool) for tool in self.old_tools),
        )
        yield self._merged("old-", folder, self.old_tools)

    def _finetuned(self, texts: Path, kept: Sequence[Path]) -> Step:
        """With C* of the new tool; on that of the old ones the model is to stay as it was."""
        out, steps = self.model.parent, str(self.options.steps)
        weight = str(self.options.keep_weight)
        as_before: tuple[Argument, ...] = ("--as-before", *kept, "--as-before-weight", weight) if kept else ()
        return Step(
            "finetune",
            "finetune on C* of the new tool, and stay as before with the old ones",
            "training_jobs.finetune",
            ("--model", self.options.model, "--texts", texts, *as_before, "--out", out, "--steps", steps,
             "--evaluate-every", steps, "--batch", str(self.options.batch), "--rate", str(self.options.rate),
             "--schedule", "linear", "--mask-results", "--seed", str(self.options.seed),
             "--held-out", self.run / holding_out.HELD_OUT / holding_out.TEXTS_FILE),
            (self.model / "config.json", self.model / "model.safetensors", self.model / "tokenizer.json"),
            how=("--save-every", "25"),
            inputs=tuple(self.options.keep),
        )  # fmt: skip

    def _evaluated(self, name: str, model: Path) -> Step:
        suites = [f"tools-{tool}" for tool in self.old_tools]
        questions = self.run / holding_out.HELD_OUT / f"{self.tool.name}.jsonl"
        return Step(
            f"evaluate-{name}",
            f"ask the model, {name}, through a gateway",
            "training_jobs.evaluate",
            (*(("--suites", *suites) if suites else ()), "--file", questions, "--prompts", "bare", "--k", "0", "10",
             "--count", str(self.options.count), "--label", name, "--out", self.run / "evaluation" / name),
            (self.run / "evaluation" / name / "results.json",),
            services=True,
            gateway=model,
        )  # fmt: skip

    def _page(self) -> Step:
        page, table = self.run / "page.html", self.run / "page.md"
        runs = [self.run / "evaluation" / name for name in ("before", "taught")]
        files = ("--out", page, "--markdown", table)
        title = "before and after, with calls and without"
        return Step("page", title, "training_jobs.evaluate.compare", (*runs, *files), (page, table), summary=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Raises:
        CommandError: it cannot be done; the message says why.
    """
    options = make_parser().parse_args(arguments)
    environ = dict(os.environ)
    sys.path.insert(0, "")  # a rule is in the folder where the command is given
    tool = _tool(options.tool, options.out, environ)
    old = tuple(one.name for one in load_registry(environ) if one.name in OLD_TOOLS and one.name != tool.name)
    run = (options.out or _RUNS / tool.name).absolute()
    if options.proposals == _OF_DEMONSTRATIONS and options.texts:
        raise CommandError("--proposals demonstrations is for texts around the demonstrations: leave out --texts")
    teaching = Teaching(tool, old, run, options)
    steps, console = tuple(teaching.steps()), Console(stderr=True)
    if options.list:
        show(steps, run, Console())
        return 0
    asyncio.run(_require_ready(tool))
    Runner(run, steps, {"tool": tool.name}, console, environ).run()
    for said in (run / "page.html", f"toolformer up --model {teaching.model}"):
        console.print(str(said), markup=False, highlight=False, soft_wrap=True)
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = job_parser(
        "cli.teach",
        "Teach a model a tool: propose calls, ask the tool, keep those that help, finetune, evaluate. The tool's "
        "service must be up. Give the same command again to go on with a run that was ended.",
        _EXAMPLES,
    )
    parser.add_argument("tool", metavar="TOOL", help="its name, the file with its table, or its service's address")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the run (var/teach/TOOL)")
    parser.add_argument("--list", action="store_true", help="show the steps, which are done, and what each took")
    model = parser.add_argument_group("the models")
    model.add_argument("--model", type=Path, default=BUNDLED, metavar="DIR", help="the one to teach (gptj-tools)")
    model.add_argument(
        "--base", type=Path, metavar="DIR", help="proposes and scores calls (the bundled base, or else --model)"
    )
    texts = parser.add_argument_group("the texts and their calls")
    texts.add_argument(
        "--texts", type=Path, nargs="+", default=[], metavar="FILE",
        help="JSON lines, CCNet or Parquet; without them texts are made of the demonstrations",
    )  # fmt: skip
    texts.add_argument("--documents", type=positive, default=4_000, help="texts to make of the demonstrations (4,000)")
    calls = texts.add_mutually_exclusive_group()
    calls.add_argument(
        "--proposals", metavar="FILE", help="calls in the base model's place; 'demonstrations': those of the made texts"
    )
    calls.add_argument("--rule", metavar="MODULE:FUNCTION", help="the same, from a text to pairs of offset and input")
    texts.add_argument("--tau", default="0.5", metavar="NATS", help="what a call must gain to be kept (0.5)")
    texts.add_argument(
        "--keep", type=Path, nargs="+", default=[], metavar="FILE",
        help="C* of the tools that the model has, on which it stays as before; of the bundled model it is made",
    )  # fmt: skip
    texts.add_argument(
        "--keep-weight", type=finite, default=3.0, metavar="WEIGHT",
        help="of staying as before on them, beside 1 of learning the new tool (3)",
    )  # fmt: skip
    texts.add_argument("--old-documents", type=positive, default=3_000, help="texts to make it of (3,000)")
    recipe = parser.add_argument_group("finetuning and evaluation")
    recipe.add_argument("--steps", type=positive, default=200, help="of finetuning (200)")
    recipe.add_argument("--batch", type=positive, default=32, help="texts of a step (32)")
    recipe.add_argument("--rate", type=float, default=5e-4, help="learning rate, falling linearly (0.0005)")
    recipe.add_argument("--questions", type=positive, default=100, help="held-out texts to ask about, at most (100)")
    recipe.add_argument(
        "--count", type=positive, default=100, help="questions in each half of an old tool's suite (100)"
    )
    recipe.add_argument("--seed", type=int, default=0, help="of all that is drawn (0)")
    return parser


def _tool(given: str, out: Path | None, environ: dict[str, str]) -> Tool:
    """The tool that is called ``given``, that is the only table of that file, or whose service at that address
    describes itself; ``environ`` then names the file."""
    before, packaged = load_registry(environ), ToolRegistry.load([], {})
    file = _described(given, out) if given.startswith(("http://", "https://")) else Path(given)
    if not file.is_file():
        try:
            return before.named(given)
        except UnknownTool as error:
            raise CommandError(f"{error}; name one, the file with its table, or its service's address") from error
    environ[_TOOLS_VARIABLE] = os.pathsep.join(filter(None, (environ.get(_TOOLS_VARIABLE), str(file.absolute()))))
    new = [tool for tool in load_registry(environ) if tool.name not in packaged]
    own = [tool for tool in new if tool.name not in before] or new
    if len(own) != 1:
        names = ", ".join(tool.name for tool in own) or "none of its own"
        raise CommandError(f"{file}: has the tools {names}; name the file in {_TOOLS_VARIABLE}, and here one tool")
    return own[0]


def _described(url: str, out: Path | None) -> Path:
    """The file with the table that the service at ``url`` gives at ``/tool``."""
    try:
        table = httpx.get(f"{url.rstrip('/')}/tool", timeout=_SECONDS).raise_for_status().json()
        tool = Tool.model_validate({name: table[name] for name in table if name in Tool.model_fields} | {"url": url})
    except (httpx.HTTPError, ValueError, TypeError) as error:
        raise CommandError(f"{url}/tool: does not describe a tool with task and demonstrations: {error}") from error
    file = (out or _RUNS / tool.name) / "tools.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    fields = tool.model_dump(mode="json", exclude_unset=True, exclude={"name", "demonstrations"})
    shown = "".join(
        f"\n[[{tool.name}.demonstrations]]\ninput = {json.dumps(one.input)}\noutput = {json.dumps(one.output)}\n"
        for one in tool.demonstrations
    )
    write_whole(file, f"[{tool.name}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in fields.items()) + shown)
    return file


def _source(rule: str) -> Path:
    """The file of a rule's module; the run is another if it changes."""
    try:
        found = importlib.util.find_spec(rule.partition(":")[0])
    except (ImportError, ValueError):
        found = None
    if found is None or not found.origin:
        raise CommandError(f"--rule {rule}: there is no such module here; write module:function")
    return Path(found.origin)


async def _require_ready(tool: Tool) -> None:
    async with ToolClient(ToolRegistry([tool])) as client:
        state = await client.ready(tool.name)
    if not state:
        raise CommandError(f"{tool.name} is not up at {tool.url} ({state.reason}): start its service")


def _workers() -> tuple[str, str]:
    return ("--workers", str(usable_cpus()))
