"""The file services of a database, by name: opened on first use, and selected by the name in each request."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import parse_qsl, unquote

from holdall.backends.fork import call_after_fork
from holdall.core.frozen import replace
from holdall.core.nearest_name import suggest_name
from holdall.core.objects import (
    DeleteObject,
    DeleteObjects,
    DeleteReport,
    DescribeService,
    ObjectRequest,
    ServiceTraits,
)
from holdall.core.port import Backend, Layer, Send
from holdall.core.requests import Request
from holdall.core.settings import DEFAULT_SERVICE, Settings, number_setting
from holdall.errors import ConfigurationError, HoldallError, StoreClosedError

if TYPE_CHECKING:
    from holdall.backends.s3.creation import Claims


R = TypeVar("R")

FilesArgument: TypeAlias = "str | Backend | Mapping[str, str | Backend] | None"
"""The ``files`` argument of a database: a URL, a service, or several by name."""


class Services:
    """Named services: objects that were passed, or URLs to open. Safe after a fork."""

    def __init__(self, named: Mapping[str, str | Backend], settings: Settings) -> None:
        self._named = dict(named)
        self._settings = settings
        self.claims: Callable[[str], Claims] | None = None
        """Returns, for a service's name, what claims object keys in the table: for servers without conditional puts."""
        self.base_url: Callable[[], str] | None = None
        """Returns the URL where the web application serves services without a web server and ``base_url``."""
        self._opened: dict[str, Backend] = {
            name: service for name, service in self._named.items() if not isinstance(service, str)
        }
        self._lock = threading.RLock()
        self._closed = False
        self._directory = _find_current_directory()
        call_after_fork(self.after_fork)

    @property
    def default(self) -> str:
        """The name of the service to use when none is named: the setting's, or else the first."""
        if self._settings.default_service is not None:
            return self._settings.default_service
        if not self._named:
            raise ConfigurationError(
                "this database has no file service",
                hint='open it with files="s3://BUCKET" or files="file:PATH"',
            )
        return next(iter(self._named))

    @property
    def urls(self) -> dict[str, str | None]:
        """The services by name, each with its URL; None for one that was passed as an object."""
        return {name: each if isinstance(each, str) else None for name, each in self._named.items()}

    def send_blocking(self, request: Request[R]) -> R:
        """Send the request to the service that it names; the calling thread waits."""
        return self.service(_name(request)).send_blocking(request)

    async def send_awaiting(self, request: Request[R]) -> R:
        """Send the request to the service that it names, without blocking the event loop."""
        return await self.service(_name(request)).send_awaiting(request)

    def service(self, name: str) -> Backend:
        """The service of that name, opened if necessary; `ConfigurationError` if there is none."""
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
                f"there is no file service {name!r:.60}; this database has: {known}",
                hint='name services when you open the database: files={"main": "s3://BUCKET"}',
            )
        if url.startswith("mirror:"):
            return MirrorService(self.service, *_parse_mirror(name, url, self._named))
        claims = None if self.claims is None else self.claims(name)
        return open_service(url, self._settings, self._directory, claims, self.base_url)

    def create_buckets(self, name: str | None) -> dict[str, bool]:
        """Create the missing buckets of a service and its mirrors; returns for each bucket whether it was created."""
        if name is None and not self._named:
            return {}
        name = self.default if name is None else name
        url = self._named.get(name)
        names: tuple[str, ...] = (name,)
        if isinstance(url, str) and url.startswith("mirror:"):
            primary, mirrors = _parse_mirror(name, url, self._named)
            names = (primary, *mirrors)
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
        """Close all services that were opened or passed as objects. Closing twice is harmless."""
        with self._lock:
            self._closed = True
            opened = list(self._opened.values())
        for service in opened:
            service.close()

    def after_fork(self) -> None:
        """In a forked child: the thread that held the lock is not here to release it."""
        self._lock = threading.RLock()


def split_services(files: FilesArgument) -> tuple[dict[str, Backend], str | dict[str, str] | None]:
    """The ``files`` argument, split into services that are objects and URLs, which are a setting."""
    if files is None or isinstance(files, str):
        return {}, files
    named = files if isinstance(files, Mapping) else {DEFAULT_SERVICE: files}
    objects = {name: each for name, each in named.items() if not isinstance(each, str)}
    for name, service in objects.items():
        if not hasattr(service, "send_blocking"):
            raise ConfigurationError(
                f"the file service {name} must be a URL or a service, not a {type(service).__name__}",
                hint='as in files={"main": "s3://BUCKET"}',
            )
    return objects, {name: each for name, each in named.items() if isinstance(each, str)}


def _find_current_directory() -> str | None:
    """The directory to which relative paths refer, even if the program changes its directory later."""
    try:
        return os.getcwd()  # noqa: PTH109 - pathlib takes a while to load
    except OSError:  # it was removed
        return None


def _name(request: Request[R]) -> str:
    found: ObjectRequest[R] = request  # type: ignore[assignment]
    return found.service


