"""Where settings are found on this machine, and which backend they select.

A backend's modules are imported only when that backend is opened.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from holdall.backends.services import FilesArgument, Services, split_services
from holdall.core.frozen import replace
from holdall.core.port import Backend
from holdall.core.settings import Parsers, SettingArguments, Settings, resolve
from holdall.errors import ConfigurationError

FILE = "holdall.toml"


def open_backend(
    url: str | None,
    backend: Backend | None,
    client: Any,
    credentials: Callable[[], Any] | None,
    arguments: SettingArguments,
    reads: Backend | str | None = None,
    files: FilesArgument = None,
    features: Parsers = MappingProxyType({}),
) -> tuple[Backend, Settings, Services]:
    """The backend, and the settings from arguments, environment and ``holdall.toml`` in the working directory.

    A backend that is given is used as it is; otherwise the settings select the one to open. A boto3 client replaces our
    own connections to DynamoDB, and a ``credentials`` function replaces the search for credentials. A backend for
    reads, or the DAX cluster that a setting names, is put in front of the main backend.
    """
    cluster = reads if isinstance(reads, str) else None
    services, texts = split_services(files)
    settings = resolve(
        {"url": url, "reads": cluster, "files": texts, **arguments}, os.environ, _file(), features
    )
    _check_objects(settings, {"backend": backend, "client": client, "credentials": credentials})
    cache = _reads(settings, reads)  # first, because it may raise, and nothing is open yet
    main = _open(settings, client, credentials) if backend is None else backend
    named: dict[str, str | Backend] = {**dict(settings.files), **services}
    if isinstance(files, Mapping):  # in the caller's order: the first is the default
        named = {name: named[name] for name in files}
    kept = Services(named, settings)
    if named:  # recorded here for code that has the settings, but not the services
        settings = replace(settings, default_service=kept.default)
    if cache is None:
        return main, settings, kept
    from holdall.backends.layer.split import SplitBackend

    beside = getattr(cache, "beside", None)
    if beside is not None:  # it uses the main backend for what it cannot answer
        try:
            beside(main)
        except BaseException:
            if backend is None:
                main.close()
            raise
    return SplitBackend(main, cache), settings, kept


def _reads(settings: Settings, given: Backend | str | None) -> Backend | None:
    """The backend for eventually consistent reads; None if there is none, or if the main backend is not DynamoDB."""
    if given is not None and not isinstance(given, str):
        if not hasattr(given, "send_blocking"):
            raise ConfigurationError(
                f"reads must be a backend or the endpoint of a DAX cluster, not a {type(given).__name__}",
                hint="to use a DAX client, pass reads=dax(client=client)",
            )
        return given
    if settings.reads is None or settings.scheme != "dynamodb":
        return None
    from holdall.backends.dax import dax

    return dax(settings.reads, region=settings.region, profile=settings.profile)


def observe(backend: Backend, settings: Settings) -> Backend:
    """The backend, with its requests reported to OpenTelemetry; unchanged if that is not installed."""
    if not _has_opentelemetry():
        return backend
    from holdall.backends.layer.trace import trace_backend

    return trace_backend(backend, settings)


@cache
def _has_opentelemetry() -> bool:
    """Whether OpenTelemetry is installed. The finders are asked directly, to avoid loading `importlib.util`."""
    if "opentelemetry" in sys.modules:
        return True
    finders = [getattr(finder, "find_spec", None) for finder in sys.meta_path]
    try:
        return any(find("opentelemetry", None) is not None for find in finders if find is not None)
    except ImportError:
        return False


def _check_objects(settings: Settings, objects: Mapping[str, object]) -> None:
    given = [name for name, thing in objects.items() if thing is not None]
    if len(given) > 1:
        raise ConfigurationError(
            f"{' and '.join(given)} cannot be passed together", hint="pass only one of them"
        )
    if given and given != ["backend"] and settings.scheme != "dynamodb":
        raise ConfigurationError(
            f"{given[0]} was passed, but {settings.url!r} is not a DynamoDB table",
            hint=f'name the table: Database("dynamodb://TABLE", {given[0]}={given[0]})',
        )


def _open(settings: Settings, client: Any, credentials: Callable[[], Any] | None) -> Backend:
    if client is not None:
        from holdall.backends.dynamodb.boto import BotoBackend

        return BotoBackend(client)
    if settings.scheme == "dynamodb":
        return _open_dynamodb(settings, credentials)
    if settings.path is not None and not settings.manage_table:
        from holdall.backends.embedded.late import open_late

        return open_late(settings.path, settings.durability)
    from holdall.backends.embedded import EmbeddedBackend

    return EmbeddedBackend(settings.path, durability=settings.durability)


def _open_dynamodb(settings: Settings, credentials: Callable[[], Any] | None) -> Backend:
    from holdall.backends.aws.credentials import CallableCredentials, CredentialSource, find_credentials
    from holdall.backends.aws.endpoint import resolve_endpoint
    from holdall.backends.aws.limit import limits_of
    from holdall.backends.dynamodb.backend import LIMITS, DynamoBackend

    endpoint = resolve_endpoint(
        "dynamodb", region=settings.region, endpoint=settings.endpoint, profile=settings.profile
    )
    source: CredentialSource
    if credentials is None:
        source = find_credentials(profile=settings.profile, region=endpoint.region)
    else:
        source = CallableCredentials(credentials)
    limits = limits_of(settings, LIMITS)
    return DynamoBackend(endpoint, source, single_writes=settings.single_writes, limits=limits)


def _file() -> Mapping[str, object]:
    try:
        with open(FILE, encoding="utf-8") as file:  # noqa: PTH123 - pathlib takes a while to load
            text = file.read()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{FILE} cannot be read: {error}",
            hint="check its permissions, and that it is a file of UTF-8 text",
        ) from error
    import tomllib  # most programs have no such file

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(
            f"{FILE} is not valid TOML: {error}", hint='write settings like url = "embedded:app.db"'
        ) from error
