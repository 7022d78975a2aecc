"""What ``up`` would start, for what environment."""

import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from cli import components
from cli.components import (
    base_url,
    free_port,
    gateway_component,
    left_out,
    load_registry,
    require_free_ports,
    service_components,
    why_not_free,
)
from cli.console import CommandError
from services.wiki_search.java import LuceneError

Environment = Mapping[str, str]


def names(chosen: list[str] | None, environ: Environment) -> list[str]:
    return [component.name for component in service_components(load_registry(environ), chosen, environ)]


def test_by_default_all_tools_that_nobody_moved_are_started() -> None:
    assert names(None, {})[:2] == ["calculator", "calendar"]
    moved = {"TOOLFORMER_TOOL_CALCULATOR_URL": "http://elsewhere.example:80"}
    assert "calculator" not in names(None, moved)
    assert names(["calculator"], moved) == ["calculator"], "one that is asked for is started all the same"


def test_a_tool_without_its_library_is_left_out_or_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_jar() -> Path:
        raise LuceneError("pyserini is not installed")

    monkeypatch.setattr(components, "anserini_jar", no_jar)
    assert left_out(load_registry({})) == {"WikiSearch": "pyserini is not installed"}
    assert "wiki_search" not in names(None, {})
    with pytest.raises(CommandError, match="wiki_search cannot be started: pyserini is not installed; or leave it out"):
        names(["WikiSearch"], {})


def test_services_are_chosen_by_either_name_and_each_once() -> None:
    assert names(["Calendar", "calculator", "CALENDAR"], {}) == ["calendar", "calculator"]
    with pytest.raises(CommandError, match="there is no service of a tool 'abacus'"):
        names(["abacus"], {})


def test_a_tool_of_the_users_own_is_not_ours_to_start(tmp_path: Path) -> None:
    file = tmp_path / "tools.toml"
    file.write_text(
        '[Dice]\nurl = "http://127.0.0.1:9"\ndescription = "Rolls."\ntask = "Roll."\n'
        'demonstrations = [{ input = "It is 3.", output = "It is [Dice(6)] 3." }]\n'
    )
    environ = {"TOOLFORMER_TOOLS": str(file)}
    assert names(None, environ) == names(None, {})
    with pytest.raises(CommandError, match="no service of a tool 'Dice'"):
        names(["Dice"], environ)


def test_a_service_is_given_its_address_and_the_gateway_where_it_is() -> None:
    environ = {"TOOLFORMER_CALCULATOR_PORT": "9101", "TOOLFORMER_CALCULATOR_HOST": "0.0.0.0"}
    services = service_components(load_registry(environ), ["calculator", "calendar"], environ)
    assert [(one.host, one.port, one.url) for one in services] == [
        ("0.0.0.0", 9101, "http://127.0.0.1:9101"),
        ("127.0.0.1", 8102, "http://127.0.0.1:8102"),
    ]
    assert services[0].environment["TOOLFORMER_CALCULATOR_PORT"] == "9101"
    gateway = gateway_component(services, environ, port=9000, model=Path("my-model"))
    assert gateway.url == "http://127.0.0.1:9000"
    assert gateway.essential
    variables = gateway.environment
    assert variables["TOOLFORMER_GATEWAY_PORT"] == "9000"
    assert variables["TOOLFORMER_TOOL_CALCULATOR_URL"] == "http://127.0.0.1:9101"
    assert variables["TOOLFORMER_TOOL_CALENDAR_URL"] == "http://127.0.0.1:8102"
    assert Path(variables["TOOLFORMER_MODEL"]) == Path.cwd() / "my-model"


def test_question_answering_is_given_where_the_search_beside_it_is() -> None:
    environ = {"TOOLFORMER_WIKI_SEARCH_PORT": "9103"}
    search, asking = service_components(load_registry(environ), ["wiki_search", "question_answering"], environ)
    assert asking.environment["TOOLFORMER_TOOL_WIKISEARCH_URL"] == "http://127.0.0.1:9103"
    assert "TOOLFORMER_TOOL_WIKISEARCH_URL" not in search.environment
    assert [one.name for one in service_components(load_registry(environ), ["question_answering"], environ)] == [
        "question_answering",
        "wiki_search",
    ]
    environ["TOOLFORMER_QUESTION_ANSWERING_SEARCH"] = "http://127.0.0.1:9"
    [alone] = service_components(load_registry(environ), ["question_answering"], environ)
    assert "TOOLFORMER_TOOL_WIKISEARCH_URL" not in alone.environment


def test_an_option_wins_over_the_environment_and_that_over_the_default() -> None:
    environ = {"TOOLFORMER_GATEWAY_PORT": "9001", "TOOLFORMER_GATEWAY_HOST": "::1"}
    assert gateway_component([], environ, port=9000, model=None).url == "http://[::1]:9000"
    assert gateway_component([], environ, port=None, model=None).port == 9001
    assert gateway_component([], {}, port=None, model=None).port == 8080


def test_a_grpc_port_is_passed_and_must_be_free_and_its_own() -> None:
    variable = "TOOLFORMER_GATEWAY_GRPC_PORT"
    assert variable not in gateway_component([], {}).environment
    assert gateway_component([], {variable: "9002"}).environment[variable] == "9002"
    assert gateway_component([], {variable: "9002"}, grpc_port=9003).environment[variable] == "9003"
    assert int(gateway_component([], {}, grpc_port=0).environment[variable]) > 0
    with pytest.raises(CommandError, match=f"{variable} must be a port from 0 to 65535, not 'x'"):
        gateway_component([], {variable: "x"})
    free = free_port(0, "127.0.0.1")
    with pytest.raises(CommandError, match=rf"HTTP and gRPC on one port, {free}: .* --grpc-port or {variable}"):
        require_free_ports([gateway_component([], {}, port=free, grpc_port=free)])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CommandError, match=rf"gateway needs port {port} .* in use.* --grpc-port"):
            require_free_ports([gateway_component([], {}, port=free, grpc_port=port)])


def test_threads_are_bounded_unless_the_user_says_how_many() -> None:
    [service] = service_components(load_registry({}), ["calculator"], {})
    assert service.environment["OMP_NUM_THREADS"] == "1"
    assert 1 <= int(gateway_component([], {}, port=1, model=None).environment["OMP_NUM_THREADS"]) <= 8
    assert gateway_component([], {"OMP_NUM_THREADS": "3"}, port=1, model=None).environment["OMP_NUM_THREADS"] == "3"


@pytest.mark.parametrize("value", ["-1", "65536", "x", "８０", "1.5"])
def test_a_port_that_is_none_is_refused_by_name(value: str) -> None:
    with pytest.raises(CommandError, match="TOOLFORMER_CALENDAR_PORT must be a port from 0 to 65535"):
        service_components(load_registry({}), ["calendar"], {"TOOLFORMER_CALENDAR_PORT": value})


def test_a_host_of_another_machine_is_no_place_to_listen() -> None:
    assert why_not_free("192.0.2.1", 8101) == "cannot assign requested address"
    with pytest.raises(CommandError, match=r"no port can be had on 192\.0\.2\.1"):
        free_port(0, "192.0.2.1")


def test_a_free_port_is_free() -> None:
    port = free_port(0, "127.0.0.1")
    assert port > 0
    assert why_not_free("127.0.0.1", port) is None


@pytest.mark.parametrize(
    ("host", "url"), [("0.0.0.0", "http://127.0.0.1:1"), ("::", "http://[::1]:1"), ("tools", "http://tools:1")]
)
def test_the_url_of_a_host(host: str, url: str) -> None:
    assert base_url(host, 1) == url
