"""Copying: what is read for the first time and repeated, and models that can and cannot."""

from pathlib import Path

import pytest
import torch

from language_model import checkpoint
from language_model.config import GPTJConfig
from language_model.gptj import GPTJ
from language_model.tokenizer import ByteLevelTokenizer
from training_jobs.corpora.base.copying import main, measure_copying
from training_jobs.records import Document

BASE = Path(__file__).parents[4] / "models" / "base"
TEXTS = ("Ljubljana lies in Slovenia.", "17 boxes hold 24 books each.")
HEADS = ("Add calls.",)


@pytest.fixture(scope="module")
def tokenizer() -> ByteLevelTokenizer:
    return ByteLevelTokenizer.from_pretrained(BASE)


def untrained(positions: int = 256) -> GPTJ:
    return GPTJ.from_config(
        GPTJConfig(vocab_size=8192, n_positions=positions, n_embd=32, n_layer=1, n_head=2, rotary_dim=8), seed=0
    )


def test_the_bundled_base_model_copies_and_an_untrained_one_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint.save(untrained(1024), tmp_path)
    (tmp_path / "tokenizer.json").write_bytes((BASE / "tokenizer.json").read_bytes())
    main([str(BASE), str(tmp_path), "--texts", "12"])
    words = [line.split() for line in capsys.readouterr().out.splitlines() if "%" in line]
    # ... 12 FIRST % (NATS) AGAIN % (NATS)
    (first, again), (untaught, untaught_again) = [(float(line[-6]), float(line[-3])) for line in words]
    assert {line[-7] for line in words} == {"12"}
    assert again > 97 > 80 > first
    assert untaught == pytest.approx(untaught_again, abs=2)
    assert untaught < 5


def test_texts_of_documents_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "documents.jsonl"
    file.write_text("".join(Document(str(number), text).to_line() for number, text in enumerate(TEXTS)))
    main([str(BASE), "--documents", str(file)])
    [line] = [line.split() for line in capsys.readouterr().out.splitlines() if "%" in line]
    assert line[-7] == str(len(TEXTS))


def test_both_readings_are_scored_where_they_stand(tokenizer: ByteLevelTokenizer) -> None:
    model = untrained()
    found = measure_copying(model, tokenizer, TEXTS[:1], HEADS)
    ids = tokenizer.encode(TEXTS[0])
    head, between = tokenizer.encode("Add calls.\n\nInput: "), tokenizer.encode("\nOutput:")
    read = [*head, *ids, *between, *ids]
    with torch.inference_mode():
        logs = model(torch.tensor([read]))[0].log_softmax(-1)
    nats = [-float(logs[at - 1, read[at]]) for at in range(1, len(read))]
    first, again = len(head) - 1, len(head) + len(ids) + len(between) - 1
    assert found.first.nats == pytest.approx(sum(nats[first : first + len(ids)]), rel=1e-4)
    assert found.repeated.nats == pytest.approx(sum(nats[again:]), rel=1e-4)
    assert (found.first.tokens, found.repeated.tokens, found.texts) == (len(ids), len(ids), 1)


def test_a_text_that_does_not_fit_in_twice_is_left_out(tokenizer: ByteLevelTokenizer) -> None:
    long = " ".join(TEXTS * 8)
    found = measure_copying(untrained(), tokenizer, [long, TEXTS[1]], HEADS)
    assert found.texts == 1
    assert found.first.tokens == len(tokenizer.encode(TEXTS[1]))
    none = measure_copying(untrained(), tokenizer, [long], HEADS)
    assert (none.texts, none.first.share, none.first.loss) == (0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--texts", "0", "models/base"), "--texts must be at least 1, not 0"),
        (("--documents", "/no/such/file", "models/base"), "No such file"),
        (("/no/such/model",), "give a directory that holds a Hugging Face checkpoint"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert message in capsys.readouterr().err


def test_a_model_too_short_for_any_text_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint.save(untrained(16), tmp_path)
    (tmp_path / "tokenizer.json").write_bytes((BASE / "tokenizer.json").read_bytes())
    with pytest.raises(SystemExit):
        main([str(tmp_path), "--texts", "3"])
    assert "none of the texts fits twice into its 16 positions" in capsys.readouterr().err
