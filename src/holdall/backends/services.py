"""The services of a database, by name: opened when they are first asked, and asked by the name in each request."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar
from urllib.parse import parse_qsl, unquote

from holdall.backends.fork import call_after_fork
from holdall.core.frozen import replace
from holdall.core.objects import DeleteObject, DeleteObjects, DeleteReport, ServiceTraits
from holdall.core.port import Backend, Layer, Send
from holdall.core.requests import Request
from holdall.core.settings import DEFAULT_SERVICE, Settings, number_setting
from holdall.errors import ConfigurationError, HoldallError, StoreClosedError

if TYPE_CHECKING:
    from holdall.core.objects import (
        ObjectRequest,  # at run time by those who send some: they take a while to load
    )


R = TypeVar("R")

FilesArgument: TypeAlias = "str | Backend | Mapping[str, str | Backend] | None"
"""Where files are kept, as one says it to a database: a URL, a service, or several by name."""


class Services:
    """Named services: objects that are given, or URLs to be opened. Safe after a fork."""

    def __init__(self, named: Mapping[str, str | Backend], settings: Settings) -> None:
        self._named = dict(named)
        self._settings = settings
        self.claims: Callable[[str], Any] | None = None
        """What claims a key of a service in the table, by the service's name: for servers that cannot."""
        self.base_url: Callable[[], str] | None = None
        """Where the web application serves services that have no web server and no ``base_url`` of their own."""
        self._opened: dict[str, Backend] = {
            name: service for name, service in self._named.items() if not isinstance(service, str)
        }
        self._lock = threading.RLock()
        self._closed = False
        self._directory = _find_current_directory()
        call_after_fork(self.after_fork)

    @property
    def default(self) -> str:
        """The name of the service that is meant when none is named: the setting's, else the first."""
        if self._settings.default_service is not None:
            return self._settings.default_service
        if not self._named:
            raise ConfigurationError(
                "nothing says where files are kept",
                hint='open the database with files="s3://bucket" or files="file:PATH"',
            )
        return next(iter(self._named))

    def send_blocking(self, request: Request[R]) -> R:
        """Have the service that the request names answer it; the calling thread waits."""
        return self.service(_name(request)).send_blocking(request)

    async def send_awaiting(self, request: Request[R]) -> R:
        """Have the service that the request names answer it; the event loop goes on."""
        return await self.service(_name(request)).send_awaiting(request)

    def service(self, name: str) -> Backend:
        """The service of that name, opened if it is not yet; `ConfigurationError` when there is none."""
        found = self._opened.get(name)
        if found is None:
            with self._lock:
                found = self._opened.get(name) or self._open(name)
                self._opened[name] = found
        return found

    def _open(self, name: str) -> Backend:
        if self._closed:
            raise StoreClosedError("the database is closed", hint="open it again")
        url = self._named.get(name)
        if not isinstance(url, str):
            known = ", ".join(self._named) or "none"
            raise ConfigurationError(
                f"there is no service {name!r:.60}; there are: {known}",
                hint='name them when you open the database: files={"main": "s3://bucket"}',
            )
        if url.startswith("mirror:"):
            from holdall.backends.services import MirrorService

            return MirrorService(self, *_parse_mirror(name, url, self._named))
        from holdall.backends.services import open_service

        claims = None if self.claims is None else self.claims(name)
        return open_service(url, self._settings, self._directory, claims, self.base_url)

    def create_buckets(self, name: str | None) -> dict[str, bool]:
        """Make the missing buckets of a service and its mirrors; each bucket with whether it was made."""
        if name is None and not self._named:
            return {}
        name = self.default if name is None else name
        url = self._named.get(name)
        names: tuple[str, ...] = (name,)
        if isinstance(url, str) and url.startswith("mirror:"):
            primary, mirrors = _parse_mirror(name, url, self._named)
            names = (primary, *mirrors)
        from holdall.core.objects import DescribeService

        made: dict[str, bool] = {}
        for each in names:
            service: Any = self.service(each)
            if hasattr(service, "create_bucket"):
                place: str = service.send_blocking(DescribeService(each)).place
                bucket = place.removeprefix("s3://").partition("/")[0]
                was_missing = not service.bucket_exists()
                if was_missing:
                    service.create_bucket()
                made[bucket] = was_missing or made.get(bucket, False)
        return made

    def close(self) -> None:
        """Close all that were opened, those that were given as objects too. Closing twice is harmless."""
        with self._lock:
            self._closed = True
            opened = list(self._opened.values())
        for service in opened:
            service.close()

    def after_fork(self) -> None:
        """In a forked child: whoever held the lock is not here to release it."""
        self._lock = threading.RLock()


def split_services(files: FilesArgument) -> tuple[dict[str, Backend], str | dict[str, str] | None]:
    """What was said about files: the services that are objects, and the URLs, which are a setting."""
    if files is None or isinstance(files, str):
        return {}, files
    named = files if isinstance(files, Mapping) else {DEFAULT_SERVICE: files}
    objects = {name: each for name, each in named.items() if not isinstance(each, str)}
    for name, service in objects.items():
        if not hasattr(service, "send_blocking"):
            raise ConfigurationError(
                f"the service {name} is a {type(service).__name__}", hint="give a URL, or a service"
            )
    return objects, {name: each for name, each in named.items() if isinstance(each, str)}


def _find_current_directory() -> str | None:
    """What relative paths are relative to, also if the program has gone elsewhere by the time that one is needed."""
    try:
        return os.getcwd()  # noqa: PTH109 - pathlib would be loaded for this alone
    except OSError:  # it was removed
        return None


def _name(request: Request[R]) -> str:
    found: ObjectRequest[R] = request  # type: ignore[assignment]
    return found.service


