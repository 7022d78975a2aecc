"""The plan: steps in an order in which each has what it needs; settings and what they refuse."""

import argparse
from pathlib import Path

import pytest

from cli.console import CommandError
from cli.reproduce.plan import Step, plan
from cli.reproduce.settings import SETTINGS, Setting, Size, add_options, chosen
from tests.cli.command import run
from training_jobs.evaluate.command_options import parser as evaluate_parser
from training_jobs.evaluate.suites import SUITES
from training_jobs.finetune.__main__ import make_parser as finetune_parser
from training_jobs.pipeline import make_parser as stages_parser


def setting(*arguments: str, name: str = "full") -> Setting:
    """What these options make of a setting."""
    parser = argparse.ArgumentParser()
    add_options(parser)
    return chosen(name, parser.parse_args(arguments))


def option(step: Step, name: str) -> list[str]:
    """The values of an option."""
    at = step.arguments.index(name) + 1
    behind = [str(one) for one in step.arguments[at:]]
    return behind[: next((n for n, one in enumerate(behind) if one.startswith("--")), None)]


def test_every_step_has_what_it_needs_before_it(tmp_path: Path) -> None:
    steps = plan(SETTINGS["full"], tmp_path)
    assert len({step.name for step in steps}) == len(steps)
    made: set[Path] = set()
    for step in steps:
        own = set(step.arguments[step.arguments.index("--out") + 1 :][:1] if "--out" in step.arguments else ())
        own |= set(step.arguments[step.arguments.index("--run") + 1 :][:1] if "--run" in step.arguments else ())
        for path in (*step.arguments, *([step.gateway] if step.gateway else [])):
            if isinstance(path, Path) and path.is_relative_to(tmp_path) and path not in own | set(step.products):
                assert any(one == path or path in one.parents for one in made), f"{step.name} lacks {path}"
        made |= set(step.products)


def test_one_model_goes_through_the_paper_in_its_order(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"n_positions": 512}')
    steps = plan(setting("--base", str(tmp_path), "--k", "0", "1", "10"), tmp_path / "run", "a note")
    assert [step.name for step in steps] == [
        "texts", "texts-chained", "held-out", "calls", "report", "finetune-cc", "finetune-toolformer",
        "evaluate-base", "evaluate-cc", "evaluate-toolformer",
        "calls-2", "report-2", "finetune-toolformer-2", "evaluate-toolformer-2", "table",
    ]  # fmt: skip
    known = {step.name: step for step in steps}
    cc, star = known["finetune-cc"], known["finetune-toolformer"]
    differ = {(str(one), str(other)) for one, other in zip(cc.arguments, star.arguments, strict=True) if one != other}
    assert len(differ) == 2, "only the file of texts and the folder"
    again = known["finetune-toolformer-2"]
    toolformer = str(tmp_path / "run" / "model" / "toolformer" / "model")
    assert option(again, "--model") == [toolformer]
    assert option(known["calls-2"], "--model") == option(known["calls"], "--model") == [str(tmp_path)]
    assert [Path(file).parts[-3] for file in option(again, "--texts")] == ["round-1", "round-2"]
    assert option(again, "--times") == ["1", "5"]
    assert option(again, "--steps") == option(again, "--evaluate-every") == ["250"]
    assert option(star, "--sequence-length") == ["512"], "no more than the given model has"
    assert option(known["evaluate-base"], "--k") == option(known["evaluate-cc"], "--k") == ["0"]
    assert option(known["evaluate-toolformer"], "--k") == ["0", "1", "10"]
    assert option(known["evaluate-toolformer-2"], "--max-calls") == ["1", "2"]
    assert option(known["evaluate-toolformer-2"], "--k") == ["3"]
    assert option(known["calls-2"], "--tools") == ["Calculator", "Calendar", "WikiSearch", "QA"]
    assert [step.name for step in steps if step.gateway] == [name for name in known if name.startswith("evaluate")]
    assert all(step.services for step in steps if step.gateway or step.module == "training_jobs.pipeline")
    assert option(known["table"], "--note") == ["a note"]


