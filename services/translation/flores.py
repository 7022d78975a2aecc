"""The languages that NLLB-200 translates, by FLORES-200 code: ISO 639-3, underscore, ISO 15924 script.

The codes are NLLB's language tokens, in the order of its vocabulary. Where the token and the FLORES-200 table differ
(Santali is written in Ol Chiki, its token says ``sat_Beng``), the token is here.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ENGLISH: Final = "eng_Latn"

TABLE: Final = tomllib.loads(Path(__file__).with_name("languages.toml").read_text(encoding="utf-8"))
"""The languages, and what else they are called (`labels.py`)."""

LANGUAGES: Final[Mapping[str, str]] = TABLE["languages"]
"""English names of all 202, by code."""
