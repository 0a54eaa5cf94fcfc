"""The settings of one feature in any of their forms: an instance of their class, a mapping, or a text like
``table=versioned-artifacts&suffix=.zip``.

Pure. Raises `ConfigurationError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from holdall.core.nearest_name import suggest_name
from holdall.errors import ConfigurationError

T = TypeVar("T")


def parse_feature(kind: type[T], value: object, source: str, *, example: str) -> T:
    """Return the settings as an instance of their class, whose rules the caller checks.

    ``source`` names where they came from, and ``example`` is a text with some of them.
    """
    if value == "":
        raise ConfigurationError(f"{source} is empty", hint=f"remove it, or set it like {example}")
    if isinstance(value, str):
        value = dict(parse_qsl(value, keep_blank_values=True))
    if isinstance(value, Mapping):
        known: Any = kind.__match_args__  # type: ignore[attr-defined]
        for name in value:
            if name not in known:
                raise ConfigurationError(
                    f"{source} has an unknown setting: {name}", hint=suggest_name(name, known, "settings")
                )
        value = kind(**value)
    if not isinstance(value, kind):
        raise ConfigurationError(
            f"{source} must be an {kind.__name__}, not {type(value).__name__}",
            hint=f"make one, or write a text like {example}",
        )
    return value
