"""The cache that the environment asks for."""

import subprocess
import sys
from pathlib import Path

import pytest

from toolformer.cache_settings import CacheSettings
from toolformer.result_cache import CacheConfigError, MemoryCache


def test_memory_by_default() -> None:
    settings = CacheSettings.read({"TOOLFORMER_CACHE_URL": "", "TOOLFORMER_CACHE_SIZE": ""})
    assert settings == CacheSettings(url="", size=4_096, age_s=3_600.0)
    assert isinstance(settings.open(), MemoryCache)


def test_none_where_nothing_is_to_be_kept() -> None:
    environ = {"TOOLFORMER_CACHE_SIZE": "0", "TOOLFORMER_CACHE_URL": "redis://127.0.0.1"}
    assert CacheSettings.read(environ).open() is None


def test_all_is_read() -> None:
    environ = {
        "TOOLFORMER_CACHE_URL": "redis://:s3cret@cache:6379/1",
        "TOOLFORMER_CACHE_SIZE": "9",
        "TOOLFORMER_CACHE_AGE": "1.5",
        "TOOLFORMER_CACHE_PASSWORD_FILE": "/run/cache-password",
    }
    settings = CacheSettings.read(environ)
    assert settings == CacheSettings("redis://:s3cret@cache:6379/1", 9, 1.5, Path("/run/cache-password"))
    assert "s3cret" not in repr(settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [("SIZE", "-1"), ("SIZE", "many"), ("SIZE", "²"), ("SIZE", "10000001")]
    + [("AGE", value) for value in ("0", "-1", "nan", "inf", "long", "31536001")],
)
def test_what_cannot_hold_names_the_variable(name: str, value: str) -> None:
    with pytest.raises(CacheConfigError, match=f"^TOOLFORMER_CACHE_{name}: '{value}' is no such number; give the "):
        CacheSettings.read({f"TOOLFORMER_CACHE_{name}": value})


def test_redis_is_needed_only_by_those_who_ask_for_it() -> None:
    script = """
import sys
sys.modules["redis"] = None  # as if it were not installed
import toolformer.tool_client
from toolformer.cache_settings import CacheSettings
from toolformer.result_cache import CacheConfigError
assert CacheSettings().open() is not None
try:
    CacheSettings(url="redis://127.0.0.1").open()
except CacheConfigError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=250)
    assert done.stdout.startswith("TOOLFORMER_CACHE_URL asks for Redis, but the package 'redis' is not installed; inst")
