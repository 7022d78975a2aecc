"""Accuracy over model size: which points there are, and the figure."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from training_jobs.evaluate import compare
from training_jobs.evaluate.answers import Answer
from training_jobs.evaluate.conditions import DISABLED, Condition
from training_jobs.evaluate.example import SuiteError
from training_jobs.evaluate.outcome import Outcome
from training_jobs.evaluate.scaling import scaling, size_name, write_figure
from training_jobs.evaluate.scores import score
from training_jobs.evaluate.suites import SUITES

ENABLED = Condition(10)
SVG = "{http://www.w3.org/2000/svg}"


def outcome(parameters: int, right: dict[str, int], *asked: Condition, n: int = 10) -> Outcome:
    """A model with so many answers of each suite right."""
    scores = tuple(
        score(
            SUITES[suite],
            condition,
            [Answer(f"e{at}", "all", "Asked", None, ("4",), text="4", calls=(), right=at < number) for at in range(n)],
        )
        for condition in asked
        for suite, number in right.items()
    )
    return Outcome(f"{parameters}-{len(asked)}", parameters, {}, scores)


def texts(path: Path) -> list[str]:
    return ["".join(found.itertext()).strip() for found in ElementTree.parse(path).iter(f"{SVG}text")]


def test_points_are_of_models_of_different_sizes_the_smallest_first() -> None:
    small = outcome(1_000_000, {"own-facts": 2, "svamp": 3}, DISABLED, ENABLED)
    large = outcome(6_700_000_000, {"own-facts": 9, "svamp": 3}, DISABLED, ENABLED, Condition(1))
    (panel,) = scaling([large, small])  # the word problems lack suites to average over
    assert panel.title == "Own: facts"
    assert [line.name for line in panel.lines] == ["calls disabled", "k = 10"]  # k = 1 has one size
    assert [point.parameters for point in panel.lines[1].points] == [1_000_000, 6_700_000_000]
    few, many = panel.lines[1].points
    assert (few.share, many.share) == (0.2, 0.9)
    # Wilson's interval of 9 in 10, as in any table of it.
    assert many.low == pytest.approx(0.5958, abs=1e-4)
    assert many.high == pytest.approx(0.9821, abs=1e-4)


@pytest.mark.parametrize("sizes", [(1_000_000,), (1_000_000, 1_000_000), (1_000_000, 0)])
def test_one_known_size_makes_no_line(sizes: tuple[int, ...]) -> None:
    assert list(scaling([outcome(size, {"own-facts": 5}, DISABLED) for size in sizes])) == []


def test_several_suites_are_averaged_unweighted_and_without_an_interval() -> None:
    right = {"asdiv": 1, "svamp": 2, "mawps": 6}
    (panel,) = scaling([outcome(size, right, DISABLED) for size in (1_000, 2_000)])
    assert panel.title == "Word problems"
    (line,) = panel.lines
    assert [point.share for point in line.points] == pytest.approx([0.3, 0.3])
    assert {point.low for point in line.points} == {None}


def test_the_figure_has_panels_sizes_and_conditions(tmp_path: Path) -> None:
    right = {"own-facts": 2, "own-dates": 10, "own-questions": 0}
    both = [outcome(size, right, DISABLED, ENABLED) for size in (363_520, 4_204_032)]
    made = tmp_path / "new" / "figure-4.svg"
    write_figure(made, both)
    assert {"Own: facts", "Own: dates", "Own: questions", "364 k", "4.2 M", "calls disabled", "k = 10"} <= set(
        texts(made)
    )
    assert texts(made).count("k = 10") == 1
    again = tmp_path / "again.svg"
    write_figure(again, both)
    assert again.read_bytes() == made.read_bytes()
    for ending, magic in ((".png", b"\x89PNG"), (".pdf", b"%PDF")):
        write_figure(tmp_path / f"figure{ending}", both)
        assert (tmp_path / f"figure{ending}").read_bytes().startswith(magic)
    assert not list(tmp_path.rglob("partial*"))


def test_a_figure_that_cannot_be_drawn_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = [outcome(size, {"own-facts": 5}, DISABLED) for size in (1_000, 2_000)]
    with pytest.raises(SuiteError, match=r"--figure figure\.gif: name a file that ends with \.svg, \.png, \.pdf"):
        write_figure(tmp_path / "figure.gif", both)
    both[0].write(tmp_path)
    with pytest.raises(SystemExit):
        compare.main(
            [str(tmp_path), "--figure", str(tmp_path / "figure.svg"), "--markdown", str(tmp_path / "tables.md")]
        )
    assert "no two models of different known sizes" in capsys.readouterr().err
    assert not (tmp_path / "figure.svg").exists()
    assert (tmp_path / "tables.md").exists(), "what can be written is"
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit):
        compare.main([str(tmp_path), "--markdown", str(tmp_path / "file" / "tables.md")])
    assert "cannot be written (" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("parameters", "said"),
    [(900, "900"), (363_520, "364 k"), (4_204_032, "4.2 M"), (12_000_000, "12 M"), (6_053_381_344, "6.1 B")],
)
def test_sizes_are_said_as_people_say_them(parameters: int, said: str) -> None:
    assert size_name(parameters) == said