def _parse_mirror(name: str, url: str, named: Mapping[str, object]) -> tuple[str, tuple[str, ...]]:
    """The primary and the mirrors that a URL names: ``mirror:primary,first,second``."""
    primary, *mirrors = [each.strip() for each in url.removeprefix("mirror:").split(",")]
    if not primary or not mirrors or not all(mirrors):
        raise ConfigurationError(
            f"the URL of the file service {name} must name a primary and its mirrors, not {url!r:.80}",
            hint="use mirror:PRIMARY,MIRROR,...",
        )
    for each in (primary, *mirrors):
        there = named.get(each)
        if there is None:
            raise ConfigurationError(
                f"the file service {name} names {each}, which does not exist",
                hint=f"add {each} to the services, or correct {url!r:.80}",
            )
        if isinstance(there, str) and there.startswith("mirror:"):
            raise ConfigurationError(
                f"the file service {name} names {each}, which has mirrors itself",
                hint=f"list all mirrors in {name}",
            )
    if len({primary, *mirrors}) <= len(mirrors):
        raise ConfigurationError(
            f"the file service {name} names one service twice: {url!r:.80}", hint="name each once"
        )
    return primary, tuple(mirrors)


_S3_OPTIONS = frozenset({"style", "encryption", "kms_key", "storage_class", "acl"})


def open_service(
    url: str,
    settings: Settings,
    directory: str | None = None,
    claims: Claims | None = None,
    base_url: Callable[[], str] | None = None,
) -> Backend:
    """The service that a URL names; a relative path in it is relative to the directory.

    ``claims`` is for a server without conditional puts, ``base_url`` for a service without a web server.
    """
    kind, _, rest = url.partition(":")
    location, _, query = rest.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    if kind not in ("memory", "file"):
        return _open_s3(url, location, options, settings, claims)
    _check_options(url, options, {"base_url"})
    base = options.get("base_url", base_url)
    if kind == "file":
        from holdall.backends.disk import DiskService

        path = os.path.join(directory or "", unquote(location.removeprefix("//")) or ".")  # noqa: PTH118 - text
        return DiskService(path, secret=settings.secret, base_url=base)
    if location:
        raise ConfigurationError(
            f"{url!r:.80} has a path, but a service in memory has none", hint="use memory:"
        )
    from holdall.backends.memory import MemoryService

    return MemoryService(secret=settings.secret, base_url=base)


def _open_s3(
    url: str, location: str, options: dict[str, str], settings: Settings, claims: Claims | None
) -> Backend:
    from holdall.backends.aws.credentials import find_credentials
    from holdall.backends.aws.endpoint import resolve_endpoint
    from holdall.backends.aws.limit import NAMES, limits_of
    from holdall.backends.s3.service import LIMITS, S3Service

    _check_options(url, options, {"region", "endpoint", "profile", *NAMES, *_S3_OPTIONS})
    bucket, _, prefix = unquote(location.removeprefix("//")).partition("/")
    if not bucket:
        raise ConfigurationError(
            f"{url!r:.80} does not name a bucket", hint="use s3://BUCKET/PREFIX?region=..."
        )
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
            f"{url.partition('?')[0]!r:.80} has unknown options: {', '.join(unknown)}",
            hint=suggest_name(unknown[0], sorted(known), "options"),
        )


class MirrorService(Layer):
    """A primary service with mirrors, by their names; ``find`` returns the service of a name.

    A job copies objects to the mirrors: see `holdall.files.mirror`.
    """

    def __init__(self, find: Callable[[str], Backend], primary: str, mirrors: tuple[str, ...]) -> None:
        self._find = find
        self._primary = primary
        self._mirrors = mirrors

    def close(self) -> None:
        """Nothing to close: `Services` closes the services that it names."""

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        reply = await self._send(send, request, self._primary)
        if isinstance(request, DeleteObject | DeleteObjects):
            return await self._delete_from_mirrors(send, request, reply)
        if isinstance(reply, ServiceTraits):
            return replace(reply, mirrors=self._mirrors)
        return reply

    async def _delete_from_mirrors(self, send: Send, request: Request[Any], reply: Any) -> Any:
        """Delete from all mirrors, even if one fails; returns the reply for all services."""
        if isinstance(request, DeleteObject) and request.if_match is not None:
            # the primary has checked it; mirrors have other etags
            request = replace(request, if_match=None)
        replies, errors = [reply], []
        for name in self._mirrors:
            try:
                replies.append(await self._send(send, request, name))
            except HoldallError as error:
                error.add_note(f"it was deleted from {self._primary}, but not from the mirror {name}")
                errors.append(error)
        if errors:
            raise errors[0]
        if isinstance(reply, DeleteReport):
            return DeleteReport({key: why for each in replies for key, why in each.failures.items()})
        return reply

    async def _send(self, send: Send, request: Request[Any], name: str) -> Any:
        service = self._find(name)
        if request.destination != "service":
            return await send(service, request)  # the service refuses it, as any service does
        changed: Any = request
        return await send(service, replace(changed, service=name))
