"""The ``toolformer`` command and its subcommands.

``toolformer --help`` answers at once: what a subcommand needs beyond the option parser is imported when it runs.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import os
from pathlib import Path
from typing import Annotated, Any, Final

import typer

app = typer.Typer(
    name="toolformer",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="""Language models that call tools in the middle of their text.

    Start with `toolformer up`; in another terminal `toolformer complete "Today is"`.
    If something is amiss: `toolformer doctor`.""",
)
jobs = typer.Typer(
    name="jobs",
    no_args_is_help=True,
    help="The stages that make a model that uses tools: `toolformer jobs pretrain --help`.",
)
index = typer.Typer(
    name="index", no_args_is_help=True, help="Search indexes: `toolformer index wiki --pages bundled --index var/wiki`."
)

MODELS_HELP = """A folder with a Hugging Face checkpoint to serve: GPT-J, or another causal model that transformers
    loads with plain attention and a key-value cache, such as Llama or GPT-2. By default the bundled
    gptj-tools."""

Url = Annotated[
    str | None,
    typer.Option(envvar="TOOLFORMER_GATEWAY_URL", help="The gateway's address; by default this machine's port 8080."),
]


def _day(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no day: write year, month and day, such as 2030-01-31") from None


Date = Annotated[dt.date | None, typer.Option(parser=_day, metavar="YYYY-MM-DD", help="The day tools take for today.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        from cli.doctor import project_version

        typer.echo(f"toolformer {project_version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
def up(
    tools: Annotated[
        str | None,
        typer.Option(metavar="NAME,...", help="Tool services to start, such as `Calculator,Calendar`; by default all."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The gateway's port, 8080 by default; 0 takes a free one.")
    ] = None,
    grpc_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Serve gRPC as well, on this port; 0 takes a free one.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(metavar="DIR", exists=True, file_okay=False, help=MODELS_HELP),
    ] = None,
    gateway: Annotated[bool, typer.Option("--gateway/--no-gateway", help="Whether to start the gateway.")] = True,
    sample: Annotated[bool, typer.Option("--sample", help="Stream a sample completion once ready.")] = False,
    wait: Annotated[float, typer.Option(min=1, metavar="SECONDS", help="How long to wait until all are ready.")] = 600,
) -> None:
    """Start the tool services and the gateway, and keep them running until Ctrl-C.

    Prints `ready: http://HOST:PORT` on standard output when all of them can answer; the log goes to standard error.
    A second Ctrl-C stops at once.

    Examples:

    - `toolformer up --sample`
    - `toolformer up --tools Calculator,Calendar --port 9000 --grpc-port 9001`
    - `TOOLFORMER_CALCULATOR_PORT=9101 toolformer up`
    """
    from cli.components import (
        gateway_component,
        left_out,
        load_registry,
        service_components,
        tool_names,
        tools_elsewhere,
    )
    from cli.console import CommandError, printable
    from cli.up import up as run_until_stopped

    for option, given in (("--sample", sample), ("--grpc-port", grpc_port is not None)):
        if given and not gateway:
            raise CommandError(f"{option} needs the gateway: leave out --no-gateway")
    chosen = None if tools is None else tool_names(tools)
    registry = load_registry(os.environ)
    components = service_components(registry, chosen, os.environ)
    for tool, reason in left_out(registry).items() if chosen is None else ():
        typer.echo(f"toolformer: {tool} is left out: {printable(reason)}", err=True)
    elsewhere = tools_elsewhere(registry, components) if gateway else {}
    if gateway:
        components.append(gateway_component(components, os.environ, port=port, grpc_port=grpc_port, model=model))
    if not components:
        raise CommandError("there is nothing to start: name services with --tools, or leave out --no-gateway")
    address = components[-1].url
    running = run_until_stopped(components, address=address, sample=sample, wait_seconds=wait, elsewhere=elsewhere)
    raise typer.Exit(asyncio.run(running))


@app.command()
def complete(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The prompt; `-` reads it from standard input.")],
    tools: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Tools that may be called, such as `Calculator,Calendar`.")
    ] = None,
    no_tools: Annotated[bool, typer.Option("--no-tools", help="Call no tools.")] = False,
    max_calls: Annotated[int | None, typer.Option(min=0, help="Tool calls at most.")] = None,
    api_top_k: Annotated[
        int | None, typer.Option(min=0, help="A call may start where it is among the k likeliest tokens; 0 for none.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Tokens the model may make.")] = 64,
    temperature: Annotated[float, typer.Option(min=0, max=2, help="0 takes the likeliest token each time.")] = 0.0,
    top_k: Annotated[
        int | None, typer.Option(min=1, help="With a temperature: choose among that many likeliest tokens.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="With a temperature: repeats the same text.")] = None,
    stop: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="End before this text; again for more, up to 4.")
    ] = None,
    one_sentence: Annotated[bool, typer.Option("--one-sentence", help="End with the first sentence.")] = False,
    n: Annotated[int, typer.Option("--n", min=1, help="How many completions; printed at the end, numbered.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the gateway's JSON, with calls and counts.")] = False,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The served model's name, to be sure of it.")
    ] = None,
    date: Date = None,
    echo: Annotated[
        bool | None,
        typer.Option("--echo/--no-echo", help="Whether to print the prompt first; by default on a terminal."),
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="How long the whole may take.")] = 120.0,
    url: Url = None,
) -> None:
    """Complete a text, streamed from a running gateway; tool calls are in the text in colour.

    Why a text is empty or cut, and which calls had no result, goes to standard error. The status is 0 for a
    completion, cut or not; 1 where there is none or it broke off; 2 for wrong options; 130 after Ctrl-C.

    Examples:

    - `toolformer complete "There are 24 boxes with 17 books each. How many books are there altogether? The answer is"`
    - `toolformer complete "Today is" --tools Calendar --date 2030-01-31`
    - `toolformer complete "Today is" --n 3 --temperature 0.8 --seed 1 --stop "."`
    - `cat prompt.txt | toolformer complete - --no-tools --json`
    """
    import sys

    from cli.complete import CompletionPrinter, print_completions, read_prompt, stream_completion
    from cli.components import DEFAULT_URL, tool_names
    from cli.console import CommandError

    if no_tools and tools is not None:
        raise CommandError("--tools and --no-tools exclude each other: give one of them")
    prompt = read_prompt(text)
    body: dict[str, Any] = {"prompt": prompt, "max_tokens": max_tokens, "temperature": temperature}
    if no_tools or tools is not None:
        body["tools"] = tool_names(tools or "")
    optional = {
        "max_calls": max_calls,
        "api_top_k": api_top_k,
        "top_k": top_k,
        "seed": seed,
        "stop": stop or None,
        "stop_at": "sentence" if one_sentence else None,
        "n": n if n > 1 else None,
        "model": model,
        "tool_context": {"date": date.isoformat()} if date else None,
    }
    body |= {name: value for name, value in optional.items() if value is not None}
    if as_json or n > 1:
        asyncio.run(print_completions(url or DEFAULT_URL, body, as_json=as_json, seconds=timeout))
        return
    printer = CompletionPrinter(echo=prompt if (sys.stdout.isatty() if echo is None else echo) else None)
    asyncio.run(stream_completion(url or DEFAULT_URL, body, printer, seconds=timeout))


@app.command()
def call(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The tool's name in text, such as `Calculator`.")],
    text: Annotated[str, typer.Argument(metavar="[INPUT]", help="What is between the call's parentheses.")] = "",
    date: Date = None,
) -> None:
    """Call one tool and print its answer; without an answer, the reason goes to standard error and the status is 1.

    Examples:

    - `toolformer call Calculator "400 / 1400"`
    - `toolformer call Calendar --date 2030-01-31`
    - `toolformer call WikiSearch "Ljubljana population"`
    """
    from cli.tool_commands import call_tool

    asyncio.run(call_tool(tool, text, date))


@app.command()
def tools() -> None:
    """List the tools: where each answers, whether it is up, its limits.

    Examples:

    - `toolformer tools`
    - `TOOLFORMER_TOOLS=my-tools.toml toolformer tools`
    """
    from cli.tool_commands import show_tools

    asyncio.run(show_tools())


@app.command("new-tool")
def new_tool(
    name: Annotated[str, typer.Argument(help="The tool's name in text, such as `Convert`.")],
    out: Annotated[Path | None, typer.Option(help="The folder to write; by default the name in small letters.")] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where its service listens.")] = 8110,
) -> None:
    """Write a tool of your own from a template: its service, its table for `TOOLFORMER_TOOLS`, its test, a Dockerfile.

    Examples:

    - `toolformer new-tool Convert`
    - `toolformer new-tool Convert --out tools/convert --port 8200`
    """
    from cli.new_tool import write_tool

    files = write_tool(name, out or Path(name.lower()), port)
    folder = files[0].parent
    typer.echo(f"wrote {', '.join(map(str, files))}\nedit `answer` in service.py and the table, then:")
    typer.echo(f"  pytest {folder}\n  python {folder / 'service.py'}")
    typer.echo(f"  TOOLFORMER_TOOLS={folder / 'tools.toml'} toolformer tools")


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check this machine: what is wrong, and how to mend it. The status is 1 if there are problems.

    Examples:

    - `toolformer doctor`
    - `toolformer doctor --json`
    """
    from cli.doctor import diagnose, show_findings

    findings = diagnose(os.environ)
    show_findings(findings, as_json=as_json)
    raise typer.Exit(1 if any(finding.status == "problem" for finding in findings) else 0)


