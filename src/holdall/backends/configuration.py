"""Where settings are found on this machine, and which backend they ask for.

What a backend needs is imported only when that backend is opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from holdall.core.port import Backend
from holdall.core.settings import SettingArguments, Settings, resolve
from holdall.errors import ConfigurationError

__all__ = ["opened"]

FILE = "holdall.toml"


def opened(
    url: str | None,
    backend: Backend | None,
    client: Any,
    credentials: Callable[[], Any] | None,
    arguments: SettingArguments,
) -> tuple[Backend, Settings]:
    """The backend, and the settings from arguments, environment and ``holdall.toml`` in the working directory.

    A backend that is given is taken as it is; otherwise the settings say which one to open. A boto3 client stands
    in for our own wire to DynamoDB, a function for the places where credentials are found.
    """
    settings = resolve({"url": url, **arguments}, os.environ, _file())
    _check_objects(settings, {"backend": backend, "client": client, "credentials": credentials})
    if backend is not None:
        return backend, settings
    return _open(settings, client, credentials), settings


def _check_objects(settings: Settings, objects: Mapping[str, object]) -> None:
    given = [name for name, thing in objects.items() if thing is not None]
    if len(given) > 1:
        raise ConfigurationError(f"a {' and a '.join(given)} were given", hint="give one of them")
    if given and given != ["backend"] and settings.scheme != "dynamodb":
        raise ConfigurationError(
            f"a {given[0]} was given, but {settings.url!r} is not in DynamoDB",
            hint=f'name the table: Database("dynamodb://TABLE", {given[0]}={given[0]})',
        )


def _open(settings: Settings, client: Any, credentials: Callable[[], Any] | None) -> Backend:
    if client is not None:
        from holdall.backends.dynamodb.boto import BotoBackend

        return BotoBackend(client)
    if settings.scheme == "dynamodb":
        return _open_dynamodb(settings, credentials)
    from holdall.backends.embedded import EmbeddedBackend

    return EmbeddedBackend(settings.path, durability=settings.durability)


def _open_dynamodb(settings: Settings, credentials: Callable[[], Any] | None) -> Backend:
    from holdall.backends.aws.credentials import CallableCredentials, CredentialSource, find_credentials
    from holdall.backends.aws.endpoint import resolve_endpoint
    from holdall.backends.dynamodb.backend import DynamoBackend

    endpoint = resolve_endpoint(
        "dynamodb", region=settings.region, endpoint=settings.endpoint, profile=settings.profile
    )
    source: CredentialSource
    if credentials is None:
        source = find_credentials(profile=settings.profile, region=endpoint.region)
    else:
        source = CallableCredentials(credentials)
    return DynamoBackend(endpoint, source, single_writes=settings.single_writes)


def _file() -> Mapping[str, object]:
    try:
        with open(FILE, encoding="utf-8") as file:  # noqa: PTH123 - pathlib would be loaded for this alone
            text = file.read()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{FILE} cannot be read: {error}") from error
    import tomllib  # only where there is a file: most programs have none

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{FILE} is not valid TOML: {error}") from error
