"""Where artifacts are kept: the table, the service, and the keys' prefix and suffix.

Pure. As an argument it is an `ArtifactSettings`; in ``holdall.toml`` a table ``[artifacts]``; in the environment and in
a URL's query a text like ``table=versioned-artifacts&suffix=.zip``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from holdall.core.frozen import dataclass
from holdall.core.schema_rules import check_table_name
from holdall.core.settings import Settings
from holdall.errors import ConfigurationError

_CACHE_SIZE = 10 * 1024**3


@dataclass(frozen=True, slots=True)
class ArtifactSettings:
    """Where a database keeps its artifacts.

    ``table``: one of its own, with the string keys ``pk`` and ``sk`` as versioned makes them; without, the database's.
    ``service``: the one of ``files`` that keeps the bytes; without, the default one. Keys there are
    ``{prefix}/{name}/{version}{suffix}``. ``cache`` is a directory in which downloads are kept, up to ``cache_size``
    bytes, so that they are fetched once.
    """

    table: str | None = None
    service: str | None = None
    prefix: str = "versioned-artifacts"
    suffix: str = ""
    cache: str | None = None
    cache_size: int = _CACHE_SIZE


def artifact_settings(settings: Settings) -> ArtifactSettings:
    """Where a database keeps its artifacts."""
    return settings.of_feature("artifacts") or ArtifactSettings()


def parse_settings(value: object, source: str) -> ArtifactSettings:
    """The settings in any of their forms, checked; ``source`` is where they came from."""
    if value == "":
        raise ConfigurationError(
            f"{source} is empty", hint="as in prefix=releases&suffix=.zip, or leave it out"
        )
    if isinstance(value, str):
        value = dict(parse_qsl(value, keep_blank_values=True))
    if isinstance(value, Mapping):
        unknown = sorted(str(name) for name in value if name not in ArtifactSettings.__match_args__)
        if unknown:
            raise ConfigurationError(
                f"{source} names {', '.join(unknown)}, which is no setting of artifacts",
                hint=f"the settings are: {', '.join(ArtifactSettings.__match_args__)}",
            )
        value = ArtifactSettings(**{name: _convert(name, each, source) for name, each in value.items()})
    if not isinstance(value, ArtifactSettings):
        raise ConfigurationError(
            f"{source} is a {type(value).__name__}", hint="give ArtifactSettings(prefix=..., suffix=...)"
        )
    _check(value, source)
    return value


def _convert(name: str, value: object, source: str) -> Any:
    if name != "cache_size" or isinstance(value, int):
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    raise ConfigurationError(f"{source}: cache_size is {value!r:.60}", hint="give a number of bytes")


def _check(settings: ArtifactSettings, source: str) -> None:
    for name in ("table", "service", "prefix", "suffix", "cache"):
        value = getattr(settings, name)
        if value is None and name in ("table", "service", "cache"):
            continue
        if not isinstance(value, str) or (not value and name not in ("prefix", "suffix")):
            raise ConfigurationError(f"{source}: {name} is {value!r:.60}", hint="it should be text")
    if settings.table is not None:
        check_table_name(settings.table)
    parts = settings.prefix.split("/")
    if settings.prefix and ("" in parts or "." in parts or ".." in parts):
        raise ConfigurationError(
            f"{source}: the prefix {settings.prefix!r:.60} has an empty or a dot segment",
            hint="as in team/artifacts, without a slash at either end",
        )
    if "/" in settings.suffix or any(ord(each) < 32 for each in settings.prefix + settings.suffix):
        raise ConfigurationError(
            f"{source}: the suffix {settings.suffix!r:.60} has a slash, or a control character is in it or the prefix",
            hint="a suffix is like .zip",
        )
    size = settings.cache_size
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise ConfigurationError(f"{source}: cache_size is {size!r:.60}", hint="give a number of bytes")
