"""The search for objects in file services that no record in the table leads to.

An object is recognized by its key: blobs have keys of 28 random characters, and artifacts a prefix of their own. Any
other object may belong to the caller. Whatever a process may still be about to record is younger than the grace period
of uploads.

Another table, or another program such as Rails, may store its files in the same place, under keys of the same form. So
an object of a blob or a version is only reported. What is deleted is what artifacts themselves prove to be unused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from holdall.artifacts.catalogue import clear_incoming
from holdall.artifacts.directory.sweep import sweep_strays
from holdall.artifacts.home import FILES, INCOMING
from holdall.artifacts.home import Home as ArtifactHome
from holdall.artifacts.name import encode_meta_pk, encode_version_sk, number_of
from holdall.artifacts.record import Head, PurgeMark, VersionRow
from holdall.attachments.record import BlobRow, Marker, UploadRecord
from holdall.attachments.upload.upload import GRACE, KEY_LENGTH
from holdall.core.batch import make_batches
from holdall.core.objects import DescribeService, HeadObject, ListedObject
from holdall.core.values import Item
from holdall.errors import HoldallError, ObjectNotFoundError
from holdall.files.listing import Listing
from holdall.maintenance.doctor.key_filter import KeyFilter
from holdall.maintenance.doctor.work import Work
from holdall.tables.layout import Layout
from holdall.tables.record import fetch, fetch_all

_MOST = 10_000
"""How many objects are compared with the table at a time, each time by reading all of it. If so many have no record,
the others are not compared, because another program probably stores its files in the same place."""
_PAGE = 100
_BLOB = re.compile(rf"(?:variants/|uploads/)?([0-9a-z]{{{KEY_LENGTH}}})(?:/.*)?", re.DOTALL)


class _Litter:
    """The objects of a service that nothing leads to."""

    def __init__(self) -> None:
        self.count = self.size = 0
        self.first = ""

    def add(self, found: ListedObject) -> None:
        self.first = self.first or found.key
        self.count += 1
        self.size += found.size

    def __str__(self) -> str:
        return f"{self.count:,} ({self.size:,} bytes), the first {self.first!r:.120}"


class BlobObjectCheck:
    """Compares the keys of stored blobs with the table. The keys in the table are collected first, then all objects."""

    def __init__(self, work: Work, layout: Layout, known: KeyFilter) -> None:
        self._work = work
        self._layout = layout
        self._known = known

    async def visit(self, rows: Sequence[Item]) -> None:
        """Remember the keys of the blobs of a page, and of those that are being uploaded or purged."""
        for key in _list_keys(rows):
            self._known.add(key)

    async def finish(self, parts: Sequence[BlobObjectCheck]) -> None:
        """Look at all objects."""
        for service in self._work.services:
            if service not in self._work.silent:
                await self._check_service(service)

    async def _check_service(self, service: str) -> None:
        litter, context = _Litter(), self._work.context
        before, listing = context.port.now() - GRACE, Listing(context, service)
        suspects: dict[str, ListedObject] = {}
        try:
            if (await context.port.send(DescribeService(service))).mirrors:
                return  # the services that it consists of have their own names
            while litter.count < _MOST and (page := await listing.next_page()) is not None:
                for found in page.objects:
                    key = _BLOB.fullmatch(found.key)
                    if key is not None and found.modified < before and key[1] not in self._known:
                        suspects[found.key] = found
                if len(suspects) >= _MOST:
                    await self._judge(service, suspects, litter)
                await self._work.show()
            await self._judge(service, suspects, litter)
        except HoldallError as error:
            message = f"its objects could not be compared with the table: {error.message}"
            await self._work.find("orphans", "error", f"file service {service}", message)
        if litter.count:
            least = "at least " if litter.count >= _MOST else ""
            message = f"objects that look like those of blobs, but have none in this table: {least}{litter}"
            await self._work.find("orphans", "notice", f"file service {service}", message)

    async def _judge(self, service: str, suspects: dict[str, ListedObject], litter: _Litter) -> None:
        """Look for the keys of suspects in the table once more; those that also still exist are litter."""
        if not suspects:
            return
        work, known = self._work, set[str]()
        wanted = {_parse(key) for key in suspects}

        def look(rows: Sequence[Item]) -> None:
            known.update(key for key in _list_keys(rows) if key in wanted)

        await work.read_again(self._layout.table, look)
        for key, found in suspects.items():
            if _parse(key) not in known and await is_there(work, service, key):
                litter.add(found)
        suspects.clear()


def _list_keys(rows: Sequence[Item]) -> Iterator[str]:
    for item in rows:
        if BlobRow.entity.peek(item) == "Blob":
            yield str(BlobRow.key.peek(item))
        elif Marker.is_type_of(item) or UploadRecord.is_type_of(item):
            yield str(Marker.key.peek(item))


def _parse(key: str) -> str:
    """The key of the blob that an object belongs to, by its form."""
    found = _BLOB.fullmatch(key)
    assert found is not None
    return found[1]


async def is_there(work: Work, service: str, key: str) -> bool | None:
    """Whether an object exists; None if its service does not answer, which is a finding, once."""
    if service in work.silent:
        return None
    try:
        await work.context.port.send(HeadObject(service, key))
    except ObjectNotFoundError:
        return False
    except HoldallError as error:
        work.silent.add(service)
        message = f"whether it has an object could not be checked: {error.message}"
        await work.find("configuration", "error", f"file service {service}", message)
        return None
    return True


# --- artifacts --------------------------------------------------------------------------------------------


async def find_artifact_objects(work: Work, home: ArtifactHome) -> None:
    """Find what artifacts have left in their file service."""
    strays = await sweep_strays(work.context, home, dry_run=True)
    incoming = await clear_incoming(work.context, home, dry_run=True)
    count, size = strays.objects + incoming.objects, strays.bytes + incoming.bytes
    if count:

        async def mend() -> None:
            await sweep_strays(work.context, home)
            await clear_incoming(work.context, home)

        message = f"objects left by puts that did not end: {count:,} ({size:,} bytes)"
        await work.find("orphans", "notice", "artifacts", message, "delete them", mend)
    if not home.prefix:
        return  # anything in the service could be an artifact's
    litter = _Litter()
    listing, before = Listing(work.context, home.service, home.prefix + "/"), work.context.port.now() - GRACE
    while (page := await listing.next_page()) is not None:
        old = [each for each in page.objects if each.modified < before]
        for some in make_batches(old, _PAGE):
            await _judge_versions(work, home, some, litter)
    if litter.count:
        message = f"objects that look like those of versions, but have none in this table: {litter}"
        await work.find("orphans", "notice", "artifacts", message)


async def _judge_versions(
    work: Work, home: ArtifactHome, some: Sequence[ListedObject], litter: _Litter
) -> None:
    """Look for the versions of objects; LATEST needs none, because its row is made from its object."""
    named = [(each, place) for each in some if (place := _parse_version(home, each.key)) is not None]
    rows = [VersionRow.at(home, name, sk) for _, (name, sk) in named]
    for (each, (name, sk)), row in zip(named, await fetch_all(work.context.port, rows), strict=True):
        if row.is_stored or not await is_there(work, home.service, each.key):
            continue
        mark = PurgeMark(home.address(encode_meta_pk(name), PurgeMark.prefix + sk))
        head, mark, row = await fetch(work.context.port, Head.of(home, name), mark, row)
        reserved = [encode_version_sk(number) for number in head.reserved.values()]
        if not row.is_stored and not mark.is_stored and sk not in reserved:
            litter.add(each)


def _parse_version(home: ArtifactHome, key: str) -> tuple[str, str] | None:
    """The name and the sort key of the version with an object; None for any other object."""
    name, _, last = key.removeprefix(home.prefix + "/").rpartition("/")
    sk = last.removesuffix(home.suffix)
    if name in ("", FILES, INCOMING) or number_of(sk) is None or home.object_key(name, sk) != key:
        return None
    return name, sk
