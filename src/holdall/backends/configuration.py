"""Where settings are found on this machine, and which backend they ask for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from holdall.core.port import Backend
from holdall.core.settings import Settings, resolve
from holdall.errors import ConfigurationError

__all__ = ["opened"]

FILE = "holdall.toml"


def opened(backend: Backend | None, **arguments: str | None) -> tuple[Backend, Settings]:
    """The backend, and the settings from arguments, environment and ``holdall.toml`` in the working directory.

    A backend that is given is taken as it is; otherwise the settings say which one to open.
    """
    settings = resolve(arguments, os.environ, _file())
    return (_open(settings) if backend is None else backend), settings


def _open(settings: Settings) -> Backend:
    from holdall.backends.embedded import EmbeddedBackend

    return EmbeddedBackend(settings.path, durability=settings.durability)


def _file() -> Mapping[str, object]:
    path = Path(FILE)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{FILE} cannot be read: {error}") from error
    import tomllib  # only where there is a file: most programs have none

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{FILE} is not valid TOML: {error}") from error
