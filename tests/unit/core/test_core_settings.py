"""Settings: which source wins, and what means nothing."""

from __future__ import annotations

from typing import Any

import pytest

from holdall.core.settings import Settings, resolve
from holdall.errors import ConfigurationError

FILE = {"url": "embedded:from-file.db", "durability": "normal"}
ENVIRONMENT = {"HOLDALL_URL": "embedded:from-environment.db", "HOLDALL_DURABILITY": "full"}


def test_without_any_settings_the_store_is_a_durable_file_here() -> None:
    assert resolve({}, {}, {}) == Settings("embedded:holdall.db", "embedded", "holdall.db", "full")
    assert resolve({"url": None, "durability": None}, {}, {}) == resolve({}, {}, {})


def test_for_the_url_an_argument_beats_the_environment_and_that_beats_the_file() -> None:
    assert resolve({}, {}, FILE).path == "from-file.db"
    assert resolve({}, ENVIRONMENT, FILE).path == "from-environment.db"
    assert resolve({"url": "embedded:from-argument.db"}, ENVIRONMENT, FILE).path == "from-argument.db"


def test_for_the_rest_the_urls_query_stands_between_argument_and_environment() -> None:
    query = {"url": "embedded:a.db?durability=normal"}
    assert resolve({}, {}, {"durability": "normal"}).durability == "normal"
    assert resolve({}, ENVIRONMENT, FILE).durability == "full"
    assert resolve(query, ENVIRONMENT, {}).durability == "normal"
    assert (
        resolve({**query, "durability": "full"}, {"HOLDALL_DURABILITY": "normal"}, FILE).durability == "full"
    )


def test_the_query_of_a_url_counts_wherever_the_url_came_from() -> None:
    assert resolve({}, {"HOLDALL_URL": "memory:?durability=normal"}, {}).durability == "normal"
    assert resolve({}, {}, {"url": "memory:?durability=normal"}).durability == "normal"


@pytest.mark.parametrize(
    ("url", "scheme", "path"),
    [
        ("memory:", "memory", None),
        ("memory:?durability=full", "memory", None),
        ("embedded:app.db", "embedded", "app.db"),
        ("embedded:/var/lib/app.db", "embedded", "/var/lib/app.db"),
        ("embedded:data/app.db?durability=normal", "embedded", "data/app.db"),
        ("embedded:with%20space%3F.db", "embedded", "with space?.db"),
        ("embedded:C:/app.db", "embedded", "C:/app.db"),
        ("embedded:a#b.db", "embedded", "a#b.db"),
    ],
)
def test_a_url_is_a_scheme_and_perhaps_a_path(url: str, scheme: str, path: str | None) -> None:
    settings = resolve({"url": url}, {}, {})
    assert (settings.url, settings.scheme, settings.path) == (url, scheme, path)


@pytest.mark.parametrize(
    "url", ["holdall.db", "sqlite:x.db", "Embedded:x.db", ":x", " memory:", "postgres://x"]
)
def test_an_unknown_scheme_is_refused_with_the_known_ones(url: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a database URL") as caught:
        resolve({"url": url}, {}, {})
    assert caught.value.hint == "use one of: embedded:PATH, memory:"


@pytest.mark.parametrize("url", ["memory:x", "memory://", "embedded:", "embedded:?durability=full"])
def test_a_path_is_there_exactly_when_the_scheme_wants_one(url: str) -> None:
    with pytest.raises(ConfigurationError, match="should have the form"):
        resolve({"url": url}, {}, {})


@pytest.mark.parametrize(
    ("arguments", "environment", "file", "source"),
    [
        ({"durability": "fast"}, {}, {}, "argument durability is 'fast'"),
        ({"url": "memory:?durability=fast"}, {}, {}, "durability in the URL is 'fast'"),
        ({"url": "memory:?durability"}, {}, {}, "durability in the URL is ''"),
        ({}, {"HOLDALL_DURABILITY": "fast"}, {}, "environment variable HOLDALL_DURABILITY is 'fast'"),
        ({}, {}, {"durability": "fast"}, "durability in holdall.toml is 'fast'"),
        ({}, {}, {"durability": ""}, "durability in holdall.toml is ''"),
    ],
)
def test_a_value_that_means_nothing_is_refused_by_its_source(
    arguments: Any, environment: Any, file: Any, source: str
) -> None:
    with pytest.raises(ConfigurationError, match=source) as caught:
        resolve(arguments, environment, file)
    assert caught.value.hint == "it is one of: full, normal"


@pytest.mark.parametrize(("name", "content"), [("url", 5), ("durability", True), ("durability", ["full"])])
def test_a_setting_in_the_file_is_text(name: str, content: object) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} in holdall.toml is a {type(content).__name__}"):
        resolve({}, {}, {name: content})


def test_an_unknown_name_in_the_file_is_refused() -> None:
    with pytest.raises(
        ConfigurationError, match=r"holdall\.toml names durabilty, which is no setting"
    ) as caught:
        resolve({}, {}, {"durabilty": "full"})
    assert caught.value.hint == "the settings are: durability, url"


@pytest.mark.parametrize("query", ["mode=fast", "url=memory:", "durability=full&mode=fast", "mode"])
def test_an_unknown_name_in_the_urls_query_is_refused(query: str) -> None:
    with pytest.raises(ConfigurationError, match=r"the URL's query names (mode|url), which is no setting"):
        resolve({"url": f"memory:?{query}"}, {}, {})


def test_other_peoples_environment_is_left_alone() -> None:
    environment = {"PATH": "/bin", "DURABILITY": "fast", "HOLDALL_SEED": "1", "holdall_url": "x"}
    assert resolve({}, environment, {}) == resolve({}, {}, {})


def test_a_source_that_loses_is_not_even_checked() -> None:
    assert resolve({"durability": "normal"}, {"HOLDALL_DURABILITY": "fast"}, {}).durability == "normal"
