"""Where artifacts are stored, in each form of the setting."""

from __future__ import annotations

from typing import Any

import pytest

from holdall import ArtifactSettings
from holdall.artifacts.settings import parse_settings
from holdall.errors import ConfigurationError


def test_the_defaults_are_those_of_versioned() -> None:
    usual = ArtifactSettings()
    assert (usual.table, usual.service, usual.prefix, usual.suffix) == (None, None, "versioned-artifacts", "")
    assert (usual.cache, usual.cache_size) == (None, 10 * 1024**3)


@pytest.mark.parametrize(
    "given",
    [
        ArtifactSettings(table="releases", suffix=".zip", cache_size=7),
        {"table": "releases", "suffix": ".zip", "cache_size": 7},
        "table=releases&suffix=.zip&cache_size=7",
    ],
)
def test_settings_can_be_an_object_a_mapping_or_a_string(given: Any) -> None:
    assert parse_settings(given, "here") == ArtifactSettings(table="releases", suffix=".zip", cache_size=7)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("", "is empty"),
        ("colour=red", "unknown setting: colour"),
        ("cache_size=much", "cache_size"),
        (7, "not int"),
        ({"prefix": 7}, "prefix must be .* not 7"),
        ({"table": ""}, "table must be .* not ''"),
        ({"prefix": "a//b"}, "segment that is empty or only dots"),
        ({"prefix": "../up"}, "segment that is empty or only dots"),
        ({"prefix": "/a"}, "segment that is empty or only dots"),
        ({"suffix": "/x"}, "slash"),
        ({"suffix": "\n"}, "control"),
        (ArtifactSettings(cache_size=-1), "cache_size must be .* not -1"),
        (ArtifactSettings(cache_size=True), "cache_size must be .* not True"),
        ({"table": "a b"}, "a b"),
    ],
)
def test_invalid_settings_are_refused(given: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        parse_settings(given, "holdall.toml")
