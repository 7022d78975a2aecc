"""Every setting of the gateway and of the services is in a page, by the name of its environment variable."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic_settings import BaseSettings

from inference_gateway.settings import GatewaySettings
from services.base.command import ServerSettings
from services.calculator.app import CalculatorSettings
from services.calendar.app import CalendarSettings
from services.question_answering.app import QuestionAnsweringSettings
from services.translation.app import TranslationSettings
from services.wiki_search.app import WikiSearchSettings

ROOT = Path(__file__).parents[1]
PAGES: dict[type[BaseSettings], tuple[str, ...]] = {
    GatewaySettings: ("inference_gateway/README.md", "docs/remote-backends.md"),
    ServerSettings: ("services/README.md",),
    CalculatorSettings: ("services/calculator/README.md",),
    CalendarSettings: ("services/calendar/README.md",),
    WikiSearchSettings: ("services/wiki_search/README.md",),
    QuestionAnsweringSettings: ("services/question_answering/README.md",),
    TranslationSettings: ("services/translation/README.md",),
}


@pytest.mark.parametrize("settings", PAGES, ids=lambda settings: settings.__name__)
def test_every_setting_is_in_a_page(settings: type[BaseSettings]) -> None:
    code = " ".join(re.findall(r"`([^`\n]+)`", "".join((ROOT / page).read_text() for page in PAGES[settings])))
    named = set(re.findall(r"[A-Z][A-Z0-9_]+", code))
    for field in settings.model_fields:
        variable = field.upper()
        assert any(name == variable or name.endswith(f"_{variable}") for name in named), f"{variable} is in no page"
