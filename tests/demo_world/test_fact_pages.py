"""The tables of facts: their shape, and the pages that they become."""

from collections import Counter
from pathlib import Path

import pytest

from demo_world import encyclopedia
from demo_world.facts import fact_pages, factbook
from demo_world.facts.compare import occurs
from demo_world.facts.fact_pages import WORDING, fact_rows
from demo_world.page import Page

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def all_pages() -> dict[str, Page]:
    return {page.title: page for page in encyclopedia.pages()}


def text(page: Page) -> str:
    return "".join(page.kilt_text())


def test_each_table_is_worded_and_each_column_in_it() -> None:
    folder = Path(fact_pages.__file__).parent
    assert WORDING.keys() == {path.stem for path in folder.glob("*.tsv")}
    for table, wording in WORDING.items():
        used = {column for row in fact_rows(table) for column in row.values}
        patterns = [wording.lead, *wording.sections.values()]
        worded = {column for every in patterns for column in every}
        named = {name for every in patterns for few in every.values() for one in few for name in fact_pages.fields(one)}
        assert used <= worded | named, table
        assert worded | named | wording.turned.keys() <= used | {"name"}, table


def test_there_are_thousands_of_facts() -> None:
    counted = Counter({table: sum(len(row.values) for row in fact_rows(table)) for table in WORDING})
    assert counted.total() > 5_000
    assert min(counted.values()) > 20, counted


def test_a_thing_has_one_row_in_a_table_and_a_page(all_pages: dict[str, Page]) -> None:
    generated = {page.title for page in encyclopedia.generated_pages()}
    kinds = dict[str, str]()  # of a title that several tables have, the first one's
    for table, wording in WORDING.items():
        titles = [row.title for row in fact_rows(table)]
        assert not [title for title, times in Counter(titles).items() if times > 1], table
        if wording.kind:
            kinds |= {title: wording.kind for title in titles if title not in kinds}
            pages = [f"{title} ({kinds[title]})" if title in generated else title for title in titles]
            assert not [title for title in pages if title not in all_pages or title in generated], table
        else:
            assert generated.issuperset(titles), table


def test_what_is_said_of_a_thing_answers_for_each_column(all_pages: dict[str, Page]) -> None:
    assert "William Shakespeare" in text(all_pages["Hamlet"])
    assert "Ulm, Germany" in text(all_pages["Albert Einstein"])
    assert "on March 14, 1879" in text(all_pages["Albert Einstein"])
    assert "chemical formula" in text(all_pages["Water"])
    assert '"la tortuga" is Spanish and means "the turtle".' in text(all_pages["Turtle"])
    assert "in 1440" in text(all_pages["Printing press"])


def test_a_namesake_of_a_generated_page_has_its_own(all_pages: dict[str, Page]) -> None:
    assert "capital" in text(all_pages["Turkey"])
    assert "North America" in text(all_pages["Turkey (animal)"])


def test_a_generated_page_keeps_its_text_and_gets_sections(all_pages: dict[str, Page]) -> None:
    before = {page.title: page for page in encyclopedia.generated_pages()}["France"]
    page = all_pages["France"]
    assert page.lead == before.lead
    assert page.sections[: len(before.sections)] == before.sections
    assert [heading for heading, _ in page.sections[len(before.sections) :]] == ["Land", "People", "State", "Economy"]
    assert "Mont Blanc, 4,810 metres" in text(page)


def test_a_person_has_a_page_of_works(all_pages: dict[str, Page]) -> None:
    assert "Emma" in text(all_pages["Jane Austen"])
    assert "The Age of" not in text(all_pages["Jane Austen"])
    assert all_pages["Antonio Vivaldi"].sections[0][0] == "Works"
    assert "The Handmaid's Tale" in all_pages["Margaret Atwood"].lead[0]


def test_dates_have_their_prepositions() -> None:
    said = {
        "May 5, 1818": "on May 5, 1818", "April 1994": "in April 1994", "AD 79": "in AD 79",
        "17th century": "in the 17th century", "2nd century BC": "in the 2nd century BC",
    }  # fmt: skip
    assert {value: f"{fact_pages.Value(value):when}" for value in said} == said


def test_a_row_of_the_factbook() -> None:
    entry = {
        "Communications": {"Internet country code": {"text": ".fr"}},
        "Geography": {
            "Elevation": {"highest point": {"text": "Mont Blanc 4,810"}},
            "Coastline": {"text": "4,853 km"},
            "Major rivers (by length in km)": {
                "text": "Rhin (Rhine) (shared with Germany) - 1,233 km; Loire - 1,012 km"
            },
        },
        "Government": {
            "Independence": {"text": "6 July 1975 (from the UK)"},
            "National anthem(s)": {"title": {"text": '"La Marseillaise" (The Song of Marseille)'}},
        },
        "People and Society": {"Religions": {"text": "Roman Catholic 47%, Muslim 4%, other 1%, none 33% (2021 est.)"}},
    }
    row = factbook.row_of("France", entry)
    assert {column: value for column, value in zip(factbook.COLUMNS, row[1:], strict=True) if value} == {
        "highest": "Mont Blanc, 4,810 metres", "coast": "4,853", "rivers": "Rhine; Loire",
        "religions": "Roman Catholic; Muslim", "independence": "July 6, 1975", "independent_from": "the UK",
        "anthem": "“La Marseillaise”, which means The Song of Marseille",
    }  # fmt: skip


def test_a_value_occurs_in_an_article_in_another_spelling() -> None:
    assert occurs("8,849", "it is 8849 metres high")
    assert occurs("the Sagrada Família", "the basilica of the sagrada familia in barcelona")
    assert not occurs("Toulouse", "a town in the south")
