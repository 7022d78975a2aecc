"""The bundled encyclopedia: shape, truth and reproducibility."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from demo_world import encyclopedia, geography
from demo_world.city_pages import distance_km
from demo_world.page import Page, listed, phrase
from demo_world.titles import city_titles

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def all_pages() -> dict[str, Page]:
    return {page.title: page for page in encyclopedia.pages()}


def test_there_are_pages_enough_and_each_title_once(all_pages: dict[str, Page]) -> None:
    assert sum(1 for _ in encyclopedia.pages()) == len(all_pages) > 10_000


def test_pages_have_kilts_shape() -> None:
    for number, record in enumerate(encyclopedia.kilt_records(), start=1):
        assert record.keys() == {"_id", "wikipedia_id", "wikipedia_title", "text", "categories"}
        assert record["_id"] == record["wikipedia_id"] == str(number)
        assert record["text"][0] == record["wikipedia_title"] + "\n"
        assert len(record["text"]) >= 2
        for line in record["text"]:
            assert line.endswith("\n")
            assert line.count("\n") == 1
            assert line.strip()
            assert "None" not in line.replace("There Were None", "").split()
            assert "{" not in line


def test_a_citys_first_sentence_answers_for_its_population(all_pages: dict[str, Page]) -> None:
    titles = city_titles()
    for city in geography.cities():
        if city.key in titles:
            first = all_pages[titles[city.key]].lead[0]
            assert first.startswith(f"{city.name} is ")
            assert f"{city.population:,}" in first[: len(city.name) + 140]
            assert city.country in first


def test_a_countrys_page_has_its_facts(all_pages: dict[str, Page]) -> None:
    text = "".join(all_pages["Japan"].kilt_text())
    for fact in ("Tokyo", "Asia", "Japanese Yen (JPY)", "Japanese", ".jp", "+81", "no neighbours by land"):
        assert fact in text


def test_an_uninhabited_place_has_no_population_of_zero(all_pages: dict[str, Page]) -> None:
    assert not any(" 0 people" in page.lead[0] or "population of 0" in page.lead[0] for page in all_pages.values())


def test_namesakes_have_their_own_pages(all_pages: dict[str, Page]) -> None:
    assert "Illinois" in all_pages["Springfield, Illinois"].lead[0]
    assert "state" in all_pages["Georgia (U.S. state)"].lead[0]
    assert "Tbilisi" in all_pages["Georgia"].lead[0]


def test_days_of_the_year(all_pages: dict[str, Page]) -> None:
    assert "day 176 of the year, or day 177 of a leap year" in all_pages["June 25"].lead[0]
    assert "day 365 of the year" in all_pages["December 31"].lead[0]
    assert "other years do not have it" in all_pages["February 29"].lead[0]


def test_phrasings_vary_and_depend_on_the_title_alone(all_pages: dict[str, Page]) -> None:
    patterns = ("one {x}", "two {x}", "three {x}")
    said = {title: phrase(title, "slot", patterns, x=1) for title in list(all_pages)[:60]}
    assert set(said.values()) == {"one 1", "two 1", "three 1"}
    assert all(phrase(title, "slot", patterns, x=1) == text for title, text in said.items())


def test_distances_are_those_on_the_map() -> None:
    by_name = {city.name: city for city in reversed(geography.cities())}
    assert distance_km(by_name["Ljubljana"], by_name["Maribor"]) == pytest.approx(104, abs=4)
    assert distance_km(by_name["Tokyo"], by_name["Tokyo"]) == 0


def test_lists_read_as_english() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed(["a", "b", "c"]) == "a, b and c"
    with pytest.raises(ValueError, match="items"):
        listed([])


def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    here = hashlib.sha256(b"".join(encyclopedia.kilt_lines())).hexdigest()
    out = tmp_path / "pages.jsonl"
    subprocess.run(
        [sys.executable, "-m", "demo_world.encyclopedia", "--out", str(out)],
        check=True,
        capture_output=True,
        env={"PYTHONHASHSEED": "11", "PYTHONPATH": ":".join(sys.path)},
        timeout=300,
    )
    assert hashlib.sha256(out.read_bytes()).hexdigest() == here
    assert [path.name for path in tmp_path.iterdir()] == ["pages.jsonl"]
    with out.open() as lines:
        assert json.loads(next(lines))["wikipedia_title"] == "Africa"


def test_a_missing_folder_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        encyclopedia.main(["--out", str(tmp_path / "nowhere" / "pages.jsonl")])
    assert "--out" in capsys.readouterr().err
