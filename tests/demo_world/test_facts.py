"""The facts, against what an atlas says."""

import pytest

from demo_world import culture, geography
from demo_world.titles import city_titles, country_titles, fold, state_titles, unique_cities


def test_a_country_has_what_an_atlas_says() -> None:
    slovenia = geography.countries_by_code()["SI"]
    assert (slovenia.name, slovenia.capital, slovenia.continent) == ("Slovenia", "Ljubljana", "Europe")
    assert (slovenia.currency_code, slovenia.currency_name) == ("EUR", "Euro")
    assert set(slovenia.neighbours) == {"Austria", "Croatia", "Hungary", "Italy"}
    assert 20_000 < slovenia.area_km2 < 21_000
    assert 1_900_000 < slovenia.population < 2_300_000
    assert (slovenia.tld, slovenia.phone_code) == (".si", "386")


def test_dissolved_countries_are_left_out() -> None:
    names = {country.name for country in geography.countries()}
    assert {"Serbia", "Montenegro", "Kosovo", "Curacao"} <= names
    assert not names & {"Serbia and Montenegro", "Netherlands Antilles"}


@pytest.mark.parametrize(
    ("name", "in_text"),
    [
        ("United States", "the United States"),
        ("Netherlands", "the Netherlands"),
        ("Marshall Islands", "the Marshall Islands"),
        ("Dominican Republic", "the Dominican Republic"),
        ("Slovenia", "Slovenia"),
        ("Dominica", "Dominica"),
        ("Ireland", "Ireland"),
    ],
)
def test_articles(name: str, in_text: str) -> None:
    assert next(country for country in geography.countries() if country.name == name).in_text == in_text


def test_records_have_no_loose_ends() -> None:
    for country in geography.countries():
        assert country.name == country.name.strip()
        assert country.capital is None or country.capital.strip() == country.capital != ""
    for city in geography.cities():
        assert city.population > 0
        assert -90 <= city.latitude <= 90
        assert -180 <= city.longitude <= 180
        assert city.country_code in geography.countries_by_code()


def test_cities_stand_in_order_of_population_and_have_one_key_each() -> None:
    cities = geography.cities()
    assert [city.population for city in cities] == sorted((city.population for city in cities), reverse=True)
    assert len({city.key for city in cities}) == len(cities) > 30_000


def test_regions_are_resolved_where_the_codes_allow() -> None:
    springfields = {city.region for city in geography.cities() if city.name == "Springfield"}
    assert {"Illinois", "Massachusetts", "Missouri", "Oregon"} <= springfields
    assert all(city.region is None for city in geography.cities() if city.country_code == "SI")


def test_titles_tell_namesakes_apart() -> None:
    titles = city_titles()
    by_title = {titles[city.key]: city for city in geography.cities() if city.key in titles}
    assert by_title["Paris"].country_code == "FR"
    assert by_title["Paris, Texas"].country_code == "US"
    assert by_title["Springfield, Illinois"].region == "Illinois"
    assert "Springfield" not in by_title
    assert "Singapore" not in by_title
    assert state_titles()["GA"] == "Georgia (U.S. state)"
    assert country_titles()["GE"] == "Georgia"


def test_unique_cities_have_their_name_to_themselves() -> None:
    everything = [fold(city.name) for city in geography.cities() if city.key in city_titles()]
    everything += [fold(country.name) for country in geography.countries()]
    everything += [fold(state.name) for state in geography.states()]
    names = {city.name for city in unique_cities()}
    assert {"Ljubljana", "Berlin", "Nairobi"} <= names
    assert not names & {"Paris", "London", "Georgia", "Victoria", "Asia", "São Paulo"}
    assert all(name.replace(" ", "").replace("-", "").isalpha() and name.isascii() for name in names)
    counts = {name: everything.count(fold(name)) for name in sorted(names)[::400]}
    assert set(counts.values()) == {1}
    assert len(names) == len(unique_cities()) > 10_000


def test_languages_and_currencies() -> None:
    slovenian = next(language for language in culture.languages() if language.code == "sl")
    assert (slovenian.name, slovenian.native_name, slovenian.script) == ("Slovenian", "slovenščina", "Latin")
    assert "Slovenia" in slovenian.countries
    assert next(language for language in culture.languages() if language.code == "ar").right_to_left
    yen = next(currency for currency in culture.currencies() if currency.code == "JPY")
    assert (yen.name, yen.decimals, yen.countries) == ("Japanese Yen", 0, ("Japan",))


def test_public_holidays_are_those_of_fixed_date() -> None:
    american = {(day.name, day.month, day.day) for day in culture.public_holidays() if day.country_code == "US"}
    assert ("Independence Day", 7, 4) in american
    assert not any(name == "Thanksgiving Day" for name, _, _ in american)