def test_sizes_are_told_apart_and_put_on_one_page(tmp_path: Path) -> None:
    steps = plan(setting("--sizes", "128x3", "256x4"), tmp_path)
    labels = [option(step, "--label") for step in steps if step.module == "training_jobs.evaluate"]
    assert labels[2] == ["Toolformer 128x3"]
    assert len({str(label) for label in labels}) == 8
    assert [step.name for step in steps][-1] == "scaling"
    assert option(steps[-1], "--figure") == [str(tmp_path / "figure-4.svg")]
    assert tmp_path / "figure-4.svg" in steps[-1].products
    none = plan(setting("--sizes", "128x3", "256x4", "--suites", "own-languages"), tmp_path)[-1]
    assert "--figure" not in none.arguments, "there would be nothing to draw"
    assert [step.name for step in steps].count("base-corpus") == 1
    seeds = {
        option(step, "--seed")[0]
        for step in steps
        if step.module in ("training_jobs.corpora.base", "training_jobs.corpora.web")
    }
    assert seeds == {"0", "1", "2", "3"}, "texts to read, to annotate and to hold out are different ones"


def test_what_a_call_must_be_is_passed_to_both_rounds(tmp_path: Path) -> None:
    chosen = setting("--sizes", "64x1", "--tau", "1.0", "QA=0.5", "--chained-tau", "0.3", "--no-given-inputs")
    calls = [step for step in plan(chosen, tmp_path) if step.module == "training_jobs.pipeline"]
    assert [step.name for step in calls] == ["calls-64x1", "calls-2-64x1"]
    assert [option(step, "--tau") for step in calls] == [["1.0", "QA=0.5"], ["0.3"]]
    for step in calls:
        assert option(step, "--calls-per-position") == ["1"]
        assert "--before-words" in step.arguments
        assert "--given-inputs" not in step.arguments


def test_the_jobs_know_the_options_that_they_are_given(tmp_path: Path) -> None:
    parsers = {
        "training_jobs.pipeline": stages_parser(),
        "training_jobs.finetune": finetune_parser(),
        "training_jobs.evaluate": evaluate_parser(),
    }
    steps = plan(setting("--sizes", "64x1", "--mask-results", "--finetune-schedule", "cosine"), tmp_path)
    known = [
        parsers[step.module].parse_args([str(one) for one in (*step.arguments, *step.how)])
        for step in steps
        if step.module in parsers
    ]
    assert len(known) == 9
    trained = [options for options in known if hasattr(options, "mask_results")]
    assert [(options.mask_results, options.schedule) for options in trained] == [(True, "cosine")] * 3


def test_texts_of_more_than_one_shard(tmp_path: Path) -> None:
    [texts] = [step for step in plan(setting("--documents", "2001"), tmp_path) if step.name == "texts"]
    assert [path.name for path in texts.products] == [*(f"generated-000{n}.json.gz" for n in range(3)), "truth.jsonl"]


def test_each_number_has_an_option() -> None:
    made = setting("--seed", "3", "--tau", "1.0", "QA=0.5", "--finetune-rate", "1e-4", name="short")
    assert (made.seed, made.tau, made.finetune_rate) == (3, ("1.0", "QA=0.5"), 1e-4)
    assert made.documents == SETTINGS["short"].documents
    assert setting("--sizes", "64x1", name="short").base is None
    assert setting("--base", "models/x").sizes == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--documents", "0"), "--documents must be above 0, not 0"),
        (("--seed", "-1"), "--seed must be at least 0, not -1"),
        (("--precision", "float8"), "--precision must be one of bfloat16, float32, not float8"),
        (
            ("--finetune-schedule", "falling"),
            "--finetune-schedule must be one of constant, linear, cosine, not falling",
        ),
        (("--finetune-steps", "9"), "--measure-every must be at most the 9 of --finetune-steps, not 100"),
        (("--sizes", "100x2"), "--sizes: '100x2' is no size: write WIDTHxLAYERS"),
        (("--sizes", "256x0"), "--sizes: '256x0' is no size"),
        (("--sizes", "64x2", "--base", "x"), "--base takes the place of --sizes"),
        (("--chained-calls", "0"), "--chained-calls must be above 0"),
        (("--tau", "1.0", "QA=much"), "--tau must be numbers of nats, or TOOL=number, not 'QA=much'"),
        (("--chained-tau", "nan"), "--chained-tau must be numbers of nats"),
        (("--suites", "own", "squad2"), "--suites: there is no 'squad2'; did you mean 'squad'? sets: "),
        (("--chained-suites", "own2"), "--chained-suites: there is no 'own2'; did you mean 'own'? sets: "),
    ],
)
def test_what_cannot_hold_is_refused_by_name(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError) as refused:
        setting(*arguments)
    assert str(refused.value).startswith(message)


def test_sizes_have_whole_heads() -> None:
    assert (Size.parse("384x6").heads, Size.parse("384x6").rotary_dim) == (6, 32)
    assert (Size.parse("32x1").heads, Size.parse("32x1").rotary_dim) == (1, 16)


