"""Results of several models beside each other: tables, the plot over model size, and the page in headless Chromium."""

import json
import re
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.support.browser import needs_chromium, page
from training_jobs.evaluate import compare
from training_jobs.evaluate.answers import Answer, AnswersFile, Call
from training_jobs.evaluate.asking_suites import Answers, answers_path
from training_jobs.evaluate.conditions import DISABLED, Condition, conditions
from training_jobs.evaluate.outcome import Outcome
from training_jobs.evaluate.page import write_page
from training_jobs.evaluate.perplexity import TextLoss
from training_jobs.evaluate.scores import score
from training_jobs.evaluate.suites import SUITES
from training_jobs.evaluate.tables import tables

EVIL = "</script><script>document.title = 'taken'</script><img src=x onerror=alert(1)>"
ENABLED = Condition(10)


def answers(right: int, n: int, tool: str | None) -> list[Answer]:
    call = (Call(tool, "2 + 2", "4", None),) if tool else ()
    return [
        Answer(
            f"e{number}", "half" if number % 2 else "other half", f"Asked {number}: {EVIL}", None, ("4",),
            text=" 4." if number < right else f" wrong {EVIL}", calls=call, right=number < right,
        )
        for number in range(n)
    ]  # fmt: skip


def outcome(
    folder: Path, label: str, parameters: int, right: int, asked: tuple[Condition, ...]
) -> tuple[Outcome, Answers]:
    """A model that is right so often of 10 word problems and facts with calls, and once without."""
    found: Answers = {}
    for condition in asked:
        for name in ("svamp", "own-facts", "t-rex"):
            some = answers(1 if condition.disabled else right, 10, None if condition.disabled else "Calculator")
            found[condition, name] = some
            with AnswersFile(answers_path(folder, condition, name), {}) as file:
                for answer in some:
                    file.add(answer)
    scores = tuple(score(SUITES[name], condition, some) for (condition, name), some in found.items())
    losses = {"ccnet": TextLoss(70.0, 30, 2, 100)}
    made = Outcome(label, parameters, {"seed": 0}, scores, losses, {"svamp": {"no number": 3}}, folder)
    made.write(folder)
    return made, found


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    asked = (DISABLED, ENABLED)
    for label, parameters, right in (("tiny", 1_000_000, 2), ("large", 6_700_000_000, 9)):
        outcome(tmp_path / label, label, parameters, right, asked)
    return [tmp_path / "tiny", tmp_path / "large"]


def test_tables_stand_beside_the_papers(runs: list[Path]) -> None:
    found = {table.title: table for table in tables([Outcome.read(run) for run in runs])}
    problems = found["Word problems (table 4)"]
    assert problems.heading[1].startswith("SVAMP")
    rows = {row[0]: row[1] for row in problems.rows}
    assert rows["Toolformer [paper]"] == "29.4"
    assert rows["GPT-3 (175B) [paper]"] == "10.0"
    assert rows["large"] == "90.0 (60-98)"
    assert rows["large (disabled)"] == "10.0 (2-40)"
    lama = {row[0]: row[1] for row in found["LAMA (table 3)"].rows}
    assert lama["Toolformer (disabled) [paper]"] == "34.9"
    assert [row[0] for row in found["The project's own suites"].rows] == [
        "tiny (disabled)",
        "tiny",
        "large (disabled)",
        "large",
    ]
    assert found["Examples with calls"].heading[2:4] == ("any call, %", "Calculator")
    assert {row[2] for row in found["Examples with calls"].rows} == {"100.0"}
    modelling = found["Language modelling (table 8)"]
    assert modelling.rows[0] == ("GPT-J [paper]", "10.6")
    assert modelling.rows[-1] == ("large", "10.31 (1.010)")
    assert ("facts", "half", "large", "80.0 (38-96)", "5") in found["Parts of suites"].rows


def test_table_nine_over_k(tmp_path: Path) -> None:
    asked = conditions([0, 1, 3, 10], [1])
    made, _ = outcome(tmp_path, "one", 0, 5, asked)
    table = next(table for table in tables([made]) if table.title.startswith("How freely"))
    rows = [row for row in table.rows if row[0] == "T-REx"]
    assert [row[2] for row in rows] == ["0", "1", "3", "10"]
    assert [row[8:] for row in rows] == [
        ("34.9", "-", "34.9", "0.0"),
        ("47.8", "53.0", "44.3", "40.3"),
        ("52.9", "58.0", "29.0", "82.8"),
        ("53.5", "54.0", "22.5", "98.1"),
    ]
    assert [row[7] for row in rows] == ["0.0", "100.0", "100.0", "100.0"]
    assert rows[1][4:7] == ("50.0 (24-76)", "50.0 (24-76)", "-")


