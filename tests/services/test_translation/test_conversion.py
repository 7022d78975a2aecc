"""A checkpoint in NLLB's published layout converts, and CTranslate2 then makes the tokens that torch makes."""

import shutil
from collections.abc import Callable
from pathlib import Path

import ctranslate2
import pytest
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


Spoil = Callable[[Path], object]


def gone(name: str) -> Spoil:
    return lambda folder: (folder / name).unlink()


def torn(name: str, size: int) -> Spoil:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:size])


def zeros(name: str) -> Spoil:
    return lambda folder: (folder / name).write_bytes(bytes((folder / name).stat().st_size))


def written(name: str, content: str) -> Spoil:
    return lambda folder: (folder / name).write_text(content)


def replaced(name: str, old: str, new: str) -> Spoil:
    return lambda folder: (folder / name).write_text((folder / name).read_text().replace(old, new))


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        *((gone(name), name) for name in ("config.json", "tokenizer.json", "pytorch_model.bin")),
        (torn("pytorch_model.bin", 100), "cannot convert"),
        (replaced("config.json", "m2m_100", "vit"), "cannot convert"),
        (replaced("tokenizer.json", "eng_Latn", "eng_Xxxx"), "no token 'eng_Latn'"),
    ],
)
def test_a_checkpoint_that_is_none_is_refused(checkpoint: Path, tmp_path: Path, spoil: Spoil, complaint: str) -> None:
    shutil.copytree(checkpoint, tmp_path / "copy")
    spoil(tmp_path / "copy")
    with pytest.raises(ConversionError, match=complaint):
        convert(str(tmp_path / "copy"), tmp_path / "out")
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        *((gone(name), name) for name in ("model.bin", "config.json", "shared_vocabulary.json", "tokenizer.json")),
        (torn("model.bin", -1_000), "torn"),
        *((zeros(name), "cannot be loaded|is damaged") for name in ("model.bin", "tokenizer.json")),
        *((written("translation.json", text), "on.json cannot be read") for text in ("", "{}", '{"format": 1}', "no")),
        (lambda folder: read_manifest(folder).model_copy(update={"format": 99}).write(folder), "format 99"),
    ],
)
def test_a_folder_that_is_not_whole_cannot_be_loaded(
    model_folder: Path, tmp_path: Path, spoil: Spoil, complaint: str
) -> None:
    shutil.copytree(model_folder, tmp_path / "copy")
    spoil(tmp_path / "copy")
    with pytest.raises(UnusableModelError, match=complaint):
        Translator(tmp_path / "copy")


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


def test_a_compute_type_that_the_machine_lacks_is_a_clear_error(model_folder: Path) -> None:
    with pytest.raises(UnusableModelError, match="float16"):
        Translator(model_folder, device="cpu", compute_type="float16")