def _parse_mirror(name: str, url: str, named: Mapping[str, object]) -> tuple[str, tuple[str, ...]]:
    """The primary and the mirrors that a URL names: ``mirror:primary,first,second``."""
    primary, *mirrors = [each.strip() for each in url.removeprefix("mirror:").split(",")]
    if not primary or not mirrors or not all(mirrors):
        raise ConfigurationError(f"the service {name} is {url!r:.80}", hint="use mirror:PRIMARY,MIRROR,...")
    for each in (primary, *mirrors):
        there = named.get(each)
        if there is None:
            raise ConfigurationError(f"the service {name} is made of {each}, and there is no such service")
        if isinstance(there, str) and there.startswith("mirror:"):
            raise ConfigurationError(f"the service {name} is made of {each}, which is made of others itself")
    if len({primary, *mirrors}) <= len(mirrors):
        raise ConfigurationError(f"the service {name} is made of one service twice: {url!r:.80}")
    return primary, tuple(mirrors)


_S3_OPTIONS = frozenset({"style", "encryption", "kms_key", "storage_class", "acl"})


def open_service(
    url: str,
    settings: Settings,
    directory: str | None = None,
    claims: Any = None,
    base_url: Callable[[], str] | None = None,
) -> Backend:
    """The service that a URL stands for; a relative path in it is relative to the directory.

    ``claims`` are for a server that cannot refuse to replace what is there, ``base_url`` is for a service that has no
    web server.
    """
    kind, _, rest = url.partition(":")
    location, _, query = rest.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    if kind == "memory":
        from holdall.backends.memory import MemoryService

        _check_options(url, options, {"base_url"})
        if location:
            raise ConfigurationError(f"{url!r:.80} names a place", hint="memory has none: use memory:")
        return MemoryService(secret=settings.secret, base_url=options.get("base_url", base_url))
    if kind == "file":
        from holdall.backends.disk import DiskService

        _check_options(url, options, {"base_url"})
        path = os.path.join(directory or "", unquote(location.removeprefix("//")) or ".")  # noqa: PTH118 - text
        return DiskService(path, secret=settings.secret, base_url=options.get("base_url", base_url))
    return _open_s3(url, location, options, settings, claims)


def _open_s3(url: str, location: str, options: dict[str, str], settings: Settings, claims: Any) -> Backend:
    from holdall.backends.aws.credentials import find_credentials
    from holdall.backends.aws.endpoint import resolve_endpoint
    from holdall.backends.aws.limit import NAMES, limits_of
    from holdall.backends.s3.service import LIMITS, S3Service

    _check_options(url, options, {"region", "endpoint", "profile", *NAMES, *_S3_OPTIONS})
    bucket, _, prefix = unquote(location.removeprefix("//")).partition("/")
    if not bucket:
        raise ConfigurationError(f"{url!r:.80} names no bucket", hint="use s3://BUCKET/PREFIX?region=...")
    profile = options.pop("profile", settings.profile)
    endpoint = resolve_endpoint(
        "s3",
        region=options.pop("region", settings.region),
        endpoint=options.pop("endpoint", None),
        profile=profile,
    )
    source = find_credentials(profile=profile, region=endpoint.region)
    numbers: dict[str, Any] = {
        name: number_setting(name, options.pop(name), f"{name} in {url.partition('?')[0]!r:.80}")
        for name in NAMES
        if name in options
    }
    limits = replace(limits_of(settings, LIMITS), **numbers)
    given: dict[str, Any] = dict(options)
    return S3Service(bucket, endpoint, source, prefix=prefix, claims=claims, limits=limits, **given)


def _check_options(url: str, options: Mapping[str, str], known: AbstractSet[str]) -> None:
    unknown = sorted(options.keys() - known)
    if unknown:
        raise ConfigurationError(
            f"{url.partition('?')[0]!r:.80} has options that mean nothing: {', '.join(unknown)}",
            hint=f"the options are: {', '.join(sorted(known))}",
        )


class Named(Protocol):
    """Where the others are found."""

    def service(self, name: str) -> Backend:
        """The service of that name."""


class MirrorService(Layer):
    """A primary service with mirrors, by their names.

    Copying to the mirrors is for the flows above, by a job: see `holdall.files.mirror`.
    """

    def __init__(self, services: Named, primary: str, mirrors: tuple[str, ...]) -> None:
        self._services = services
        self._primary = primary
        self._mirrors = mirrors

    def close(self) -> None:
        """The others are closed by themselves."""

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        reply = await self._send(send, request, self._primary)
        if isinstance(request, DeleteObject | DeleteObjects):
            return await self._delete_from_mirrors(send, request, reply)
        if isinstance(reply, ServiceTraits):
            return replace(reply, mirrors=self._mirrors)
        return reply

    async def _delete_from_mirrors(self, send: Send, request: Request[Any], reply: Any) -> Any:
        """What became of a deletion in all services; one that fails does not keep it from the others."""
        if isinstance(request, DeleteObject) and request.if_match is not None:
            # It was the one; mirrors have etags of their own.
            request = replace(request, if_match=None)
        replies, errors = [reply], []
        for name in self._mirrors:
            try:
                replies.append(await self._send(send, request, name))
            except HoldallError as error:
                error.add_note(f"it is deleted from {self._primary}; this is the mirror {name}")
                errors.append(error)
        if errors:
            raise errors[0]
        if isinstance(reply, DeleteReport):
            return DeleteReport({key: why for each in replies for key, why in each.failures.items()})
        return reply

    async def _send(self, send: Send, request: Request[Any], name: str) -> Any:
        service = self._services.service(name)
        if request.destination != "service":
            return await send(service, request)  # to be refused there, as by any service
        changed: Any = request
        return await send(service, replace(changed, service=name))
