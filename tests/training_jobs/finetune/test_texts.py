"""The texts of a run, and what is said of those that cannot be used: one line that names the option."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.vocabularies import small_tokenizer
from tests.training_jobs.finetune.small_run import RECIPE, SHAPE, options, texts, write_inputs
from toolformer.tools import ToolRegistry
from training_jobs.errors import StageError
from training_jobs.finetune.__main__ import main
from training_jobs.finetune.recipe import FinetuneRecipe
from training_jobs.finetune.training_texts import encode_texts, examples_of, read_texts, repeated, tool_counts
from training_jobs.merge.choosing import MergeRule, drawn
from training_jobs.records import CallSegment, Document, Merged, Plain
from training_jobs.text_encoder import TextEncoder

Inputs = tuple[Path, Path, Path]


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    return write_inputs(tmp_path)


def test_a_tool_has_at_most_so_many_examples_by_the_rule_of_the_merge() -> None:
    quoted = CallSegment("QA", "Who?", "me")
    both = [Merged(one.id, (*one.segments, quoted), (1.0, 2.0)) for one in texts(6)]
    many = [*both, *texts(30)[6:], Merged("q", ("So ", quoted), (3.0,))]
    found = {text.id: text for text in examples_of(many, FinetuneRecipe(examples_per_tool=5))}
    assert tool_counts(list(found.values())) == {"Calculator": 5, "QA": 5}
    rule = MergeRule(5)
    of_calculator = drawn([text.id for text in many if text.id != "q"], "Calculator", rule)
    assert {id_ for id_, text in found.items() if any("+" in call.input for call in calls(text))} == of_calculator
    for id_, text in found.items():
        assert isinstance(text, Merged)
        assert len(text.gains) == len(calls(text)) > 0
        if id_ in {one.id for one in both} and len(text.gains) == 1:
            [kept] = calls(text)
            assert text.gains == ((2.0,) if kept == quoted else (1.0,))


def calls(text: Merged | Plain) -> list[CallSegment]:
    return [segment for segment in text.segments if isinstance(segment, CallSegment)]


def test_plain_texts_of_the_baseline_are_read_too(tmp_path: Path) -> None:
    path = tmp_path / "without_calls.jsonl"
    path.write_text(Plain("a", ("One is 1.",)).to_line() + "\n" + Plain("b", ("Two.",)).to_line())
    read, _ = read_texts([path])
    assert (
        read
        == examples_of(read, FinetuneRecipe(examples_per_tool=1))
        == [Plain("a", ("One is 1.",)), Plain("b", ("Two.",))]
    )


def test_texts_of_several_files_are_one_set(tmp_path: Path) -> None:
    for name, lines in {"one": [Plain("a", ("One.",))], "two": [Plain("b", ("Two.",))], "none": []}.items():
        (tmp_path / name).write_text("".join(text.to_line() + "\n" for text in lines))
    one, two, none = (tmp_path / name for name in ("one", "two", "none"))
    assert [text.id for text in read_texts([two, none, one])[0]] == ["b", "a"]
    with pytest.raises(StageError, match="'a' is there 2 times: name files that have no text in common"):
        read_texts([one, two, one])
    with pytest.raises(StageError, match=r"none has no texts; the filter kept no call"):
        read_texts([none])


def test_a_pass_goes_over_a_file_as_often_as_it_is_set_to(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for path, part in ((one, texts(5)[:3]), (two, texts(5)[3:])):
        path.write_text("".join(text.to_line() + "\n" for text in part))
    encoder = TextEncoder(small_tokenizer(), ToolRegistry.load(), end_id=0)
    read, once = read_texts([one, two])
    encoded, _ = encode_texts(read, encoder, FinetuneRecipe())
    assert repeated(encoded, read, once) == encoded
    more = repeated(encoded, read, read_texts([one, two], (1, 3))[1])
    assert [encoded.index(text) for text in more] == [0, 1, 2, 3, 3, 3, 4, 4, 4]
    with pytest.raises(StageError, match="--times: 1 numbers for 2 files of --texts: give one for each"):
        read_texts([one, two], (2,))
    with pytest.raises(StageError, match="--times: must be at least 1, not 0"):
        FinetuneRecipe(times=(1, 0))


def test_what_is_cut_is_counted() -> None:
    encoder = TextEncoder(small_tokenizer(), ToolRegistry.load(), end_id=0)
    whole, counts = encode_texts(texts(8), encoder, FinetuneRecipe(sequence_length=96))
    assert (counts.texts, counts.calls, counts.cut) == (8, 8, 0)
    short = min(text.calls[0][1] for text in whole)
    cut, counts = encode_texts(texts(8), encoder, FinetuneRecipe(sequence_length=short))
    assert counts.cut == 8
    assert counts.calls + counts.calls_cut == 8
    assert max(len(text.ids) for text in cut) == short
    assert "8 cut to the sequence length" in str(counts)


def test_half_of_the_texts_begin_with_the_mark_and_the_same_in_c_and_c_star() -> None:
    encoder = TextEncoder(small_tokenizer(), ToolRegistry.load(), end_id=0)
    stars, _ = encode_texts(texts(40), encoder, FinetuneRecipe())
    plain = [Plain(text.id, ("One",)) for text in texts(40)]
    of_c, _ = encode_texts(plain, encoder, FinetuneRecipe())
    begins = [text.ids[0] == 0 for text in stars]
    assert begins == [text.ids[0] == 0 for text in of_c]
    assert 8 < sum(begins) < 32
    assert not any(text.ids[0] == 0 for text in encode_texts(texts(9), encoder, FinetuneRecipe(begin_share=0))[0])


def _broken(inputs: Inputs) -> None:
    inputs[1].write_text('{"id": "a", "segments": ["x"], "gains": [1.0]}\n')


def _no_held_out(inputs: Inputs) -> None:
    inputs[2].write_text("")


def _trained_on(inputs: Inputs) -> None:
    inputs[2].write_text(Document("h", "".join(s for s in texts(1)[0].segments if isinstance(s, str))).to_line())


def _other_vocabulary(inputs: Inputs) -> None:
    path = inputs[0] / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"vocab_size": 300}))


def _no_tokenizer(inputs: Inputs) -> None:
    (inputs[0] / "tokenizer.json").unlink()


def _unknown_tool(inputs: Inputs) -> None:
    inputs[1].write_text(Merged("a", ("So ", CallSegment("Oracle", "1", "2")), (1.0,)).to_line())


def _long_call(inputs: Inputs) -> None:
    call = CallSegment("Calculator", "1 + " * 60 + "1", "61")
    inputs[1].write_text(Merged("a", (call, " 61"), (1.0,)).to_line())


@pytest.mark.parametrize(
    ("spoil", "more", "said"),
    [
        (_broken, [], ":1: there are 0 calls in the text but 1 gains"),
        (_no_held_out, [], "held_out.jsonl: no texts: perplexity cannot be measured"),
        (_trained_on, [], "--held-out: 't000' is trained on too"),
        (_other_vocabulary, [], "it is another model's vocabulary"),
        (_no_tokenizer, [], "tokenizer.json is missing"),
        (_unknown_tool, [], "--texts: 'a': "),
        (_long_call, ["--begin-share", "0"], "'a': its first call alone is longer than --sequence-length 96"),
        (None, ["--sequence-length", "200"], f"--sequence-length: 200 is more than the model's {SHAPE.n_positions}"),
        (None, ["--steps", "0"], "--steps: must be at least 1, not 0"),
        (None, ["--warmup", "1.5"], "--warmup: must be between 0 and 1, not 1.5"),
        (None, ["--texts", "none.jsonl"], "--texts: none.jsonl cannot be read (No such file or directory)"),
        (None, ["--held-out", "none.jsonl"], "--held-out: none.jsonl: cannot be read"),
        (None, ["--model", "none"], "--model: none/tokenizer.json is missing"),
        (None, ["--sharding", "fsdp2"], "--sharding fsdp2: there is one process: start it with torchrun"),
        (None, ["--sharding-file", "x.json"], "--sharding-file: there is nothing to shard"),
    ],
)
def test_input_that_cannot_be_used_is_reported_in_one_line(
    inputs: Inputs, tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil: object, more: list[str], said: str
) -> None:
    if callable(spoil):
        spoil(inputs)
    with pytest.raises(SystemExit) as ended:
        main([*options(inputs, tmp_path / "out", RECIPE), *more])
    assert ended.value.code == 1
    [line] = capsys.readouterr().err.splitlines()
    assert said in line
    assert not (tmp_path / "out" / "model").exists()
