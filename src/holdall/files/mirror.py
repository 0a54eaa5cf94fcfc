"""Mirrors: services that hold a copy of everything in another service, their primary.

Reads and URLs use the primary. After an object is put there, a job copies it to the mirrors, so mirrors lag behind. A
process that dies between the put and the enqueueing of the job leaves one object uncopied, which `check_mirrors` finds.
Deletions go to all services at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from holdall.core.context import Context, Hook
from holdall.core.frozen import dataclass
from holdall.core.objects import (
    DeleteObject,
    DescribeService,
    ListedObject,
)
from holdall.errors import (
    HoldallError,
    InvalidOptionsError,
    ObjectNotFoundError,
    PreconditionFailedError,
    ServiceUnavailableError,
)
from holdall.files.listing import Listing
from holdall.files.shelf import Shelf
from holdall.files.transfer import compare_bytes, copy_object, find_object, is_digest

_MOST_KEYS = 100
_TRIES = 5


class PlanCopies(Protocol):
    """The flow that has a worker copy an object to the mirrors of its service."""

    async def __call__(self, context: Context, service: str, key: str) -> None:
        """Enqueue the job."""


PLAN_COPIES: Hook[PlanCopies] = Hook("plan_copies")


async def mirror(context: Context, service: str, key: str) -> None:
    """Have a job copy an object to the mirrors of its service, if it has any."""
    if (await context.port.send(DescribeService(service))).mirrors:
        await context.hook(PLAN_COPIES)(context, service, key)


async def copy_to_mirrors(context: Context, service: str, key: str) -> int:
    """Make an object the same in each mirror as in its service; return how many copies were made.

    If one mirror cannot be written, the others still get their copy.
    """
    mirrors = (await context.port.send(DescribeService(service))).mirrors
    copies, errors = 0, []
    for name in mirrors:
        try:
            copies += await _follow(context, service, name, key)
        except HoldallError as error:
            error.add_note(f"this happened while an object was copied from {service} to {name}")
            errors.append(error)
    if errors:
        raise errors[0]
    return copies


async def _follow(context: Context, service: str, name: str, key: str) -> int:
    """Copy an object until the mirror has what the service has: it may be replaced or deleted during the copy.

    A deletion goes to all services, so one between our read and our write reaches the mirror too early.
    """
    copies = 0
    for _ in range(_TRIES):
        info = await find_object(context, service, key)
        if info is None and copies:
            await context.port.send(DeleteObject(name, key))
        if info is not None:
            there = await find_object(context, name, key)
            if there is None or compare_bytes(info, there) is not True or info.headers != there.headers:
                try:
                    await copy_object(Shelf(context, service), info, Shelf(context, name))
                except (ObjectNotFoundError, PreconditionFailedError):
                    continue
                copies += 1
        elif not copies:
            return 0
        now = await find_object(context, service, key)
        if (now and now.etag) == (info and info.etag):
            return copies
    raise ServiceUnavailableError(
        f"the object {key!r:.80} changed during each of {_TRIES} attempts to copy it to {name}",
        hint="try again later",
    )


# --- looking ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MirrorReport:
    """How a mirror compares with its primary.

    ``compared`` objects of the primary were looked at; of these, ``missing`` are not in the mirror and ``different``
    have other bytes there. ``surplus`` objects are only in the mirror. ``copied`` is how many missing and different
    objects were repaired, and ``keys`` has the keys of the first objects with a problem.
    """

    mirror: str
    compared: int
    missing: int
    different: int
    surplus: int
    copied: int
    keys: tuple[str, ...]


async def check_mirrors(
    shelf: Shelf,
    *,
    repair: bool = False,
    prefix: str = "",
    progress: Callable[[int], Any] | None = None,
) -> list[MirrorReport]:
    """Compare each mirror of the service with it, key by key; with ``repair``, copy missing and different objects.

    Surplus objects are reported but not deleted. Both services are listed page by page, so memory use does not grow
    with the number of objects.
    """
    context, service = shelf.context, shelf.service
    traits = await context.port.send(DescribeService(service))
    if not traits.mirrors:
        raise InvalidOptionsError(f"the service {service!r:.60} has no mirrors")
    return [await _compare(context, service, name, repair, prefix, progress) for name in traits.mirrors]


async def _compare(
    context: Context,
    service: str,
    name: str,
    repair: bool,
    prefix: str,
    progress: Callable[[int], Any] | None,
) -> MirrorReport:
    ours, theirs = _Walk(context, service, prefix), _Walk(context, name, prefix)
    compared = missing = different = surplus = copied = 0
    keys: list[str] = []
    one, other = await ours.next(), await theirs.next()
    while one is not None or other is not None:
        order = _compare_keys(one, other)
        if order > 0:
            assert other is not None
            surplus += 1
            problem: str | None = other.key
        else:
            assert one is not None
            compared += 1
            problem = None
            if order < 0:
                missing += 1
                problem = one.key
            elif not await _has_same(context, service, name, one, other):
                different += 1
                problem = one.key
            if problem is not None and repair:
                copied += min(1, await _follow(context, service, name, one.key))
            if progress is not None and compared % 1000 == 0:
                await context.port.call(progress, compared)
        if problem is not None and len(keys) < _MOST_KEYS:
            keys.append(problem)
        if order <= 0:
            one = await ours.next()
        if order >= 0:
            other = await theirs.next()
    return MirrorReport(name, compared, missing, different, surplus, copied, tuple(keys))


def _compare_keys(one: ListedObject | None, other: ListedObject | None) -> int:
    if one is None or other is None:
        return 1 if one is None else -1
    ours, theirs = one.key.encode(), other.key.encode()
    return (ours > theirs) - (ours < theirs)


async def _has_same(
    context: Context, service: str, name: str, one: ListedObject, other: ListedObject | None
) -> bool:
    """Whether both have the same bytes; if their listings cannot tell, each is asked for the object's digests."""
    assert other is not None
    if one.size != other.size:
        return False
    if is_digest(one.etag) and one.etag == other.etag:
        return True
    ours, theirs = await find_object(context, service, one.key), await find_object(context, name, one.key)
    return ours is None or (theirs is not None and compare_bytes(ours, theirs) is not False)


class _Walk:
    """The objects of a service in key order, a page at a time."""

    def __init__(self, context: Context, service: str, prefix: str) -> None:
        self._listing = Listing(context, service, prefix)
        self._waiting: list[ListedObject] = []

    async def next(self) -> ListedObject | None:
        while not self._waiting:
            page = await self._listing.next_page()
            if page is None:
                return None
            self._waiting = list(reversed(page.objects))
        return self._waiting.pop()
