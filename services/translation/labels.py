"""What classifiers and callers call a language, mapped to its FLORES-200 code.

Three families of labels are understood: FLORES-200 codes themselves (the published ``lid218e`` speaks them), ISO 639
codes as in the published ``lid.176`` (two letters, or three where there are no two), and ISO 639-3 codes. A language
that FLORES writes in several scripts is decided by the text's script.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from services.translation.flores import LANGUAGES, TABLE

LABEL_PREFIX: Final = "__label__"

_ALIASES: Final[Mapping[str, str]] = TABLE["aliases"]
_BY_SCRIPT: Final[Mapping[str, Mapping[str, str]]] = TABLE["by_script"]
_OTHER_TOKENS: Final[Mapping[str, str]] = TABLE["other_tokens"]
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
