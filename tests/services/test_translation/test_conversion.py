"""A checkpoint in NLLB's published layout converts, and CTranslate2 then makes the tokens that torch makes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import ctranslate2
import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from services.translation.convert import ConversionError, convert, main
from services.translation.flores import LANGUAGES
from services.translation.model_folder import UnusableModelError, read_manifest
from services.translation.translator import Translator
from tests.services.test_translation.nllb_checkpoint import TEXTS

LENGTH = 40
CODES = ["deu_Latn", "fra_Latn", "zho_Hans", "arb_Arab", "swh_Latn"]


def test_the_manifest_says_what_the_folder_holds(model_folder: Path) -> None:
    manifest = read_manifest(model_folder)
    assert manifest.checkpoint == "nllb-tiny"
    assert manifest.quantization == "float32"
    assert manifest.max_tokens == 128
    assert manifest.beam_size == Translator(model_folder).beam_size == 4
    assert manifest.source_languages == tuple(LANGUAGES)
    assert manifest.model_bytes == (model_folder / "model.bin").stat().st_size


@pytest.mark.parametrize(("language", "text"), list(zip(CODES, TEXTS, strict=True)))
def test_a_segment_is_what_nllbs_own_tokenizer_makes(
    checkpoint: Path, model_folder: Path, language: str, text: str
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(checkpoint, src_lang=language)
    [segment] = Translator(model_folder, compute_type="float32").segments(text, language)
    assert tokenizer.convert_tokens_to_ids(list(segment.tokens)) == tokenizer(text).input_ids
    assert tokenizer.unk_token_id not in tokenizer(text).input_ids


def test_ctranslate2_makes_the_tokens_that_torch_makes(checkpoint: Path, model_folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = AutoModelForSeq2SeqLM.from_pretrained(checkpoint).eval()
    converted = ctranslate2.Translator(str(model_folder), device="cpu", compute_type="float32")
    translator = Translator(model_folder, device="cpu", compute_type="float32", beam_size=1)
    all_made = []
    for language, text in zip(CODES, TEXTS, strict=True):
        tokenizer.src_lang = language
        made = model.generate(
            **tokenizer(text, return_tensors="pt"),
            forced_bos_token_id=tokenizer.convert_tokens_to_ids("eng_Latn"),
            num_beams=1,
            do_sample=False,
            max_length=LENGTH,
        )[0].tolist()
        [segment] = translator.segments(text, language)
        [result] = converted.translate_batch(
            [list(segment.tokens)], target_prefix=[["eng_Latn"]], beam_size=1, max_decoding_length=2 * LENGTH
        )
        # torch writes its start token first and, where it came to one, the end last.
        wanted = [token for token in made[1:] if token != tokenizer.eos_token_id]
        assert tokenizer.convert_tokens_to_ids(result.hypotheses[0])[: len(wanted)] == wanted
        all_made += wanted[1:]
    assert len(all_made) > LENGTH
    assert len(set(all_made)) >= 8


def test_quantised_weights_take_a_third_of_the_room(checkpoint: Path, model_folder: Path, tmp_path: Path) -> None:
    manifest = convert(str(checkpoint), tmp_path / "int8", quantization="int8", languages=["deu_Latn"])
    assert manifest.model_bytes < read_manifest(model_folder).model_bytes / 2
    assert manifest.source_languages == ("deu_Latn",)
    [made] = (translator := Translator(tmp_path / "int8")).translate(translator.segments(TEXTS[0], "deu_Latn"))
    assert made.text


def test_weights_as_safetensors_convert_too(checkpoint: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(checkpoint, copy)
    (copy / "pytorch_model.bin").unlink()
    AutoModelForSeq2SeqLM.from_pretrained(checkpoint).save_pretrained(copy)
    assert convert(str(copy), tmp_path / "out", quantization="float32").quantization == "float32"


@pytest.mark.parametrize("missing", ["config.json", "tokenizer.json", "pytorch_model.bin"])
def test_a_checkpoint_without_a_file_is_refused(checkpoint: Path, tmp_path: Path, missing: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(checkpoint, copy)
    (copy / missing).unlink()
    with pytest.raises(ConversionError, match=missing):
        convert(str(copy), tmp_path / "out")
    assert not list(tmp_path.glob("out*"))


def test_torn_weights_leave_nothing_behind(checkpoint: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(checkpoint, copy)
    torch.save({}, copy / "pytorch_model.bin")
    (copy / "pytorch_model.bin").write_bytes((copy / "pytorch_model.bin").read_bytes()[:100])
    with pytest.raises(ConversionError, match="cannot convert"):
        convert(str(copy), tmp_path / "out")
    assert not list(tmp_path.glob("out*"))


def test_another_architecture_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(checkpoint, copy)
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "model_type": "vit"}))
    with pytest.raises(ConversionError, match="cannot convert"):
        convert(str(copy), tmp_path / "out")


def test_a_tokenizer_without_languages_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(checkpoint, copy)
    tokenizer = (copy / "tokenizer.json").read_text().replace("eng_Latn", "eng_Xxxx")
    (copy / "tokenizer.json").write_text(tokenizer)
    with pytest.raises(ConversionError, match="no token 'eng_Latn'"):
        convert(str(copy), tmp_path / "out")
    assert not list(tmp_path.glob("out*"))


def test_an_existing_folder_is_never_written_over(checkpoint: Path, model_folder: Path) -> None:
    with pytest.raises(ConversionError, match="exists"):
        convert(str(checkpoint), model_folder)
    assert read_manifest(model_folder)


def test_too_small_a_disk_is_said_before_anything_is_done(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))
    with pytest.raises(ConversionError, match="make room"):
        convert(str(checkpoint), tmp_path / "out")


def test_the_command_complains_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--model", str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")])
    assert str(stopped.value).startswith("convert: there is no folder")
    assert "\n" not in str(stopped.value)


@pytest.mark.parametrize("name", ["model.bin", "config.json", "shared_vocabulary.json", "tokenizer.json"])
def test_a_folder_without_a_file_cannot_be_loaded(model_folder: Path, tmp_path: Path, name: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(model_folder, copy)
    (copy / name).unlink()
    with pytest.raises(UnusableModelError, match=name):
        Translator(copy)


def test_a_torn_model_cannot_be_loaded(model_folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(model_folder, copy)
    (copy / "model.bin").write_bytes((model_folder / "model.bin").read_bytes()[:-1_000])
    with pytest.raises(UnusableModelError, match="torn"):
        Translator(copy)


@pytest.mark.parametrize("name", ["model.bin", "tokenizer.json"])
def test_a_corrupt_file_of_the_right_size_cannot_be_loaded(model_folder: Path, tmp_path: Path, name: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(model_folder, copy)
    (copy / name).write_bytes(b"\x00" * (copy / name).stat().st_size)
    with pytest.raises(UnusableModelError, match=r"cannot be loaded|is damaged"):
        Translator(copy)


@pytest.mark.parametrize("content", ["", "{}", '{"format": 1}', "not json"])
def test_a_broken_manifest_is_named(model_folder: Path, tmp_path: Path, content: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(model_folder, copy)
    (copy / "translation.json").write_text(content)
    with pytest.raises(UnusableModelError, match=r"translation\.json cannot be read"):
        read_manifest(copy)


def test_another_format_is_named(model_folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(model_folder, copy)
    read_manifest(copy).model_copy(update={"format": 99}).write(copy)
    with pytest.raises(UnusableModelError, match="format 99"):
        read_manifest(copy)


def test_a_compute_type_that_the_machine_lacks_is_a_clear_error(model_folder: Path) -> None:
    with pytest.raises(UnusableModelError, match="float16"):
        Translator(model_folder, device="cpu", compute_type="float16")