def test_conditions_that_disable_calls_are_one() -> None:
    assert conditions([0, 10, 0], [1, 2]) == (DISABLED, Condition(10, 1), Condition(10, 2))
    assert conditions([3], [1]) == (Condition(3, 1),)


def test_runs_are_compared_by_the_command(runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "both.html"
    compare.main([*map(str, runs), "--out", str(out)])
    printed = capsys.readouterr().out
    assert "large (disabled)" in printed
    assert "29.4" in printed
    made = out.read_text(encoding="utf-8")
    assert made.count("<script") == made.count("</script>") == 1
    assert not re.search(r"""(?:src|href)=["'](?!data:)""", made.split("const data")[0])
    for wrong, message in (([runs[0], runs[0]], "two runs are called 'tiny'"), ([tmp_path / "none"], "cannot be read")):
        with pytest.raises(SystemExit):
            compare.main([str(run) for run in wrong])
        assert message in capsys.readouterr().err
    (runs[0] / "results.json").write_text(json.dumps({"label": 1}))
    with pytest.raises(SystemExit):
        compare.main([str(runs[0])])
    assert "is not the results of a run" in capsys.readouterr().err


def test_tables_are_written_as_markdown_under_a_note(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, page_ = tmp_path / "new" / "results.md", tmp_path / "results.html"
    compare.main([*map(str, runs), "--markdown", str(out), "--out", str(page_), "--note", "one seed | two sizes"])
    note, *found = out.read_text(encoding="utf-8").split("### ")
    assert note == "one seed | two sizes\n\n"
    assert "one seed" in page_.read_text(encoding="utf-8")
    tables_ = {one.splitlines()[0]: one.splitlines()[2:] for one in found}
    lines = tables_["The project's own suites"]
    assert lines[0] == "| right, % | facts, n = 10 |"
    assert lines[1] == "|---|---|"
    assert lines[2].startswith("| tiny (disabled) | 10.0 (")
    assert all(line.count("|") == 3 for line in lines[:6])
    assert lines[-2].startswith("In parentheses: ")
    assert "…" not in capsys.readouterr().out, "a pipe's lines are as long as they need to be"


@needs_chromium
@pytest.mark.slow
async def test_a_person_looks_at_the_results(runs: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    compared = [Outcome.read(run) for run in runs]
    write_page(out, compared, compare.kept_answers(compared[-1]))
    async with page(viewport={"width": 375, "height": 700}, color_scheme="dark") as opened:
        await opened.goto(out.as_uri())
        assert await opened.title() == "Evaluation"
        # As wide as the phone: what is wider scrolls inside.
        assert await opened.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert await opened.evaluate("getComputedStyle(document.body).colorScheme") == "light dark"
        await expect(opened.locator("#bars .bar")).to_have_count(12)
        first = opened.locator("#bars .bar", has_text="90.0 %").first
        assert await first.locator(".fill").evaluate("fill => fill.style.width") == "90%"
        assert (await first.locator(".track").get_attribute("title") or "").startswith("90.0 %, 95 % interval 59.6 %")
        await expect(opened.locator("#scaling svg polyline")).to_have_count(2)
        await expect(opened.locator("#scaling svg circle title").first).to_have_text(
            re.compile(r"1\.0 M: 10\.0 %, 95 % interval 1\.8 % to 40\.4 %")
        )
        await expect(opened.locator("#tables h2")).to_have_count(6)
        await expect(opened.locator("#number")).to_have_text("60 examples")
        await opened.select_option("#outcome", "wrong")
        await expect(opened.locator("#number")).to_have_text("30 examples")
        await opened.select_option("#row", "large")
        await expect(opened.locator("#number")).to_have_text("3 examples")
        await opened.select_option("#suite", "facts")
        item = opened.locator("#examples li")
        await expect(item).to_have_count(1)
        text = await item.inner_text()
        assert f"Asked 9: {EVIL} wrong {EVIL}" in text
        assert "Calculator(2 + 2) -> 4" in text
        assert "right: 4" in text
        await opened.fill("#words", "no such words")
        await expect(opened.locator("#none")).to_be_visible()
