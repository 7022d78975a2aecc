"""The tables are read whole: nothing in a file is left over, and nothing is missing."""

from dataclasses import dataclass

import pytest
from pydantic import ValidationError

from demo_world.tables import read


@dataclass
class Part:
    quotes: tuple[str, ...]


@dataclass
class Whole(Part):
    englishes: tuple[str, ...]
    openings: tuple[str, ...]
    tails: tuple[str, ...]


@dataclass
class More(Whole):
    middles: tuple[str, ...]


def test_a_table_has_what_its_reader_asks_for_and_no_more() -> None:
    assert '"{foreign}"' in read("foreign", Whole).quotes[0]
    with pytest.raises(ValidationError, match="tails\n  Unexpected keyword argument") as caught:
        read("foreign", Part)
    assert "foreign.toml" in caught.value.__notes__[0]
    with pytest.raises(ValidationError, match="middles\n  Field required"):
        read("foreign", More)
    with pytest.raises(ValidationError, match="quotes\n  Input should be a valid string"):
        read("foreign", dict[str, str])
