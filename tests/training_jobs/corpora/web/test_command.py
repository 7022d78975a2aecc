"""The command: generated shards and their truth, the selection for each tool, errors in one line."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from training_jobs.corpora.web.__main__ import main
from training_jobs.corpora.web.readers import read
from training_jobs.records import Document

ROOT = Path(__file__).parents[4]
CLASSIFIER = str(ROOT / "models/translation-small/lid.ftz")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("web")
    main(["generate", "--out", str(out), "--documents", "130", "--shard-documents", "60", "--seed", "4"])
    return out


def truth(web: Path) -> dict[str, list[dict[str, Any]]]:
    records = [json.loads(line) for line in (web / "truth.jsonl").read_text().splitlines()]
    return {record["id"]: record["calls"] for record in records}


def test_generated_shards_are_ccnets_and_the_truth_lies_apart(web: Path) -> None:
    shards = sorted(web.glob("*.json.gz"))
    contents = [gzip.decompress(shard.read_bytes()).splitlines() for shard in shards]
    assert [len(lines) for lines in contents] == [60, 60, 10]
    records = [json.loads(line) for lines in contents for line in lines]
    wanted = {"url", "date_download", "title", "raw_content", "language"}
    assert all(wanted <= record.keys() and "calls" not in record for record in records)
    calls = truth(web)
    assert list(calls) == [record["id"] for record in records]
    for record in records:
        for call in calls[record["id"]]:
            assert record["raw_content"][call["offset"] :].startswith(f" {call['answer']}")


def test_the_same_seed_gives_the_same_bytes(web: Path, tmp_path: Path) -> None:
    main(["generate", "--out", str(tmp_path), "--documents", "60", "--shard-documents", "60", "--seed", "4"])
    [shard] = tmp_path.glob("*.json.gz")
    assert shard.read_bytes() == (web / shard.name).read_bytes()
    assert (web / "truth.jsonl").read_text().startswith((tmp_path / "truth.jsonl").read_text())


def test_each_tool_gets_the_texts_that_its_heuristic_keeps(web: Path, tmp_path: Path) -> None:
    shards = [str(shard) for shard in sorted(web.glob("*.json.gz"))]
    main(["select", *shards, "--out", str(tmp_path), "--language-id", CLASSIFIER])
    kept = {
        path.stem: [Document.from_line(line) for line in path.read_text().splitlines()]
        for path in tmp_path.glob("*.jsonl")
    }
    assert set(kept) == {"Calculator", "Calendar", "WikiSearch", "QA", "MT"}
    everything = [one.document for shard in shards for one in read(Path(shard))]
    assert kept["QA"] == kept["WikiSearch"] == everything
    assert kept["Calendar"] == [document for document in everything if document.date]
    helped = {
        tool: {id_ for id_, calls in truth(web).items() if any(c["tool"] == tool for c in calls)} for tool in kept
    }
    for tool in ("Calculator", "Calendar"):
        found = {document.id for document in kept[tool]}
        # What the corpus is for: nearly all texts that a call helps are given to the tool's prompt.
        assert len(helped[tool] & found) >= 0.7 * len(helped[tool])
        assert len(found) < 0.8 * len(everything)
    counts = json.loads((tmp_path / "counts.json").read_text())
    assert counts["read"] == 130
    for tool, verdicts in counts["tools"].items():
        assert sum(verdicts["kept"].values()) == len({d.id.partition("#")[0] for d in kept[tool]})
        assert sum(verdicts["kept"].values()) + sum(verdicts["dropped"].values()) == 130


def test_texts_in_another_language_and_empty_ones_are_left_out(tmp_path: Path) -> None:
    rows = [
        {"raw_content": "1 + 1 = 2", "language": "en"}, {"raw_content": "dos", "language": "es"},
        {"raw_content": " \n", "language": "en"},
    ]  # fmt: skip
    file = tmp_path / "a.json"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    main(["select", str(file), "--out", str(tmp_path / "c"), "--tools", "Calculator", "QA"])
    counts = json.loads((tmp_path / "c/counts.json").read_text())
    assert counts["left out"] == {"empty text": 1, "language: es": 1}
    assert not (tmp_path / "c/MT.jsonl").exists()
    main(["select", str(file), "--out", str(tmp_path / "d"), "--tools", "QA", "--language", "any"])
    assert len((tmp_path / "d/QA.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tools", "MT"], "MT needs a language classifier"),
        (["--tools", "Clock"], "there is no tool 'Clock'"),
        (["--tools", "QA", "--tokenizer", "nowhere"], "--tokenizer: nowhere"),
        (["--tools", "QA", "--language-id", "nowhere"], "--language-id: there is no file nowhere"),
    ],
)
def test_bad_options_are_reported_in_one_line(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["select", "nothing.jsonl", "--out", str(tmp_path), *options])
    assert ended.value.code == 1
    assert said in capsys.readouterr().err


def held_out(folder: Path) -> list[Document]:
    return [Document.from_line(line) for line in (folder / "held_out.jsonl").read_text().splitlines()]


def test_texts_are_held_out_the_same_ones_in_any_order(web: Path, tmp_path: Path) -> None:
    shards = [str(shard) for shard in sorted(web.glob("*.json.gz"))]
    everything = {one.document.id: one.document for shard in shards for one in read(Path(shard))}
    drawn = {}
    for name, files, seed in (("a", shards, "0"), ("b", shards[::-1], "0"), ("c", shards, "1")):
        out = tmp_path / name
        main(["select", *files, "--out", str(out), "--tools", "QA", "--hold-out", "30", "--seed", seed])
        selected = {Document.from_line(line).id for line in (out / "QA.jsonl").read_text().splitlines()}
        drawn[name] = held_out(out)
        assert len(drawn[name]) == 30
        assert {one.id for one in drawn[name]} == everything.keys() - selected
        assert all(one == everything[one.id] for one in drawn[name])
        assert json.loads((out / "counts.json").read_text())["held out"] == 30
    assert drawn["a"] == drawn["b"]
    assert drawn["a"] != drawn["c"]
    assert [one.id for one in drawn["a"]] != sorted(one.id for one in drawn["a"])
    main(["select", *shards, "--out", str(tmp_path / "a"), "--tools", "QA"])
    assert not (tmp_path / "a/held_out.jsonl").exists(), "they are selected now"


def test_a_text_is_held_out_or_selected_whatever_its_ids(tmp_path: Path) -> None:
    """Else finetuning would measure on what it is trained on."""
    file = tmp_path / "a.jsonl"
    rows = [{"id": f"{copy}-{number}", "text": f"Text {number}."} for copy in "ab" for number in range(40)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    main(["select", str(file), "--out", str(tmp_path / "c"), "--tools", "QA", "--hold-out", "10"])
    out = {one.text for one in held_out(tmp_path / "c")}
    kept = {Document.from_line(line).text for line in (tmp_path / "c/QA.jsonl").read_text().splitlines()}
    assert len(out) == 10
    assert not out & kept
    assert len(kept) == 30
    counts = json.loads((tmp_path / "c/counts.json").read_text())
    assert counts["read"] == counts["held out"] + counts["judged"] + sum(counts["left out"].values()) == 80


def test_holding_all_texts_out_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"text": "a"}\n{"text": "b"}\n')
    with pytest.raises(SystemExit):
        main(["select", str(file), "--out", str(tmp_path / "c"), "--tools", "QA", "--hold-out", "2"])
    assert "--hold-out 2: there are 2 texts, so none is left to select; hold out fewer" in capsys.readouterr().err
    assert not (tmp_path / "c/held_out.jsonl").exists()


def test_an_id_that_stands_twice_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"id": "x", "text": "a"}\n{"id": "x", "text": "b"}\n')
    with pytest.raises(SystemExit):
        main(["select", str(file), "--out", str(tmp_path / "c"), "--tools", "QA"])
    assert "id 'x' occurs twice" in capsys.readouterr().err
    assert not (tmp_path / "c/QA.jsonl").exists(), "no half of a selection"
