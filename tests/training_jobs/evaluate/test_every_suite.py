"""A perfect model gets 100 % on every suite and an empty one 0 %, over HTTP; with the real files too."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.support.vocabularies import SHARED_DATA
from tests.training_jobs.evaluate.published import write_all
from tests.training_jobs.evaluate.stand_in import Reply, perfect, served, silent
from training_jobs.evaluate.__main__ import main
from training_jobs.evaluate.example import Example, Prompts
from training_jobs.evaluate.readers.plain_texts import read_ccnet, read_wikitext
from training_jobs.evaluate.suites import SETS, SUITES, TEXTS, find_files, named

ALL = [name for name in named([*SETS]) if name in SUITES]

real_files = pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="the published files are not beside the checkout")


def shares(tmp_path: Path, suites: Sequence[str], reply: Reply, *arguments: str) -> dict[str, tuple[int, int]]:
    """Right answers and examples of each suite."""
    out = tmp_path / "out"
    with served(reply) as (url, _):
        main(["--gateway", url, "--suites", *suites, "--out", str(out), "--restart", "--concurrency", "16", *arguments])
    scores = json.loads((out / "results.json").read_text())["scores"]
    assert all(score["failed"] == score["refused"] == 0 for score in scores)
    return {score["suite"]: (score["all"]["right"], score["all"]["n"]) for score in scores}


def everything(load: Callable[[str], tuple[Example, ...]], suites: Sequence[str], prompts: Prompts) -> Reply:
    """A model that knows every example of ``suites``."""
    known = [perfect(SUITES[name], load(name), prompts) for name in suites]

    def reply(body: dict[str, object]) -> dict[str, object]:
        for one in known:
            try:
                return dict(one(body))  # type: ignore[arg-type]
            except KeyError:
                continue
        raise AssertionError(body["prompt"])

    return reply


@pytest.mark.parametrize("prompts", ["paper", "bare"])
def test_perfect_and_empty_models_on_made_files(tmp_path: Path, prompts: Prompts) -> None:
    data = write_all(tmp_path / "data")
    suites = [name for name in ALL if name != "dateset" and not (prompts == "bare" and SUITES[name].table == "tools")]
    arguments = ("--data", str(data), "--count", "2", "--k", "10", "--prompts", prompts)
    reply = everything(lambda name: SUITES[name].load(data, count=2, seed=0).examples, suites, prompts)
    found = shares(tmp_path, suites, reply, *arguments)
    assert found.keys() == set(suites)
    assert all(right == n > 0 for right, n in found.values()), found
    assert all(right == 0 < n for right, n in shares(tmp_path, suites, silent, *arguments).values())


def test_perfect_and_empty_models_on_dateset(tmp_path: Path) -> None:
    suite = SUITES["dateset"]
    arguments = ("--limit", "60", "--k", "10")
    reply = perfect(suite, suite.load(None, count=1, seed=0).examples)
    assert shares(tmp_path, ["dateset"], reply, *arguments) == {"dateset": (60, 60)}
    assert shares(tmp_path, ["dateset"], silent, *arguments) == {"dateset": (0, 60)}


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.timeout(300)
@real_files
def test_perfect_and_empty_models_on_the_published_files(tmp_path: Path) -> None:
    suites = [name for name in SETS["paper"] if name in SUITES and name != "dateset"]
    arguments = ("--data", str(SHARED_DATA), "--k", "10", "--limit", "20")
    reply = everything(lambda name: SUITES[name].load(SHARED_DATA, count=1, seed=0).examples, suites, "paper")
    found = shares(tmp_path, suites, reply, *arguments)
    assert found == dict.fromkeys(suites, (20, 20))
    assert shares(tmp_path, suites, silent, *arguments) == dict.fromkeys(suites, (0, 20))


@pytest.mark.shared_data
@real_files
def test_the_published_files_have_the_counts_of_their_manifest() -> None:
    """All of every file: what can be asked, and what is left out."""
    counts = {}
    for name in (*SETS["paper"], *SETS["lama-sentences"]):
        if name in SUITES:
            loaded = SUITES[name].load(SHARED_DATA, count=1, seed=0)
            counts[name] = (len(loaded.examples), sum(loaded.left_out.values()))
            rule, answers = SUITES[name].rule, [example.answers for example in loaded.examples]
            assert all(rule.right(f" {some[0]}", some) and not rule.right("", some) for some in answers), name
    languages = {"es": 500, "de": 512, "hi": 507, "vi": 511, "zh": 504, "ar": 517}
    assert counts == {
        "squad": (147, 213 - 147),
        "google-re": (2_056 + 536, 1_277),
        "t-rex": (5_810, 8_154 - 5_810),
        "google-re-sentences": (431, 1_277 + 2_056 + 536 - 431),
        "t-rex-sentences": (1_746, 8_154 - 1_746),
        "asdiv": (1_453, 1_613 - 1_453),
        "svamp": (700, 0),
        "mawps": (1_661, 0),
        "webqs": (1_408, 0),
        "nq": (2_579, 0),
        "triviaqa": (1_000, 0),
        "templama": (3_588, 4_654 - 3_588),
        "dateset": (9_400, 0),
        **{f"mlqa-{language}": (number, 0) for language, number in languages.items()},
        **{f"mlqa-{language}-all-english": (number, 0) for language, number in languages.items()},
    }
    t_rex = SUITES["t-rex"].load(SHARED_DATA, count=1, seed=0).examples
    assert len(Counter(example.split for example in t_rex)) == 11
    assert len(read_wikitext(find_files("wikitext", TEXTS["wikitext"][1], SHARED_DATA))) == 62
    assert len(read_ccnet(find_files("ccnet", TEXTS["ccnet"][1], SHARED_DATA))) == 836
