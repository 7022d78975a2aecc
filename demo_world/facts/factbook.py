"""Makes ``countries.tsv`` from the CIA World Factbook (public domain), as factbook/factbook.json holds it.

    python -m demo_world.facts.factbook FOLDER > demo_world/facts/countries.tsv

Names, numbers and short lists are taken; what is in brackets and shares in percent are left out, and so is what
changes with elections.
"""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from demo_world.geography import countries

_HEAD: Final = (
    "# From the CIA World Factbook (public domain) by demo_world/facts/factbook.py; facts only, in few words.\n"
)
_TAG: Final = re.compile(r"<[^>]+>")
_BRACKETS: Final = re.compile(r"\s*[(\[][^()\[\]]*[)\]]")
_SHARE: Final = re.compile(r"\s*(?:less than |at least |<|~)?\s*\d[\d.,/-]*(?:%.*)?$")
_LENGTH: Final = re.compile(r"([\d,.]+) (?:sq )?km")
_FREED: Final = re.compile(r"(\d{1,2}) ([A-Z][a-z]+) (\d{4}) \((?:declared independence )?from (?:the )?([^();,]+)\)")
_WITH_ARTICLE: Final = frozenset({"UK", "US", "Soviet Union", "Netherlands"})
_DOMAIN: Final = re.compile(r"\.[a-z]{2}\b")
_OUTER: Final = re.compile(r"^(?:metropolitan [A-Z]\w+|mainland|[A-Z]\w+ proper):\s*")
_VAGUE: Final = (
    "other", "none", "unspecified", "various", "numerous", "unknown", "note", "and ", "some ", "no ", "undeclared",
    "did not", "two or more", "non", "not ", "don't", "agnostic", "atheist", "believer", "negl", "small ",
)  # fmt: skip
_MOST: Final = 6
_LONGEST: Final = 45

Reader = Callable[[str], str]


def _number(text: str) -> str:
    found = _LENGTH.search(text)
    return found[1] if found and found[1] != "0" else ""


def _borders(text: str) -> str:
    return "; ".join(re.sub(r" [\d.,]+ km.*$", "", _bare(part)) for part in text.split(";") if "km" in part)


def _landlocked(text: str) -> str:
    return "yes" if "landlocked" in text else ""


def _height(text: str) -> str:
    """A place and its height in metres: ``Tahat, 2,908 metres``."""
    found = re.match(r"([^0-9;]+?)\s+(-?\d[\d,.]*)(?: m)?(?:;|$)", _bare(text))
    return f"{found[1].strip(' ,')}, {found[2]} metres" if found and "unnamed" not in found[1] else ""


def _short_list(text: str) -> str:
    return "; ".join(list(dict.fromkeys(_items(text)))[:_MOST])


def _lengths(text: str) -> str:
    """Rivers or lakes with their measure left out: ``Rhine``."""
    names = (re.split(r" [-–] | river (?:source|mouth)", one)[0].strip(" *") for one in text.split(";"))
    return "; ".join([_english(name) for name in names if name and "note" not in name][:_MOST])


def _english(name: str) -> str:
    """The English name, which is in brackets after a local one."""
    found = re.search(r"\(([A-Z][A-Za-z ]+)\)", name)
    return found[1] if found else _bare(name)


def _heritage(text: str) -> str:
    return "; ".join([_bare(name) for name in text.split(";") if name.strip()][:5])


def _official(text: str) -> list[str]:
    named = [_SHARE.sub("", _bare(part)).removesuffix(" only") for part in _split(text) if "(official" in part]
    return [name for name in named if name and name[0].isupper() and len(name) < _LONGEST]


def _split(text: str) -> list[str]:
    """The parts of a list; commas in brackets are no borders."""
    parts, depth = [""], 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char in ",;" and depth <= 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def _one_language(text: str) -> str:
    found = _official(text)
    return found[0] if len(found) == 1 else ""


def _several_languages(text: str) -> str:
    found = _official(text)
    return "; ".join(found) if len(found) > 1 else ""


def _citizens(text: str) -> str:
    return _bare(text.split(";")[0]).replace(", or ", " or ").replace(", ", " or ").replace(" or or ", " or ")


def _name(text: str) -> str:
    text = _bare(text.split(";")[0])
    return "" if text.lower().startswith("none") else text


def _government(text: str) -> str:
    return text.split(";")[0].strip() if " - " not in text and "transition" not in text else ""


def _independence(text: str) -> str:
    found = _FREED.match(text)
    return f"{found[2]} {found[1]}, {found[3]}" if found else ""


def _independent_from(text: str) -> str:
    found = _FREED.match(text)
    if found is None:
        return ""
    return f"the {found[4]}" if found[4] in _WITH_ARTICLE else found[4]


