"""Copying the objects of a file service to the service of the same name, page by page of the listing.

An object is recorded with what the listing of the source showed (etag, size, time) and with the etag of its copy. So a
listing of each side is enough to find what has changed since, on either side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdall.core.batch import make_batches
from holdall.core.objects import (
    DeleteObject,
    DescribeService,
    ListedObject,
    ListObjects,
    ObjectPage,
    ServiceTraits,
)
from holdall.errors import ConfigurationError
from holdall.files.listing import Listing
from holdall.files.transfer import find_object
from holdall.local.copy_manifest import (
    Recorded,
    count_things,
    find_fact,
    find_intents,
    find_recorded,
    forget_things,
    list_intents,
    list_things,
    record_fact,
    record_things,
    settle_intents,
)
from holdall.maintenance.copy.object import ObjectCopy, Result, make_print, was_begun
from holdall.maintenance.copy.report import CopiedPart
from holdall.maintenance.copy.work import PassBookmark, PassBookmarks, Side, Work

_LANES = 8
_TOGETHER = 64
"""How many objects are copied before they are recorded, and progress is reported."""
_MOST_LINES = 20


async def list_services(source: Side, target: Side) -> dict[str, str]:
    """The services to copy, each with the name of both places in the manifest.

    `ConfigurationError` if the target lacks one that holds objects, or cannot be reached. A service with mirrors is
    left out, because its primary and its mirrors are services themselves. So is one that is the same place in both
    databases.
    """
    found = {}
    for name in source.services:
        ours = await source.context.port.send(DescribeService(name))
        if ours.mirrors:
            continue
        if name in target.services:
            theirs = await target.context.port.send(DescribeService(name))
            if _are_different(ours, theirs):
                for side in (source, target):  # a missing bucket is reported before anything is written
                    await side.context.port.send(ListObjects(name, limit=1))
                found[name] = f"files {name} from {_name_place(ours)} to {_name_place(theirs)}"
        elif (await source.context.port.send(ListObjects(name, limit=1))).objects:
            known = f"only: {', '.join(target.services)}" if target.services else "or any other"
            raise ConfigurationError(
                f"the source has files in the service {name}, and the target has no service {name}, {known}",
                hint=f'open the target with files={{"{name}": "s3://BUCKET"}}, or leave out files (files=False)',
            )
    return found


def _are_different(ours: ServiceTraits, theirs: ServiceTraits) -> bool:
    """Whether two services are different places; `ConfigurationError` if one is inside the other."""
    one, other = ours.origin, theirs.origin
    if one is None and other is None:
        return not ours.place or ours.place != theirs.place
    if one is None or other is None or (one.server, one.bucket) != (other.server, other.bucket):
        return True
    if one.prefix == other.prefix:
        return False
    if one.prefix.startswith(other.prefix) or other.prefix.startswith(one.prefix):
        raise ConfigurationError(
            f"the files of the source ({ours.place}) and those of the target ({theirs.place}) overlap",
            hint="use another bucket, or a prefix that is not inside the other one",
        )
    return True


def _name_place(traits: ServiceTraits) -> str:
    return traits.place if traits.origin is None else f"{traits.place} at {traits.origin.server}"


class FileCopy:
    """One service in one pass; ``place`` names both places in the manifest."""

    def __init__(self, work: Work, service: str, place: str) -> None:
        self._work = work
        self._service = service
        self._place = place
        self._recorded = 0
        self._objects = ObjectCopy(work, service, self._place)
        self.part = CopiedPart("files", service, service)

    async def count(self) -> int:
        """About how many objects there are: as many as the last pass has recorded, or else counted in a listing."""
        work = self._work
        if work.manifest.turn > 1:
            return await work.offload(count_things, self._place, False)
        fact = f"count {self._place}"
        known = await work.offload(find_fact, fact)
        if known is not None:
            return int(known)
        count, listing = 0, Listing(work.source, self._service)
        while (page := await listing.next_page()) is not None:
            count += len(page.objects)
        if not work.options.dry_run:
            await work.offload(record_fact, fact, str(count))
        return count

    async def copy(self) -> None:
        """Copy what differs."""
        work, dry = self._work, self._work.options.dry_run
        bookmarks = PassBookmarks(work, self._place)
        # a dry run looks at everything, because it counts what the source no longer has
        bookmark = PassBookmark(0, None, False, {}) if dry else await bookmarks.get(0)
        self._restore(bookmark.counted)
        after: Any = bookmark.after
        if bookmark.done:
            return
        await self._objects.prepare()
        while True:
            page = await work.source.port.send(ListObjects(self._service, after=after))
            await self._copy_page(page)
            after = page.next
            if not dry:
                await bookmarks.put(bookmark, after, self._counts())
            await work.show(self.part)
            if after is None:
                return

    def _counts(self) -> dict[str, Any]:
        names = ("scanned", "copied", "unchanged", "same", "differing", "failed", "copied_bytes")
        lines = {name: getattr(self.part, name) for name in ("differences", "problems")}
        return {name: getattr(self.part, name) for name in names} | lines

    def _restore(self, counted: Mapping[str, Any]) -> None:
        """Continue with what was counted before an interruption."""
        lists = {name: tuple(value) for name, value in counted.items() if isinstance(value, list)}
        self.part = self.part._replace(**{**counted, **lists})

    async def _copy_page(self, page: ObjectPage) -> None:
        work = self._work
        keys = [each.key for each in page.objects]
        known = await work.offload(find_recorded, self._place, keys)
        self._recorded += len(known)
        prints = {each.key: make_print(each) for each in page.objects}
        changed = [
            each
            for each in page.objects
            if each.key not in known or known[each.key].origin != prints[each.key]
        ]
        self._add(scanned=len(keys) - len(changed), unchanged=len(keys) - len(changed))
        if work.options.dry_run:
            size = sum(each.size for each in changed)
            self._add(scanned=len(changed), copied=len(changed), copied_bytes=size)
            return
        seen = [(key, *known[key][:2]) for key in known.keys() - {each.key for each in changed}]
        await work.offload(record_things, self._place, seen)
        for some in make_batches(changed, _TOGETHER):
            await self._copy_some(some, known)
            await work.show(self.part)

    async def _copy_some(self, changed: Sequence[ListedObject], known: Mapping[str, Recorded]) -> None:
        work, port = self._work, self._work.source.port
        keys = [each.key for each in changed]
        begun = await work.offload(find_intents, self._place, keys)
        flows = [self._objects.copy(each, known.get(each.key), begun.get(each.key, ())) for each in changed]
        results = [outcome.result() for outcome in await port.gather(flows, limit=_LANES)]
        self._add(scanned=len(changed))
        things = []
        for each, result in zip(changed, results, strict=True):
            recorded = known.get(each.key)
            if result.copy is not None:
                things.append((each.key, result.origin, result.copy))
            elif recorded is not None:  # so that it is not taken for deleted
                things.append((each.key, recorded.origin, recorded.copy))
            if result.name != "vanished":
                self._add(**{result.name: 1})
            self._add(copied_bytes=result.size)
            self._note(result)
        await work.offload(record_things, self._place, things)

    def _add(self, **counts: int) -> None:
        sums: Mapping[str, Any] = {name: getattr(self.part, name) + count for name, count in counts.items()}
        self.part = self.part._replace(**sums)

    def _note(self, result: Result) -> None:
        if result.name == "differing":
            self.part = self.part._replace(differences=(*self.part.differences, result.line)[:_MOST_LINES])
        elif result.name == "failed":
            self.part = self.part._replace(problems=(*self.part.problems, result.line)[:_MOST_LINES])

    # --- deleting -------------------------------------------------------------------------------------------

    @property
    def _deletes(self) -> bool:
        """Whether objects are deleted: not if the source seems to have none, because its disk may not be mounted."""
        return self._work.options.delete and self.part.scanned > 0

    async def delete(self) -> None:
        """Delete from the target what an earlier pass copied and this one did not find in the source."""
        work = self._work
        if not work.options.dry_run:
            await self._settle_intents()
        if self.part.failed:
            return
        if work.options.dry_run:
            recorded = await work.offload(count_things, self._place, False)
            self._add(**{"deleted" if self._deletes else "gone": recorded - self._recorded})
            self._explain_kept()
            return
        after = ""
        while page := await work.offload(list_things, self._place, after, False):
            after = page[-1][0]
            flows = [self._delete_one(key, recorded) for key, recorded in page]
            ended = [outcome.result() for outcome in await work.target.port.gather(flows, limit=_LANES)]
            for (key, _), how in zip(page, ended, strict=True):
                if how == "differing":
                    self._note(
                        Result("differing", line=f"{key}: changed in the target, so it was not deleted")
                    )
                if how != "missing":
                    self._add(**{how: 1})
            gone = [key for (key, _), how in zip(page, ended, strict=True) if how in ("deleted", "missing")]
            await work.offload(forget_things, self._place, gone)
            await work.show(self.part)
        self._explain_kept()

    def _explain_kept(self) -> None:
        if self.part.gone and self._work.options.delete:
            line = "the source lists no files, so none were deleted; if it should be empty, delete them in the target"
            self.part = self.part._replace(problems=(*self.part.problems, line)[:_MOST_LINES])

    async def _settle_intents(self) -> None:
        """Record what was written before an interruption and is no longer in the source."""
        work = self._work
        while begun := await work.offload(list_intents, self._place):
            flows = [find_object(work.target, self._service, key) for key in begun]
            outcomes = await work.target.port.gather(flows, limit=_LANES)
            found = [there for outcome in outcomes if (there := outcome.result()) is not None]
            things = [(each.key, b"", each.etag) for each in found if was_begun(each, begun[each.key])]
            await work.offload(settle_intents, self._place, list(begun), things)

    async def _delete_one(self, key: str, recorded: Recorded) -> str:
        there = await find_object(self._work.target, self._service, key)
        if there is None:
            return "missing"
        if not self._deletes:
            return "gone"
        if there.etag != recorded.copy:
            return "differing"
        await self._work.target.port.send(DeleteObject(self._service, key))
        return "deleted"

    # --- verifying ------------------------------------------------------------------------------------------

    async def verify(self) -> None:
        """List both services again, and compare them with the manifest."""
        work, turn = self._work, self._work.manifest.turn
        expected = await work.offload(count_things, self._place, True)
        newer = known = equal = altered = 0
        listing = Listing(work.source, self._service)
        while (page := await listing.next_page()) is not None:
            found = await self._find(page)
            mine = {each.key: make_print(each) for each in page.objects}
            known += sum(found[key].turn == turn for key in found)
            newer += sum(key not in found or found[key].origin != mine[key] for key in mine)
            await self._show_checked(page)
        listing = Listing(work.target, self._service)
        while (page := await listing.next_page()) is not None:
            found = await self._find(page)
            for each in page.objects:
                recorded = found.get(each.key)
                if recorded is None or recorded.turn != turn:
                    continue
                if recorded.copy == each.etag:
                    equal += 1
                else:
                    altered += 1
                    self._note(Result("differing", line=f"{each.key}: changed in the target"))
            await self._show_checked(page)
        missing = await self._find_missing() if expected > equal + altered else 0
        self.part = self.part._replace(
            verified=equal,
            altered=altered,
            missing=missing,
            newer=newer + max(0, expected - known),
        )

    async def _show_checked(self, page: ObjectPage) -> None:
        self._add(checked=len(page.objects))
        await self._work.show(self.part)

    async def _find(self, page: ObjectPage) -> dict[str, Recorded]:
        keys = [each.key for each in page.objects]
        return await self._work.offload(find_recorded, self._place, keys)

    async def _find_missing(self) -> int:
        """Count what the target has lost, and forget it, so that the next pass copies it again."""
        work, missing, after = self._work, 0, ""
        while page := await work.offload(list_things, self._place, after, True):
            after = page[-1][0]
            flows = [find_object(work.target, self._service, key) for key, _ in page]
            outcomes = await work.target.port.gather(flows, limit=_LANES)
            gone = [key for (key, _), outcome in zip(page, outcomes, strict=True) if outcome.result() is None]
            await work.offload(forget_things, self._place, gone)
            missing += len(gone)
            for key in gone[:_MOST_LINES]:
                self._note(Result("differing", line=f"{key}: missing in the target"))
        return missing
