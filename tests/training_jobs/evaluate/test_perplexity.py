"""Perplexity by the local engine is transformers' number on the same tokens."""

import json
import math
import random
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from language_model.bulk.loading import load_bulk
from language_model.checkpoint import save as save_model
from language_model.tokenizer import ByteLevelTokenizer
from tests.support.models import SMALL, random_model
from tests.support.vocabularies import save_small_tokenizer
from training_jobs.evaluate.__main__ import main
from training_jobs.evaluate.perplexity import TextLoss, count_parameters, text_losses, windows
from training_jobs.evaluate.readers.plain_texts import PlainText
from training_jobs.evaluate.text_suites import measure

WORDS = ["the", "mill", "stands", "at", "gate", "wheel", "four", "hens", "laid", "eggs", "Bled", "pots", "clay"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    save_model(random_model(SMALL, spread=0.1), folder)
    save_small_tokenizer(folder)
    return folder


def texts(count: int = 3, least: int = 1) -> list[str]:
    rng = random.Random(0)
    return [" ".join(rng.choices(WORDS, k=least + rng.randint(0, 29))) for _ in range(count)]


def no_call(logits: torch.Tensor, targets: torch.Tensor, tokenizer: ByteLevelTokenizer) -> torch.Tensor:
    """The logits ``[tokens, vocabulary]`` with the opening of a call at probability 0, but where the text has it."""
    [opening] = tokenizer.encode(" [")
    logits = logits.clone()
    logits[targets != opening, opening] = -math.inf
    return logits


@pytest.mark.parametrize("some", [[*texts(), "four [ hens [laid"], texts(1, least=400)], ids=["short", "long"])
def test_the_number_is_transformers(checkpoint: Path, some: list[str]) -> None:
    from transformers import GPTJForCausalLM

    model, tokenizer = load_bulk(checkpoint)
    theirs = GPTJForCausalLM.from_pretrained(checkpoint).eval()
    size, stride = SMALL.n_positions, SMALL.n_positions // 2
    nats, tokens = 0.0, 0
    for text in some:
        ids = [SMALL.bos_token_id, *tokenizer.encode(text)]
        assert (len(ids) > 2 * size) is (len(some) == 1)
        # A long text as transformers' own guide does it: windows that step by half, what was counted before masked.
        before = 1
        for start in range(0, len(ids), stride):
            end = min(start + size, len(ids))
            window = torch.tensor([ids[start:end]])
            labels = window.clone()
            labels[:, : before - start] = -100
            with torch.inference_mode():
                logits = no_call(theirs(window).logits[0, :-1], labels[0, 1:], tokenizer)
            nats += float(torch.nn.functional.cross_entropy(logits, labels[0, 1:], reduction="sum"))
            before = end
            if end == len(ids):
                break
        tokens += len(ids) - 1
    found = text_losses(model, tokenizer, some)
    assert sum(one.tokens for one in found) == tokens
    assert sum(one.nats for one in found) == pytest.approx(nats, rel=1e-5)


@given(st.integers(0, 200), st.one_of(st.none(), st.just(7)), st.integers(2, 50))
def test_windows_count_each_token_once_within_the_model(count: int, begin: int | None, size: int) -> None:
    ids = list(range(100, 100 + count))
    counted = []
    for window in windows(ids, begin, size):
        assert len(window.ids) <= size
        counted += [window.ids[at] for at in window.wanted]
        if counted[0] != window.ids[window.wanted[0]]:
            assert window.wanted[0] >= size // 2
    assert counted == (ids if begin is not None else ids[1:])


def test_losses_add_up() -> None:
    total = TextLoss(math.log(2) * 8, 8, 1, 2) + TextLoss(math.log(2) * 8, 8, 1, 6)
    assert total.perplexity == pytest.approx(2)
    assert total.bits_per_byte == pytest.approx(2)
    assert total.texts == 2


def test_a_killed_measurement_goes_on(checkpoint: Path, tmp_path: Path) -> None:
    model, tokenizer = load_bulk(checkpoint)
    some = [PlainText(str(number), text) for number, text in enumerate(texts(20))]
    console = Console(quiet=True)
    whole = measure("ccnet", some, model, tokenizer, tmp_path, console)
    path = tmp_path / "perplexity" / "ccnet.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    again = measure("ccnet", some, model, tokenizer, tmp_path, console)
    assert (again.tokens, again.texts) == (whole.tokens, whole.texts)
    assert again.nats == pytest.approx(whole.nats, abs=1e-4)
    assert len(path.read_text().splitlines()) == 20
    changed = [PlainText("0", "four hens"), *some[1:]]
    assert measure("ccnet", changed, model, tokenizer, tmp_path, console).nats != pytest.approx(whole.nats, abs=1e-4)


@pytest.mark.slow
def test_the_command_measures_texts_without_any_server(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    main(["--suites", "own-articles", "--count", "3", "--checkpoint", str(checkpoint), "--out", str(out)])
    results = json.loads((out / "results.json").read_text())
    assert results["perplexity"]["own-articles"]["texts"] == 30
    assert results["parameters"] == count_parameters(checkpoint) > 0
    assert "Language modelling (table 8)" in capsys.readouterr().out
    assert (out / "report.html").exists()
    other = tmp_path / "other"
    shutil.copytree(checkpoint, other)
    save_model(random_model(SMALL, seed=1), other)
    with pytest.raises(SystemExit):
        main(["--suites", "own-articles", "--count", "3", "--checkpoint", str(other), "--out", str(out)])
    assert "other settings (checkpoint)" in capsys.readouterr().err


def test_a_checkpoint_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--suites", "own-articles", "--checkpoint", str(tmp_path)])
    assert "holds no checkpoint" in capsys.readouterr().err
