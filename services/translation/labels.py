"""What classifiers and callers call a language, mapped to its FLORES-200 code.

Three families of labels are understood: FLORES-200 codes themselves (the published ``lid218e`` speaks them), ISO 639
codes as in the published ``lid.176`` (two letters, or three where there are no two), and ISO 639-3 codes. A language
that FLORES writes in several scripts is decided by the text's script.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from services.translation.flores import LANGUAGES

LABEL_PREFIX: Final = "__label__"

# ISO 639-1 (or Wikipedia's code, which lid.176 uses) to ISO 639-3 as FLORES has it. A macrolanguage goes to the member
# that FLORES holds: ar to arb, fa to pes, ms to zsm. Missing on purpose: what FLORES does not hold, such as la or br.
_TABLE: Final = """
af=afr ak=aka am=amh ar=arb as=asm ay=ayr ba=bak be=bel bg=bul bh=bho bm=bam bn=ben bo=bod bs=bos ca=cat cs=ces
cy=cym da=dan de=deu dz=dzo ee=ewe el=ell en=eng eo=epo es=spa et=est eu=eus fa=pes fi=fin fj=fij fo=fao fr=fra
ga=gle gd=gla gl=glg gn=grn gu=guj ha=hau he=heb hi=hin hr=hrv ht=hat hu=hun hy=hye id=ind ig=ibo is=isl it=ita
ja=jpn jv=jav ka=kat ki=kik kk=kaz km=khm kn=kan ko=kor kr=knc ks=kas ky=kir lb=ltz lg=lug li=lim ln=lin lo=lao
lt=lit lv=lvs mg=plt mi=mri mk=mkd ml=mal mn=khk mr=mar ms=zsm mt=mlt my=mya nb=nob ne=npi nl=nld nn=nno no=nob
ny=nya oc=oci om=gaz or=ory pa=pan pl=pol ps=pbt pt=por qu=quy rn=run ro=ron ru=rus rw=kin sa=san sc=srd sd=snd
sg=sag si=sin sk=slk sl=slv sm=smo sn=sna so=som sq=als ss=ssw st=sot su=sun sv=swe sw=swh ta=tam te=tel tg=tgk
th=tha ti=tir tk=tuk tl=tgl tn=tsn tr=tur ts=tso tt=tat tw=twi ug=uig uk=ukr ur=urd uz=uzn vi=vie wo=wol xh=xho
yi=ydd yo=yor zh=zho zu=zul ara=arb aym=ayr aze=azj bih=bho cmn=zho ekk=est est=est fas=pes ful=fuv grn=grn kau=knc
lav=lvs mlg=plt mon=khk msa=zsm nep=npi nor=nob ori=ory orm=gaz pus=pbt que=quy sqi=als swa=swh uzb=uzn wuu=zho
yid=ydd
"""
_ALIASES: Final[Mapping[str, str]] = dict(pair.split("=") for pair in _TABLE.split())
# Where the script decides between languages, not between scripts of one language.
_BY_SCRIPT: Final[Mapping[str, Mapping[str, str]]] = {
    "az": {"Latn": "azj_Latn", "Arab": "azb_Arab"},
    "ku": {"Latn": "kmr_Latn", "Arab": "ckb_Arab"},
    "kur": {"Latn": "kmr_Latn", "Arab": "ckb_Arab"},
    # FLORES writes Serbian in Cyrillic only; in Latin letters its nearest neighbour there is Croatian.
    "sr": {"Cyrl": "srp_Cyrl", "Latn": "hrv_Latn"},
    "srp": {"Cyrl": "srp_Cyrl", "Latn": "hrv_Latn"},
    "sh": {"Latn": "hrv_Latn", "Cyrl": "srp_Cyrl"},
    "hbs": {"Latn": "hrv_Latn", "Cyrl": "srp_Cyrl"},
}
# Labels in FLORES-200's form whose NLLB token differs.
_OTHER_TOKENS: Final[Mapping[str, str]] = {"sat_Olck": "sat_Beng", "mni_Mtei": "mni_Beng"}
# In lid.176, `als` is Wikipedia's code of Alemannic German; in FLORES it is Tosk Albanian.
_FALSE_FRIENDS: Final = frozenset({"als"})
# The script to take where the text's own is none of the language's.
_DEFAULT_SCRIPTS: Final = ("Latn", "Hans", "Arab")


def _scripts_of_languages() -> dict[str, dict[str, str]]:
    scripts: dict[str, dict[str, str]] = {}
    for code in LANGUAGES:
        language, script = code.split("_")
        scripts.setdefault(language, {})[script] = code
    return scripts


_BY_LANGUAGE: Final = _scripts_of_languages()


def to_flores(label: str, script: str | None) -> str | None:
    """The FLORES-200 code that a classifier's label means for a text in `script` (see `scripts.main_script`).

    None where FLORES-200 does not hold that language.
    """
    label = label.removeprefix(LABEL_PREFIX)
    return None if label in _FALSE_FRIENDS else parse_language(label, script)


def parse_language(name: str, script: str | None = None) -> str | None:
    """The FLORES-200 code that a caller's `name` of a language means: a FLORES-200 code or an ISO 639 code.

    None where it means none.
    """
    code = _OTHER_TOKENS.get(name, name)
    if code in LANGUAGES:
        return code
    choices = _BY_SCRIPT.get(name) or _BY_LANGUAGE.get(_ALIASES.get(name, name))
    if not choices:
        return None
    for candidate in (script, *_DEFAULT_SCRIPTS):
        if candidate is not None and candidate in choices:
            return choices[candidate]
    return next(iter(choices.values()))
