"""Services by their URLs: ``file:``, ``memory:`` and ``s3://``; what each needs is loaded when it is opened."""

from __future__ import annotations

import os
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any
from urllib.parse import parse_qsl, unquote

from holdall.core.frozen import replace
from holdall.core.port import Backend
from holdall.core.settings import Settings, number_setting
from holdall.errors import ConfigurationError

_S3_OPTIONS = frozenset({"style", "encryption", "kms_key", "storage_class", "acl"})


def open_service(url: str, settings: Settings, directory: str | None = None, claims: Any = None) -> Backend:
    """The service that a URL stands for; a relative path in it is relative to the directory.

    ``claims`` are for a server that cannot refuse to replace what is there.
    """
    kind, _, rest = url.partition(":")
    location, _, query = rest.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    if kind == "memory":
        from holdall.backends.memory import MemoryService

        _check_options(url, options, {"base_url"})
        if location:
            raise ConfigurationError(f"{url!r:.80} names a place", hint="memory has none: use memory:")
        return MemoryService(secret=settings.secret, base_url=options.get("base_url"))
    if kind == "file":
        from holdall.backends.disk import DiskService

        _check_options(url, options, {"base_url"})
        path = os.path.join(directory or "", unquote(location.removeprefix("//")) or ".")  # noqa: PTH118 - text
        return DiskService(path, secret=settings.secret, base_url=options.get("base_url"))
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
