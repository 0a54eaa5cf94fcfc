"""The settings of artifacts: the table, the file service, the prefix and suffix of keys, and the cache.

Pure. As an argument, the settings are an `ArtifactSettings`; in ``holdall.toml``, a table ``[artifacts]``; in the
environment and in a URL's query, a text like ``table=versioned-artifacts&suffix=.zip``.
"""

from __future__ import annotations

from holdall.core.feature_settings import parse_feature
from holdall.core.frozen import dataclass, replace
from holdall.core.rules.schema import check_table_name
from holdall.core.settings import Settings
from holdall.errors import ConfigurationError

_CACHE_SIZE = 10 * 1024**3


@dataclass(frozen=True, slots=True)
class ArtifactSettings:
    """Where a database stores its artifacts.

    ``table`` is a separate table with the string keys ``pk`` and ``sk``, as the package versioned creates it; without
    it, artifacts are in the database's table. ``service`` names the file service for the bytes; without it, the default
    one is used. The keys there are ``{prefix}/{name}/{version}{suffix}``. ``cache`` is a local directory that keeps
    downloads, up to ``cache_size`` bytes, so that each is fetched once.
    """

    table: str | None = None
    service: str | None = None
    prefix: str = "versioned-artifacts"
    suffix: str = ""
    cache: str | None = None
    cache_size: int = _CACHE_SIZE


def artifact_settings(settings: Settings) -> ArtifactSettings:
    """The artifact settings of a database."""
    return settings.of_feature(ArtifactSettings) or ArtifactSettings()


def parse_settings(value: object, source: str) -> ArtifactSettings:
    """Parse settings in any of their forms, and check them; ``source`` names where they came from."""
    settings = parse_feature(ArtifactSettings, value, source, example="prefix=releases&suffix=.zip")
    size: object = settings.cache_size
    if isinstance(size, str) and size.isascii() and size.isdigit():
        settings = replace(settings, cache_size=int(size))
    _check(settings, source)
    return settings


def _check(settings: ArtifactSettings, source: str) -> None:
    for name in ("table", "service", "prefix", "suffix", "cache"):
        value = getattr(settings, name)
        if value is None and name in ("table", "service", "cache"):
            continue
        if not isinstance(value, str) or (not value and name not in ("prefix", "suffix")):
            kind = "a string" if name in ("prefix", "suffix") else "a non-empty string"
            raise ConfigurationError(f"{source}: {name} must be {kind}, not {value!r:.60}")
    if settings.table is not None:
        check_table_name(settings.table)
    parts = settings.prefix.split("/")
    if settings.prefix and ("" in parts or "." in parts or ".." in parts):
        raise ConfigurationError(
            f"{source}: the prefix {settings.prefix!r:.60} has a segment that is empty or only dots",
            hint="write it like team/artifacts, without a slash at either end",
        )
    if "/" in settings.suffix or any(ord(each) < 32 for each in settings.prefix + settings.suffix):
        raise ConfigurationError(
            f"{source}: the suffix {settings.suffix!r:.60} contains a slash, or it or the prefix contains a control "
            "character",
            hint="write the suffix like .zip",
        )
    size = settings.cache_size
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise ConfigurationError(f"{source}: cache_size must be a whole number of bytes, not {size!r:.60}")
