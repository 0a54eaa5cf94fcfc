"""Settings: what they are called, where they come from, and which source wins.

Pure; `holdall.backends.configuration` reads the environment and the file. A setting given as an argument beats
the same name in the URL's query, that beats the environment (``HOLDALL_NAME``), that beats ``holdall.toml``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast
from urllib.parse import parse_qsl, unquote

from holdall.errors import ConfigurationError

__all__ = ["Durability", "Settings", "resolve"]

Durability: TypeAlias = Literal["full", "normal"]
"""``full``: a commit is on the disk before it is acknowledged. ``normal``: it survives the death of the
process, but a power cut may take back the last ones; the store stays consistent either way."""

DEFAULT_URL = "embedded:holdall.db"
FORMS = {"embedded": "embedded:PATH", "memory": "memory:"}

_CHOICES = {"durability": ("full", "normal")}
_ENVIRONMENT = "HOLDALL_"


@dataclass(frozen=True, slots=True)
class Settings:
    """A database's settings after all sources were weighed.

    ``path`` is the embedded store's file, None for a memory store, for which ``durability`` means nothing.
    """

    url: str
    scheme: Literal["embedded", "memory"]
    path: str | None
    durability: Durability


def resolve(
    arguments: Mapping[str, str | None], environment: Mapping[str, str], file: Mapping[str, object]
) -> Settings:
    """The settings from all sources; `ConfigurationError` for a name or value that means nothing."""
    _check_names(file, "holdall.toml")
    url = _first("url", arguments, {}, environment, file) or DEFAULT_URL
    scheme, colon, rest = url.partition(":")
    if not colon or scheme not in FORMS:
        raise ConfigurationError(
            f"{url!r} is not a database URL", hint=f"use one of: {', '.join(FORMS.values())}"
        )
    location, _, query_text = rest.partition("?")
    query = dict(parse_qsl(query_text, keep_blank_values=True))
    _check_names(query, "the URL's query")
    path = unquote(location)
    if (scheme == "memory") == bool(path):
        raise ConfigurationError(f"{url!r} should have the form {FORMS[scheme]}")
    durability = _first("durability", arguments, query, environment, file) or "full"
    return Settings(
        url,
        cast("Literal['embedded', 'memory']", scheme),
        path or None,
        cast("Durability", durability),
    )


def _first(
    name: str,
    arguments: Mapping[str, str | None],
    query: Mapping[str, str],
    environment: Mapping[str, str],
    file: Mapping[str, object],
) -> str | None:
    sources = (
        (f"argument {name}", arguments.get(name)),
        (f"{name} in the URL", query.get(name)),
        (f"environment variable {_ENVIRONMENT}{name.upper()}", environment.get(_ENVIRONMENT + name.upper())),
        (f"{name} in holdall.toml", file.get(name)),
    )
    for source, value in sources:
        if value is not None:
            return _checked(name, value, source)
    return None


def _checked(name: str, value: object, source: str) -> str:
    if not isinstance(value, str):
        raise ConfigurationError(f"{source} is a {type(value).__name__}", hint="it should be text")
    choices = _CHOICES.get(name)
    if choices is not None and value not in choices:
        raise ConfigurationError(f"{source} is {value!r}", hint=f"it is one of: {', '.join(choices)}")
    return value


def _check_names(given: Mapping[str, object], where: str) -> None:
    known = {"url", *_CHOICES} if where == "holdall.toml" else {*_CHOICES}
    unknown = sorted(given.keys() - known)
    if unknown:
        raise ConfigurationError(
            f"{where} names {', '.join(unknown)}, which is no setting",
            hint=f"the settings are: {', '.join(sorted(known))}",
        )
