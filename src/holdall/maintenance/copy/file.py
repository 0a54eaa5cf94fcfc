"""Copying the objects of a file service to the service of the same name, page by page of the listing.

An object is recorded with what the listing of the source showed (etag, size, time) and with the etag of its copy. So a
listing of each side is enough to find what has changed since, on either side. Every copy is checked against the digests
of its source when it is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from holdall.core.digests import Digests
from holdall.core.objects import (
    DeleteObject,
    GetObject,
    ListedObject,
    ListObjects,
    ObjectHeaders,
    ObjectInfo,
    ObjectPage,
    Origin,
)
from holdall.errors import (
    AccessDeniedError,
    ConfigurationError,
    IntegrityError,
    InvalidRequestError,
    ObjectNotFoundError,
    PreconditionFailedError,
)
from holdall.files.shelf import Shelf
from holdall.files.source import hash_bytes
from holdall.files.transfer import compare_bytes, copy_object, find_object, find_origin, import_object
from holdall.local.manifest import (
    Recorded,
    count_things,
    find_recorded,
    forget_things,
    list_things,
    record_things,
)
from holdall.maintenance.copy.report import CopiedPart
from holdall.maintenance.copy.work import PassMarks, Side, Work

_LANES = 8
_PIECE = 8 * 1024**2
_MOST_LINES = 20


class _Result(NamedTuple):
    """What happened to an object; ``copy`` is the etag in the target that is recorded, None if nothing is."""

    name: Literal["copied", "same", "differing", "failed", "vanished"]
    origin: bytes = b""
    copy: str | None = None
    size: int = 0
    line: str = ""


async def list_services(source: Side, target: Side) -> list[str]:
    """The services to copy; `ConfigurationError` if the target lacks one that holds objects.

    A service with mirrors is left out, because its primary and its mirrors are services themselves. So is one that is
    the same place in both databases.
    """
    found = []
    for name, url in source.services.items():
        if url is not None and url.startswith("mirror:"):
            continue
        if url is not None and url == target.services.get(name, "") and not url.startswith("memory:"):
            continue
        if name not in target.services:
            if (await source.context.port.send(ListObjects(name, limit=1))).objects:
                known = ", ".join(target.services) or "none"
                raise ConfigurationError(
                    f"the source has files in the service {name}, and the target has no service {name}, only: {known}",
                    hint=f'open the target with files={{"{name}": "s3://BUCKET"}}, or leave out files (files=False)',
                )
            continue
        found.append(name)
    return found


class FileCopy:
    """One service in one pass."""

    def __init__(self, work: Work, service: str) -> None:
        self._work = work
        self._service = service
        self._place = f"files {service}"
        self._recorded = 0
        self._source = Shelf(work.source, service)
        self._target = Shelf(work.target, service)
        self._origin: Origin | None = None
        self.part = CopiedPart("files", service, service)

    async def copy(self) -> None:
        """Copy what differs."""
        work, dry = self._work, self._work.options.dry_run
        marks = PassMarks(work, self._place)
        mark = await marks.get(0)
        self.part = self.part._replace(**dict(mark.counted))
        after: Any = mark.after
        if mark.done:
            return
        self._origin = await find_origin(self._source, self._target)
        while True:
            page = await work.source.port.send(ListObjects(self._service, after=after))
            await self._copy_page(page)
            after = page.next
            if not dry:
                await marks.put(mark, after, self._counts())
            await work.show(self.part)
            if after is None:
                return

    def _counts(self) -> dict[str, Any]:
        names = ("scanned", "copied", "unchanged", "same", "differing", "failed", "copied_bytes")
        lines = {name: getattr(self.part, name) for name in ("differences", "problems")}
        return {name: getattr(self.part, name) for name in names} | lines

    async def _copy_page(self, page: ObjectPage) -> None:
        work, port = self._work, self._work.source.port
        keys = [each.key for each in page.objects]
        known = await port.offload(find_recorded, work.manifest, self._place, keys)
        self._recorded += len(known)
        prints = {each.key: _print(each) for each in page.objects}
        changed = [
            each
            for each in page.objects
            if each.key not in known or known[each.key].origin != prints[each.key]
        ]
        self._add(scanned=len(keys), unchanged=len(keys) - len(changed))
        if work.options.dry_run:
            self._add(copied=len(changed), copied_bytes=sum(each.size for each in changed))
            return
        flows = [self._copy_one(each, known.get(each.key)) for each in changed]
        results = [outcome.result() for outcome in await port.gather(flows, limit=_LANES)]
        kept = {key: (prints[key], recorded.copy) for key, recorded in known.items()}
        for each, result in zip(changed, results, strict=True):
            kept.pop(each.key, None)
            recorded = known.get(each.key)
            if result.copy is not None:
                kept[each.key] = result.origin, result.copy
            elif recorded is not None:  # so that it is not taken for deleted
                kept[each.key] = recorded.origin, recorded.copy
            if result.name != "vanished":
                self._add(**{result.name: 1})
            self._add(copied_bytes=result.size)
            self._note(result)
        things = [(key, *rest) for key, rest in kept.items()]
        await port.offload(record_things, work.manifest, self._place, things)

    async def _copy_one(self, listed: ListedObject, recorded: Recorded | None) -> _Result:
        work, key = self._work, listed.key
        origin = _print(listed)
        try:
            ours = await find_object(work.source, self._service, key)
            if ours is None:
                return _Result("vanished")
            theirs = await find_object(work.target, self._service, key)
            if theirs is not None and await self._is_same(ours, theirs):
                return _Result("same", origin, theirs.etag)
            replaces = recorded is not None and theirs is not None and recorded.copy == theirs.etag
            if theirs is not None and not (replaces or work.options.overwrite):
                line = f"{key}: changed in the target, so it was not replaced"
                return _Result("differing", line=line)
            copy = await self._transfer(ours)
        except (
            ObjectNotFoundError,
            PreconditionFailedError,
        ):  # replaced or deleted meanwhile: the next pass copies it
            return _Result("vanished")
        except (IntegrityError, InvalidRequestError) as error:
            return _Result("failed", line=f"{key}: {error.message}")
        return _Result("copied", origin, copy.etag, ours.size)

    async def _transfer(self, info: ObjectInfo) -> ObjectInfo:
        """Let the server copy an object if it can, and otherwise read and write it."""
        if self._origin is not None:
            try:
                return await import_object(self._source, info, self._target, self._origin)
            except (AccessDeniedError, ConfigurationError):
                # the target's credentials do not permit to read the source, or the server does not copy
                self._origin = None
            except (IntegrityError, InvalidRequestError, ObjectNotFoundError):
                pass  # a refusal of this object only: reading it shows whether it can be copied
        return await copy_object(self._source, info, self._target)

    async def _is_same(self, ours: ObjectInfo, theirs: ObjectInfo) -> bool:
        """Whether both have the same bytes and headers. If the services know no common digest, the bytes are read."""
        if not _has_same_headers(ours.headers, theirs.headers):
            return False
        same = compare_bytes(ours, theirs)
        if same is None:
            same = await _hash(self._work.source, self._service, ours) == await _hash(
                self._work.target, self._service, theirs
            )
        return same

    def _add(self, **counts: int) -> None:
        sums: Mapping[str, Any] = {name: getattr(self.part, name) + count for name, count in counts.items()}
        self.part = self.part._replace(**sums)

    def _note(self, result: _Result) -> None:
        if result.name == "differing":
            self.part = self.part._replace(differences=(*self.part.differences, result.line)[:_MOST_LINES])
        elif result.name == "failed":
            self.part = self.part._replace(problems=(*self.part.problems, result.line)[:_MOST_LINES])

    # --- deleting -------------------------------------------------------------------------------------------

    async def delete(self) -> None:
        """Delete from the target what an earlier pass copied and this one did not find in the source."""
        work = self._work
        if self.part.failed:
            return
        if work.options.dry_run:
            recorded = await work.source.port.offload(count_things, work.manifest, self._place, False)
            self._add(**{"deleted" if work.options.delete else "gone": recorded - self._recorded})
            return
        after = ""
        while page := await work.source.port.offload(list_things, work.manifest, self._place, after, False):
            after = page[-1][0]
            flows = [self._delete_one(key, recorded) for key, recorded in page]
            ended = [outcome.result() for outcome in await work.target.port.gather(flows, limit=_LANES)]
            for (key, _), how in zip(page, ended, strict=True):
                if how == "differing":
                    self._note(
                        _Result("differing", line=f"{key}: changed in the target, so it was not deleted")
                    )
                if how != "missing":
                    self._add(**{how: 1})
            gone = [key for (key, _), how in zip(page, ended, strict=True) if how in ("deleted", "missing")]
            await work.source.port.offload(forget_things, work.manifest, self._place, gone)
            await work.show(self.part)

    async def _delete_one(self, key: str, recorded: Recorded) -> str:
        there = await find_object(self._work.target, self._service, key)
        if there is None:
            return "missing"
        if not self._work.options.delete:
            return "gone"
        if there.etag != recorded.copy:
            return "differing"
        await self._work.target.port.send(DeleteObject(self._service, key))
        return "deleted"

    # --- verifying ------------------------------------------------------------------------------------------

    async def verify(self) -> None:
        """List both services again, and compare them with the manifest."""
        work, turn = self._work, self._work.manifest.turn
        expected = await work.source.port.offload(count_things, work.manifest, self._place, True)
        newer = known = equal = 0
        altered: list[str] = []
        after: str | None = None
        while True:
            page = await work.source.port.send(ListObjects(self._service, after=after))
            found = await self._find(page)
            mine = {each.key: _print(each) for each in page.objects}
            known += sum(found[key].turn == turn for key in found)
            newer += sum(key not in found or found[key].origin != mine[key] for key in mine)
            if (after := page.next) is None:
                break
        while True:
            page = await work.target.port.send(ListObjects(self._service, after=after))
            found = await self._find(page)
            for each in page.objects:
                recorded = found.get(each.key)
                if recorded is not None and recorded.turn == turn:
                    equal += recorded.copy == each.etag
                    altered += [] if recorded.copy == each.etag else [f"{each.key}: changed in the target"]
            if (after := page.next) is None:
                break
        lost = await self._find_missing() if expected > equal + len(altered) else []
        lines = [*self.part.differences, *altered, *(f"{key}: missing in the target" for key in lost)]
        self.part = self.part._replace(
            verified=equal,
            altered=len(altered),
            missing=len(lost),
            newer=newer + max(0, expected - known),
            differences=tuple(lines[:_MOST_LINES]),
        )

    async def _find(self, page: ObjectPage) -> dict[str, Recorded]:
        keys = [each.key for each in page.objects]
        return await self._work.source.port.offload(find_recorded, self._work.manifest, self._place, keys)

    async def _find_missing(self) -> list[str]:
        """Look for what the target lost. It is forgotten, so that the next pass copies it again."""
        work, lost, after = self._work, list[str](), ""
        while page := await work.source.port.offload(list_things, work.manifest, self._place, after, True):
            after = page[-1][0]
            flows = [find_object(work.target, self._service, key) for key, _ in page]
            outcomes = await work.target.port.gather(flows, limit=_LANES)
            gone = [key for (key, _), outcome in zip(page, outcomes, strict=True) if outcome.result() is None]
            await work.source.port.offload(forget_things, work.manifest, self._place, gone)
            lost += gone
        return lost


def _print(listed: ListedObject) -> bytes:
    """What a listing shows of an object: different after each change of its bytes, headers or tags."""
    return f"{listed.etag} {listed.size} {listed.modified.isoformat()}".encode()


def _has_same_headers(ours: ObjectHeaders, theirs: ObjectHeaders) -> bool:
    """Whether the target has the headers of the source; a service may add a content type of its own."""
    pairs = [
        (getattr(ours, name), getattr(theirs, name))
        for name in ("content_type", "disposition", "cache_control")
    ]
    return dict(ours.metadata) == dict(theirs.metadata) and all(
        one is None or one == other for one, other in pairs
    )


async def _hash(context: Any, service: str, info: ObjectInfo) -> str | None:
    """The SHA-256 of an object's bytes, which are read for it."""
    digests = Digests(["sha256"])
    for start in range(0, info.size, _PIECE):
        piece = await context.port.send(GetObject(service, info.key, start, _PIECE, info.etag))
        await hash_bytes(context.port, digests, piece.body)
    return digests.sha256
