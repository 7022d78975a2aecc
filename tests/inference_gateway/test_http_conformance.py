"""The gateway does what its OpenAPI says, for whatever a client may send: schemathesis on a running gateway."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import CheckFunction
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from inference_gateway.app import create_app
from inference_gateway.settings import GatewaySettings
from tests.inference_gateway.http_harness import bearer, scripted_backend, tools_at
from tests.support.waiting import wait_for
from tests.training_jobs.servers import serve

COMPLETIONS = ("POST", "/v1/completions")
CHAT = ("POST", "/v1/chat/completions")
TOKENS = [("POST", "/tokenize"), ("POST", "/detokenize")]
GUARDED = [COMPLETIONS, CHAT, *TOKENS, ("GET", "/v1/models"), ("GET", "/v1/models/{id}"), ("GET", "/v1/tools")]
OPEN = [("GET", "/health"), ("GET", "/ready"), ("GET", "/metrics")]
"""These take nothing, so nothing wrong can be sent to them."""
KEY = "of-schemathesis"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A gateway in a thread, since schemathesis speaks to it without asyncio."""
    app = create_app(scripted_backend, tools_at({}), GatewaySettings(api_keys=KEY, chat_template="plain"))
    with serve(app) as address, httpx.Client(base_url=address, headers=bearer(KEY), trust_env=False) as http:
        wait_for(lambda: http.get("/v1/models").status_code == 200)
        yield address


@pytest.mark.parametrize(
    ("operation", "mode"),
    [
        *((operation, GenerationMode.POSITIVE) for operation in [*GUARDED, *OPEN]),
        *((operation, GenerationMode.NEGATIVE) for operation in GUARDED),
    ],
)
def test_answers_are_as_described(url: str, operation: tuple[str, str], mode: GenerationMode) -> None:
    method, path = operation
    described = schemathesis.openapi.from_url(f"{url}/openapi.json")[path][method]
    # A description cannot know the model's name and length, nor the tools; and its integers may be written 2.0.
    excluded: list[CheckFunction] = [positive_data_acceptance] if method == "POST" else []

    @settings(max_examples=20, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(case=described.as_strategy(generation_mode=mode))
    def holds(case: schemathesis.Case[Any]) -> None:
        case.call_and_validate(headers=bearer(KEY), excluded_checks=excluded)

    holds()


def test_all_that_is_described_is_tried(url: str) -> None:
    paths = httpx.get(f"{url}/openapi.json", trust_env=False).json()["paths"]
    described = {(method.upper(), path) for path, operations in paths.items() for method in operations}
    assert described == {*GUARDED, *OPEN}