@app.command()
def fetch(
    parts: Annotated[
        list[str] | None, typer.Argument(metavar="[PART]...", help="What to fetch or check, or to list with --json.")
    ] = None,
    to: Annotated[Path | None, typer.Option(metavar="DIR", file_okay=False, help="The folder to fetch into.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Look whether what was fetched is whole.")] = False,
    digests: Annotated[bool, typer.Option("--digests", help="With --check: hash every file again.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list, or what --check found, as JSON.")] = False,
    connections: Annotated[int, typer.Option(min=1, max=32, help="Files that come at once.")] = 4,
    parts_file: Annotated[
        Path | None,
        typer.Option("--parts", metavar="FILE", help="Other parts or addresses, in the form of cli/fetch/parts.toml."),
    ] = None,
) -> None:
    """List, fetch and check the published weights and data that a run with real models needs.

    A killed or cut download goes on where it was when the same command is given again; what is whole is not fetched
    twice. `HF_TOKEN`, `HF_ENDPOINT` and proxy variables are respected. With --check the status is 1 if something is
    amiss.

    Examples:

    - `toolformer fetch`
    - `toolformer fetch gpt-j nllb language-id --to /data`
    - `toolformer fetch --check --digests --to /data`
    """
    from cli.fetch.command import run_fetch

    status = run_fetch(
        parts or [],
        to=to,
        check=check,
        digests=digests,
        as_json=as_json,
        parts_file=parts_file,
        connections=connections,
        environ=os.environ,
    )
    raise typer.Exit(status)


