"""Passages, their vectors, and an index on disk."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.question_answering import build_index
from services.question_answering.build_index import Source, ensure_index
from services.question_answering.checkpoint import load_model
from services.question_answering.engine import retrieve
from services.question_answering.index_folder import Blocks, IndexManifest, UnusablePassagesError, finish, open_index
from services.question_answering.passage_index import PassageIndex, VectorIndexError, Vectors
from services.question_answering.passages import (
    MalformedPassageError,
    PagePassage,
    PassageStore,
    split_page,
    write_passages,
)
from tests.services.test_question_answering.tiny import (
    PASSAGES,
    PLACES,
    QUESTIONS,
    model_and_index,
    write_model,
    write_passages_file,
)

PAGE = {
    "wikipedia_id": "7",
    "wikipedia_title": "Slovenia",
    "text": [
        "Slovenia\n",
        "Slovenia lies in Europe; its capital is Ljubljana.\n",
        "It covers an area of 20,273 square kilometres.\n",
        "Section::::Cities.\n",
        "The largest cities:\n",
        "BULLET::::- Ljubljana: 272,220\n",
        "BULLET::::- Maribor: 96,209\n",
        "\n",
    ],
}


def clustered(count: int, width: int = 32, seed: int = 0) -> Vectors:
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((40, width)).astype(np.float32)
    return centres[rng.integers(40, size=count)] + 0.3 * rng.standard_normal((count, width), dtype=np.float32)


def test_a_page_is_cut_within_its_sections() -> None:
    assert list(split_page(PAGE, 12)) == [
        PagePassage("7-0", "Slovenia", "Slovenia lies in Europe; its capital is Ljubljana."),
        PagePassage("7-1", "Slovenia", "It covers an area of 20,273 square kilometres."),
        PagePassage("7-2", "Slovenia: Cities", "The largest cities: Ljubljana: 272,220; Maribor: 96,209;"),
    ]
    assert [len(list(split_page(PAGE, words))) for words in (1, 100)] == [5, 2]


def test_a_published_passage_has_its_section_in_its_heading() -> None:
    record = {"id": 3, "title": "Orchid", "section": "Description", "text": "They bloom.", "more": 1}
    assert PagePassage.of_record(record) == PagePassage("3", "Orchid: Description", "They bloom.")
    assert PagePassage.of_record({"id": "0", "text": "x"}) == PagePassage("0", "", "x")
    for broken in ({"text": "x"}, {"id": "1", "text": None}, {"id": "1", "text": "x", "title": 5}):
        with pytest.raises(MalformedPassageError):
            PagePassage.of_record(broken)


TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=8))
def test_passages_come_back_as_written(
    tmp_path_factory: pytest.TempPathFactory, written: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("passages")
    passages = [PagePassage(str(number), heading, text) for number, (heading, text) in enumerate(written)]
    assert write_passages(folder, passages) == len(passages)
    store = PassageStore(folder)
    assert list(store) == passages
    with pytest.raises(IndexError):
        store[len(passages)]
    store.close()


def test_passages_that_were_cut_off_are_refused(tmp_path: Path) -> None:
    write_passages(tmp_path, PASSAGES)
    path = tmp_path / "passages.jsonl"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ValueError, match=r"passages\.jsonl has"):
        PassageStore(tmp_path)


def test_the_exact_index_finds_what_plain_arithmetic_finds(tmp_path: Path) -> None:
    vectors, asked = clustered(500), clustered(20, seed=1)
    index = PassageIndex.exact(32)
    index.add(vectors[:300])
    index.add(vectors[300:])
    index.write(tmp_path / "index")
    half = vectors.astype(np.float16).astype(np.float32)
    for found in (index, PassageIndex.read(tmp_path / "index")):
        scores, numbers = found.search(asked, 5)
        expected = np.sort(asked @ half.T, axis=1)[:, ::-1][:, :5]
        np.testing.assert_allclose(scores, expected, rtol=1e-4)
        np.testing.assert_allclose(np.take_along_axis(asked @ half.T, numbers, axis=1), expected, rtol=1e-4)


@pytest.mark.slow
def test_the_approximate_index_finds_most_of_it_in_less_room(tmp_path: Path) -> None:
    vectors = clustered(20_000)
    asked = vectors[:200] + 0.05 * clustered(200, seed=2)
    exact = PassageIndex.exact(32)
    exact.add(vectors)
    near = PassageIndex.ivf_pq(vectors, len(vectors), code_bytes=16, cells=64)
    near.add(vectors)
    for name, index in (("exact", exact), ("near", near)):
        index.write(tmp_path / name)
    assert (tmp_path / "near").stat().st_size < 0.5 * (tmp_path / "exact").stat().st_size
    _, best = exact.search(asked, 20)
    shares = []
    for probes in (1, 64):
        _, found = PassageIndex.read(tmp_path / "near", probes=probes).search(asked, 20)
        shares.append(np.mean([len({*ours} & {*theirs}) / 20 for ours, theirs in zip(found, best, strict=True)]))
    assert shares[1] > 0.7
    assert shares[0] <= shares[1]
    refined = PassageIndex.read(tmp_path / "near", probes=64)
    refined.refine_with(vectors.astype(np.float16), 10)
    scores, found = refined.search(asked, 20)
    assert np.mean([len({*ours} & {*theirs}) / 20 for ours, theirs in zip(found, best, strict=True)]) > 0.98
    expected = np.einsum("qw,qkw->qk", asked, vectors.astype(np.float16).astype(np.float32)[found])
    np.testing.assert_allclose(scores, expected, rtol=1e-4)
    assert (np.diff(scores, axis=1) <= 0).all()


@pytest.mark.parametrize(
    ("sample", "code_bytes", "complaint"), [(5_000, 7, "must divide"), (100, 16, "too few"), (3_000, 16, "too few")]
)
def test_an_approximate_index_that_cannot_be_trained(sample: int, code_bytes: int, complaint: str) -> None:
    with pytest.raises(VectorIndexError, match=complaint):
        PassageIndex.ivf_pq(clustered(sample), 1_000_000, code_bytes=code_bytes, cells=256)


def test_a_file_that_is_no_index(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="index"):
        PassageIndex.read(tmp_path / "index")
    (tmp_path / "index").write_bytes(b"not faiss at all")
    with pytest.raises(ValueError, match="not a faiss index"):
        PassageIndex.read(tmp_path / "index")


def test_samples_are_even_over_all_blocks(tmp_path: Path) -> None:
    blocks = Blocks(tmp_path)
    numbers = np.arange(100, dtype=np.float16)[:, None]
    for place, first in enumerate((0, 7, 50)):
        blocks.write(place, numbers[first : (7, 50, 100)[place]])
    assert blocks.sample(20, 100)[:, 0].tolist() == list(range(0, 100, 5))


def test_an_index_answers_as_its_vectors_say(tmp_path: Path) -> None:
    _, index, model = model_and_index(tmp_path)
    opened = open_index(index, model.settings.retriever_digest, model.retriever.width)
    asked, vectors = model.retriever.embed_questions(QUESTIONS), model.retriever.embed_passages(PASSAGES)
    found = retrieve(model, opened, QUESTIONS, 3)
    for row, scores in zip(found, (asked @ vectors.half().float().T).tolist(), strict=True):
        best = sorted(scores, reverse=True)[:3]
        assert [one.score for one in row] == pytest.approx(best, rel=1e-3)
    assert [len(row) for row in retrieve(model, opened, QUESTIONS[:1], 50)] == [len(PLACES)]
    assert not (index / "vectors").exists()


def test_an_approximate_index_answers_with_exact_scores(tmp_path: Path) -> None:
    passages = [PagePassage(str(number), "", "") for number in range(300)]
    write_passages(tmp_path, passages)
    vectors = clustered(300, width=64)
    blocks = Blocks(tmp_path)
    blocks.write(0, vectors[:200].astype(np.float16))
    blocks.write(1, vectors[200:].astype(np.float16))
    manifest = IndexManifest(source="test", retriever="r", kind="ivf-pq", passages=300, width=64)
    finish(tmp_path, manifest, code_bytes=4)
    opened = open_index(tmp_path, "r", 64, refine=15)
    exact = vectors.astype(np.float16).astype(np.float32)
    scores, numbers = opened.vectors.search(exact[:50], 20)
    np.testing.assert_allclose(scores, -np.sort(-(exact[:50] @ exact.T), axis=1)[:, :20], rtol=1e-3)
    assert numbers.shape == (50, 20)
    (tmp_path / "vectors.f16.npy").unlink()
    with pytest.raises(UnusablePassagesError, match="broken"):
        open_index(tmp_path, "r", 64)


def test_an_index_is_made_once_and_again_when_its_source_changes(tmp_path: Path) -> None:
    _, index, model = model_and_index(tmp_path)
    before = (index / "vectors.faiss").stat().st_mtime_ns
    source = tmp_path / "passages.jsonl"
    manifest = ensure_index(index, model, Source(source, pages=False))
    assert (index / "vectors.faiss").stat().st_mtime_ns == before
    source.write_text("".join(source.read_text().splitlines(keepends=True)[:5]))
    renewed = ensure_index(index, model, Source(source, pages=False))
    assert (manifest.passages, renewed.passages) == (8, 5)
    assert len(open_index(index, model.settings.retriever_digest, 24).passages) == 5


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_model(tmp_path / "model")
    model = load_model(tmp_path / "model")
    source = Source(write_passages_file(tmp_path / "passages.jsonl"), pages=False)
    monkeypatch.setattr(build_index, "BLOCK_PASSAGES", 3)
    embedded: list[int] = []
    embed = model.retriever.embed_passages

    def counting(passages: list[PagePassage]) -> object:
        if len(embedded) == 2:
            raise KeyboardInterrupt
        embedded.append(len(passages))
        return embed(passages)

    monkeypatch.setattr(model.retriever, "embed_passages", counting)
    with pytest.raises(KeyboardInterrupt):
        ensure_index(tmp_path / "index", model, source)
    with pytest.raises(UnusablePassagesError, match="not a finished index"):
        open_index(tmp_path / "index", model.settings.retriever_digest, 24)
    embedded.clear()
    assert ensure_index(tmp_path / "index", model, source).passages == 8
    assert embedded == [2]  # the third block only
    fresh = ensure_index(tmp_path / "fresh", load_model(tmp_path / "model"), source)
    assert fresh.passages == 8
    assert (tmp_path / "fresh/vectors.faiss").read_bytes() == (tmp_path / "index/vectors.faiss").read_bytes()


def test_a_folder_of_something_else_is_not_touched(tmp_path: Path) -> None:
    write_model(tmp_path / "model")
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "letters.txt").write_text("dear")
    source = Source(write_passages_file(tmp_path / "passages.jsonl"), pages=False)
    with pytest.raises(UnusablePassagesError, match="holds files, but no index"):
        ensure_index(tmp_path / "index", load_model(tmp_path / "model"), source)
    assert (tmp_path / "index" / "letters.txt").read_text() == "dear"


def test_an_index_of_another_model_is_refused(tmp_path: Path) -> None:
    _, index, _ = model_and_index(tmp_path)
    with pytest.raises(UnusablePassagesError, match="another retriever"):
        open_index(index, "0" * 64, 24)


@pytest.mark.parametrize(
    ("line", "complaint"), [("[1]", "line 2 .*object"), ('{"id": "1"}', "line 2 .*'text'"), ("{", "line 2")]
)
def test_a_source_line_that_is_no_passage(line: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "passages.jsonl"
    path.write_text(json.dumps(PASSAGES[0].record()) + "\n" + line + "\n")
    with pytest.raises(VectorIndexError, match=complaint):
        list(Source(path, pages=False).read(100))


def test_pages_become_passages_as_the_model_wants_them(tmp_path: Path) -> None:
    path = tmp_path / "pages.jsonl"
    path.write_text(json.dumps(PAGE) + "\n\n")
    source = Source(path, pages=True)
    assert [len(list(source.read(words))) for words in (1, 100)] == [5, 2]
    assert source.name(1) != source.name(100)


def test_the_command_makes_an_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(tmp_path / "model")
    passages = write_passages_file(tmp_path / "passages.jsonl")
    arguments = ["--model", str(tmp_path / "model"), "--index", str(tmp_path / "index"), "--passages", str(passages)]
    build_index.main(arguments)
    assert json.loads(capsys.readouterr().out)["passages"] == 8
    with pytest.raises(SystemExit) as ended:
        build_index.main(["--model", str(tmp_path / "none"), *arguments[2:]])
    assert ended.value.code == 1
    assert "not a finished model" in capsys.readouterr().err
