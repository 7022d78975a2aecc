"""Every setting is in a page, by the name of its environment variable."""

import re
from pathlib import Path

import pytest
from pydantic_settings import BaseSettings

from inference_gateway.settings import GatewaySettings
from services.base.command import ServerSettings
from services.calculator.app import CalculatorSettings
from services.calendar.app import CalendarSettings
from services.question_answering.engine import QuestionAnsweringSettings
from services.translation.engine import TranslationSettings
from services.wiki_search.engine import WikiSearchSettings

ROOT = Path(__file__).parents[1]
SERVICES = ("CALCULATOR", "CALENDAR", "WIKI_SEARCH", "QUESTION_ANSWERING", "TRANSLATION")
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


def test_every_variable_that_code_names_is_in_a_page() -> None:
    """Settings that no settings class has: of the jobs, of the tool client, of the command."""
    pages = "".join(page.read_text() for page in ROOT.rglob("*.md") if ".venv" not in page.parts)
    prefixes = ("TOOLFORMER_GATEWAY_", "TOOLFORMER_TOOL_", *(f"TOOLFORMER_{service}_" for service in SERVICES))
    for folder in ("toolformer", "language_model", "services", "inference_gateway", "training_jobs", "cli"):
        for module in sorted((ROOT / folder).rglob("*.py")):
            for variable in re.findall(r"\"(TOOLFORMER_[A-Z_]*[A-Z])\"", module.read_text()):
                assert variable.startswith(prefixes) or f"`{variable}" in pages, f"{variable} is in no page"