def _forward(name: str, module: str, summary: str, *examples: str) -> None:
    """Add a subcommand whose options are those of ``module``'s own ``main(arguments)`` (a package's ``__main__``)."""
    command, parent = f"toolformer {name}", {"jobs": jobs, "index": index}.get(name.split()[0], app)

    def run(context: typer.Context) -> None:
        from cli.forwarded import main_of, shown_as

        with shown_as(command, [f"{command} {example}" for example in examples]):
            raise typer.Exit(main_of(module)(list(context.args)) or 0)

    run.__doc__ = summary
    settings = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    parent.command(name.split()[-1], context_settings=settings)(run)


_FORWARDED: Final[tuple[tuple[str, ...], ...]] = (
    ("evaluate", "training_jobs.evaluate", "Benchmarks and held-out prompts against a served model."),
    ("quantize", "language_model.native.quantize", "Weights as int8 or int4, for a gateway on a processor."),
    ("reproduce", "cli.reproduce.command", "The whole loop, from texts to the table of results; goes on where it was.",
     "--out RUN", "--setting short --out RUN"),
    ("teach", "cli.teach", "Teach a model a tool of your own; goes on where it was."),
    ("jobs corpus", "training_jobs.corpora.web", "Write or read plain texts, and keep for each tool what is worth it.",
     "generate --out WEB", "select WEB/*.json.gz --out C --language-id lid.176.ftz"),
    ("jobs base", "training_jobs.corpora.base", "Texts and ids that the small base model is trained on.",
     "--out DIR --texts 45000"),
    ("jobs real-text", "training_jobs.corpora.real_text", "Real text and ids that a base model is trained on.",
     "--from SOURCES --exams DATA --pairs train.tsv --out CORPUS"),
    ("jobs reading", "training_jobs.corpora.reading", "Real questions with passages, for a reader to learn from.",
     "--from SOURCES --exams DATA --out READING"),
    ("jobs copying", "training_jobs.corpora.base.copying", "Whether a base model copies: if not, no call helps it.",
     "models/base"),
    ("jobs form", "training_jobs.teach.form", "Whether a model follows the form of a tool's prompt, in a minute."),
    ("jobs demonstrations", "training_jobs.corpora.demonstrations", "Texts with known calls, executed and encoded.",
     "--out DIR --documents 200"),
    ("jobs run", "cli.stage_run.command",
     "From texts to C*: all stages, one after the other; or one: `run STAGE --on local|docker|k8s`."),
    ("jobs annotate", "training_jobs.annotate", "Ask a model which calls help in texts, and where.",
     "--run RUN --model models/base", "--run RUN --model models/base --tools Calculator Calendar"),
    ("jobs execute", "training_jobs.execute", "Ask the tools for the result of every proposed call.", "--run RUN"),
    ("jobs filter", "training_jobs.filter", "Keep the calls that help to predict what follows.",
     "--run RUN --model models/base", "--run RUN --tau 0.5 --tau MT=0.2"),
    ("jobs merge", "training_jobs.merge", "Put the kept calls into their texts: C*, its table and page.", "--run RUN"),
    ("jobs report", "training_jobs.report", "Show what a run kept: table, examples, a page to look at.", "--run RUN"),
    ("jobs compare", "training_jobs.evaluate.compare", "Results of several evaluations beside each other."),
    ("jobs finetune", "training_jobs.finetune", "Finetune a model on C*, or on C for the baseline."),
    ("jobs pretrain", "training_jobs.pretrain", "Train a small GPT-J on a corpus.", "--corpus CORPUS --out DIR"),
    ("index wiki", "services.wiki_search.index", "Build the index that Wikipedia search reads.",
     "--pages bundled --index var/wiki"),
)  # fmt: skip
"""Subcommands whose options another module reads: name, module, what it does; examples, if its help has none."""
for _row in _FORWARDED:
    _forward(*_row)
app.add_typer(jobs)
app.add_typer(index)


def main() -> None:
    """Run the command.

    Raises:
        SystemExit: always; 1 with a word on standard error for what the command cannot do, 130 after Ctrl-C.
    """
    from cli.console import CommandError, fail

    try:
        app()
    except CommandError as error:
        fail(str(error))
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:
        # Who read our output has gone, as `head` does; Python would complain once more while it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise SystemExit(141) from None


if __name__ == "__main__":
    main()
