"""Labels of classifiers and names from callers become FLORES-200 codes, by the text's script where that decides."""

import pytest
from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

from services.translation.flores import LANGUAGES
from services.translation.labels import parse_language, to_flores
from services.translation.scripts import has_letters, main_script

LID_176 = """
af als am an ar arz as ast av az azb ba bar bcl be bg bh bn bo bpy br bs bxr ca cbk ce ceb ckb co cs cv cy da de diq dsb
dty dv el eml en eo es et eu fa fi fr frr fy ga gd gl gn gom gu gv he hi hif hr hsb ht hu hy ia id ie ilo io is it ja
jbo jv ka kk km kn ko krc ku kv kw ky la lb lez li lmo lo lrc lt lv mai mg mhr min mk ml mn mr mrj ms mt mwl my myv mzn
nah nap nds ne new nl nn no oc or os pa pam pfl pl pms pnb ps pt qu rm ro ru rue sa sah sc scn sco sd sh si sk sl so sq
sr su sv sw ta te tg th tk tl tr tt tyv ug uk ur uz vec vep vi vls vo wa war wuu xal xmf yi yo yue zh
"""
OUTSIDE_FLORES = """
als an av bar bcl bpy br bxr cbk ce co cv diq dsb dty dv eml frr fy gom gv hif hsb ia ie io jbo krc kv kw la lez lrc mhr
mrj mwl myv mzn nah nap nds new os pam pfl pms pnb rm rue sah sco tyv vep vls vo wa xal xmf
"""
"""Labels of lid.176 whose language FLORES-200 does not hold; `als` is Alemannic there."""


def test_the_table_is_nllbs() -> None:
    assert list(LANGUAGES) == FAIRSEQ_LANGUAGE_CODES
    assert len(set(LANGUAGES.values())) == len(LANGUAGES) == 202


def test_every_label_of_lid_176_is_mapped_or_known_to_be_outside() -> None:
    labels = LID_176.split()
    assert len(labels) == 176
    assert [label for label in labels if to_flores(f"__label__{label}", None) is None] == OUTSIDE_FLORES.split()


def test_every_flores_code_names_itself() -> None:
    for code in LANGUAGES:
        language, _, script = code.partition("_")
        assert to_flores(f"__label__{code}", None) == parse_language(code) == parse_language(language, script) == code


@pytest.mark.parametrize(
    ("label", "text", "code"),
    [
        ("zh", "这个国家叫波兰", "zho_Hans"), ("zh", "這個國家叫波蘭", "zho_Hant"), ("zh", "中国", "zho_Hans"),
        ("wuu", "這個國家", "zho_Hant"), ("sr", "Ова земља се зове Пољска", "srp_Cyrl"),
        ("sr", "Ova zemlja se zove Poljska", "hrv_Latn"),
        ("sh", "Ова земља", "srp_Cyrl"), ("az", "Bu ölkə", "azj_Latn"), ("az", "بو اؤلکه", "azb_Arab"),
        ("ku", "Ev welat", "kmr_Latn"), ("ku", "ئەم وڵاتە", "ckb_Arab"), ("ks", "کٲشُر", "kas_Arab"),
        ("ks", "कॉशुर", "kas_Deva"), ("ace_Latn", "بهسا", "ace_Latn"), ("ar", "هذا البلد", "arb_Arab"),
        ("no", "Dette landet", "nob_Latn"), ("fa", "این کشور", "pes_Arab"), ("sq", "Ky vend", "als_Latn"),
        ("sat_Olck", "ᱥᱟᱱᱛᱟᱲᱤ", "sat_Beng"),
    ],
)  # fmt: skip
def test_the_script_decides_where_it_must(label: str, text: str, code: str) -> None:
    assert to_flores(f"__label__{label}", main_script(text)) == code


def test_a_caller_may_name_albanian_by_its_own_code() -> None:
    assert parse_language("als") == "als_Latn"
    assert to_flores("als", "Latn") is None


@pytest.mark.parametrize("name", ["", "xx", "German", "DE", "deu_Cyrl", "__label__de", "🙂", "de\x00"])
def test_a_name_of_no_language_is_none(name: str) -> None:
    assert parse_language(name) is None


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Hello", "Latn"), ("Привет, John", "Cyrl"), ("مرحبا", "Arab"), ("臺灣 ABC", "Latn"),
        ("臺灣繁體字 ABC", "Hant"), ("12345 !?", None), ("", None), ("🙂🙂", None),
    ],
)  # fmt: skip
def test_the_main_script_is_that_of_most_letters(text: str, script: str | None) -> None:
    assert main_script(text) == script


@pytest.mark.parametrize(("text", "expected"), [("7 + 3", False), ("🙂 ٣٤", False), ("a1", True), ("字", True)])
def test_letters_are_letters_of_any_script(text: str, expected: bool) -> None:
    assert has_letters(text) is expected