def _holiday(text: str) -> str:
    found = re.match(r"([^,(;]+?)(?: \([^)]*\))?, (\d{1,2}) ([A-Z][a-z]+)\b", text)
    return f"{found[1]}, {found[3]} {found[2]}" if found and "birthday" not in found[1].lower() else ""


def _anthem(text: str) -> str:
    found = re.match(r'["“]([^"”]+)["”](?: \(([^()]+)\))?', text)
    return "" if found is None else f"“{found[1]}”" + (f", which means {found[2]}" if found[2] else "")


COLUMNS: Final[Mapping[str, tuple[str, Reader]]] = {
    "official_name": ("Government/Country name/conventional long form", _name),
    "former": ("Government/Country name/former", _short_list),
    "highest": ("Geography/Elevation/highest point", _height),
    "lowest": ("Geography/Elevation/lowest point", _height),
    "coast": ("Geography/Coastline", _number),
    "landlocked": ("Geography/Coastline", _landlocked),
    "borders": ("Geography/Land boundaries/border countries", _borders),
    "boundaries": ("Geography/Land boundaries/total", _number),
    "rivers": ("Geography/Major rivers (by length in km)", _lengths),
    "lakes": ("Geography/Major lakes (area sq km)/fresh water lake(s)", _lengths),
    "resources": ("Geography/Natural resources", _short_list),
    "heritage": ("Government/National heritage/selected World Heritage Site locales", _heritage),
    "official": ("People and Society/Languages", _one_language),
    "several_official": ("People and Society/Languages", _several_languages),
    "citizens": ("People and Society/Nationality/noun", _citizens),
    "adjective": ("People and Society/Nationality/adjective", _citizens),
    "religions": ("People and Society/Religions", _short_list),
    "peoples": ("People and Society/Ethnic groups", _short_list),
    "government": ("Government/Government type", _government),
    "independence": ("Government/Independence", _independence),
    "independent_from": ("Government/Independence", _independent_from),
    "holiday": ("Government/National holiday", _holiday),
    "anthem": ("Government/National anthem(s)/title", _anthem),
    "legislature": ("Government/Legislative branch/legislature name", _name),
    "symbols": ("Government/National symbol(s)", _short_list),
    "colours": ("Government/National color(s)", _short_list),
    "exports": ("Economy/Exports - commodities", _short_list),
    "crops": ("Economy/Agricultural products", _short_list),
}
"""Each column: where the Factbook has it, and what is taken of it."""


def rows(folder: Path) -> Iterator[list[str]]:
    """A row for each country or territory of the encyclopedia that the Factbook has, by name."""
    entries = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*/*.json"))]
    by_domain: dict[str, Mapping[str, Any]] = {}
    for entry in entries:
        if domain := _DOMAIN.search(_text(entry, "Communications/Internet country code")):
            by_domain.setdefault(domain[0], entry)
    for country in countries():
        if entry := by_domain.get(country.tld or "none"):
            yield row_of(country.in_text, entry)


def row_of(name: str, entry: Mapping[str, Any]) -> list[str]:
    """The row of an entry of the Factbook, for the country of that name in a sentence."""
    return [name, *(read(_text(entry, place)) for place, read in COLUMNS.values())]


def _text(entry: Mapping[str, Any], place: str) -> str:
    """What an entry says at a place, without tags; empty where it says nothing."""
    found: Any = entry
    for name in place.split("/"):
        found = found.get(name, {}) if isinstance(found, dict) else {}
    if isinstance(found, dict) and "text" not in found and isinstance(found.get("Languages"), dict):
        found = found["Languages"]
    text = found.get("text", "") if isinstance(found, dict) else ""
    text = re.split(r"<br\s*/?>\s*<br|<strong>note", str(text))[0]
    text = " ".join(html.unescape(_TAG.sub("", text)).split())
    return _OUTER.sub("", text)


def _items(text: str) -> Iterator[str]:
    """The items of a list in words, without brackets, shares and what is vague."""
    for part in _split(_bare(text)):
        item = _SHARE.sub("", part).strip(' ."/')
        is_plain = len(item) < _LONGEST and ":" not in item and " - " not in item
        if item and is_plain and not item.lower().startswith(_VAGUE):
            yield item


def _bare(text: str) -> str:
    while _BRACKETS.search(text):
        text = _BRACKETS.sub("", text)
    return text.strip()


def main() -> None:
    """Prints the table."""
    lines = ["\t".join(("name", *COLUMNS)), *("\t".join(row) for row in rows(Path(sys.argv[1])))]
    sys.stdout.write(_HEAD + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