async def test_the_command_lists_its_steps_and_refuses_in_one_line(tmp_path: Path) -> None:
    status, out, _ = await run("reproduce", "--out", str(tmp_path / "run"), "--list")
    assert status == 0
    assert "evaluate-toolformer-2-384x6" in out
    assert not (tmp_path / "run").exists(), "to look makes nothing"
    status, _, log = await run("reproduce", "--base", str(tmp_path), "--list")
    assert (status, log.count("\n")) == (1, 1)
    assert "holds no checkpoint" in log
    for option, given in {"--chained-tools": ["QA", "Atlas"], "--tau": ["0.5", "Atlas=1"]}.items():
        status, _, log = await run("reproduce", option, *given, "--list")
        assert (status, log.count("\n")) == (1, 1)
        assert f"{option}: there is no tool 'Atlas'; the tools: Calculator" in log
    status, _, log = await run("reproduce", "--until", "finetune")
    assert (status, log.count("\n")) == (1, 1)
    assert "--until: there is no step 'finetune'; the steps: base-corpus, texts" in log


def test_real_texts_must_be_named() -> None:
    with pytest.raises(CommandError, match="--setting real needs texts: name their folder with --real"):
        setting(name="real")


@pytest.mark.parametrize("data", [[], ["--data", "{folder}"]])
def test_benchmarks_that_are_not_there_are_missed_before_the_first_step(data: list[str], tmp_path: Path) -> None:
    given = [one.format(folder=tmp_path) for one in data]
    with pytest.raises(CommandError, match=r"--data: asdiv needs .*: name the folder of the benchmarks"):
        plan(setting("--suites", "asdiv", *given), tmp_path / "run")
    if data:
        for pattern in SUITES["asdiv"].files:
            (tmp_path / pattern.replace("*", "x")).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / pattern.replace("*", "x")).touch()
        assert plan(setting("--suites", "asdiv", *given), tmp_path / "run")


def test_real_texts_are_read_and_taught_on_and_the_toolformer_does_round_two(tmp_path: Path) -> None:
    chosen = setting(
        "--real", str(tmp_path / "real"), "--data", "/data", "--suites", "own", "--sizes", "256x6", name="real"
    )
    rounds = [f"round-{n}/corpus/{tool}.jsonl" for n in (1, 2) for tool in ("Calculator", "QA")]
    for name in ("manifest.json", *rounds, "plain.jsonl", "held-out.jsonl"):
        with pytest.raises(CommandError, match=r"--real: .* has no .*: make it with toolformer jobs real-text"):
            plan(chosen, tmp_path / "run")
        (tmp_path / "real" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "real" / name).write_text("{}\n")
    steps = plan(chosen, tmp_path / "run")
    assert [step.name for step in steps] == [
        "pretrain-256x6", "calls-256x6", "finetune-cc-256x6", "finetune-toolformer-256x6",
        "evaluate-base-256x6", "evaluate-cc-256x6", "evaluate-toolformer-256x6",
        "calls-2-256x6", "finetune-toolformer-2-256x6", "evaluate-toolformer-2-256x6", "table-256x6",
    ]  # fmt: skip
    known = {step.name.removesuffix("-256x6"): step for step in steps}
    model = tmp_path / "run" / "256x6"
    assert option(known["pretrain"], "--corpus") == [str(tmp_path / "real")]
    for round_, teacher in (("", "pretrain"), ("-2", "toolformer")):
        calls = known[f"calls{round_}"]
        assert option(calls, "--corpus") == [str(tmp_path / "real" / f"round{round_ or '-1'}" / "corpus")]
        assert option(calls, "--model") == [str(model / teacher / "model")]
        stages_parser().parse_args([str(one) for one in (*calls.arguments, *calls.how)])
        assert {"Calculator.jsonl", "QA.jsonl"} <= {one.name for one in calls.inputs}, "other texts are another run"
    again = known["finetune-toolformer-2"]
    assert option(again, "--model") == [str(model / "pretrain" / "model")]
    assert [Path(one).name for one in option(again, "--texts")] == [
        "with_calls.jsonl",
        "with_calls.jsonl",
        "plain.jsonl",
    ]
    assert option(again, "--held-out") == [str(tmp_path / "real" / "held-out.jsonl")]
    assert option(again, "--steps") == option(again, "--evaluate-every"), "prose would choose the first checkpoint"
    assert option(known["evaluate-toolformer-2"], "--data") == ["/data"]
    assert option(known["evaluate-cc"], "--limit") == ["200"], "whole benchmarks take days"
