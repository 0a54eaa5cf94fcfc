"""The check of artifacts: aliases against versions, versions against bytes, the list of names, and reservations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from holdall.artifacts.alias.state import read_aliases
from holdall.artifacts.catalogue import NamePages
from holdall.artifacts.home import Home, Pages, home_of
from holdall.artifacts.name import display_version
from holdall.artifacts.record import Head, NameEntry, Note, VersionRow, parse_moment
from holdall.artifacts.settings import artifact_settings
from holdall.artifacts.version.content import find_content
from holdall.core.objects import HeadObject
from holdall.core.values import Item
from holdall.errors import HoldallError, ObjectNotFoundError
from holdall.maintenance.doctor.work import Work
from holdall.tables.layout import Layout
from holdall.tables.record import TYPE, fetch, fetch_all, put_all

_OLD = timedelta(hours=1)
_PAGE = 100


async def find_artifacts(work: Work, layout: Layout | None) -> Home | None:
    """The home of artifacts; None if the database cannot have any, or if that cannot be found out."""
    context = work.context
    settings = artifact_settings(context.settings)
    if settings.service is None and context.settings.default_service is None:
        return None
    if settings.table is None and (layout is None or layout.mode != "A"):
        return None
    try:
        return await home_of(context)
    except HoldallError as error:
        await work.find("artifacts", "error", "artifacts", f"they cannot be used: {error.message}")
        return None


class NameCheck:
    """Looks for artifacts that are missing from the list of names."""

    def __init__(self, work: Work, home: Home) -> None:
        self._work = work
        self._home = home
        self._last = ""

    async def visit(self, rows: Sequence[Item]) -> None:
        """Look at the versions of a page."""
        names = []
        for item in rows:  # the items of a partition are adjacent
            if VersionRow.sha256.name not in item or VersionRow.is_deleted.name not in item or TYPE in item:
                continue
            name = self._home.pk_of(item)
            if name != self._last and not name.startswith("__"):
                names.append(name)
            self._last = name
        for start in range(0, len(names), _PAGE):
            await _check_listed(self._work, self._home, names[start : start + _PAGE])


async def check_artifacts(work: Work, home: Home) -> None:
    """Find aliases that serve nothing, versions without bytes, and dead publishers."""
    pages = NamePages(work.context, deleted=True)
    while (names := await pages.next_page()) is not None:
        for name in names:
            await _check_aliases(work, home, name)
            await _check_versions(work, home, name)
            await _check_reservations(work, home, name)


async def _check_listed(work: Work, home: Home, names: Sequence[str]) -> None:
    entries = [NameEntry.of(home, name) for name in names]
    for entry, found in zip(entries, await fetch_all(work.context.port, entries), strict=True):
        if found.is_stored:
            continue

        async def mend(entry: NameEntry = entry) -> bool:
            await put_all(work.context.port, [entry])
            return True

        message = "it is missing from the list of names"
        await work.find("artifacts", "error", f"artifact {entry.sk}", message, "add it to the list", mend)


async def _check_aliases(work: Work, home: Home, name: str) -> None:
    for alias in await read_aliases(work.context, home, name):
        rows = [VersionRow.at(home, name, sk) for sk, _ in alias.arms]
        for row in await fetch_all(work.context.port, rows):
            if row.is_live:
                continue
            now = {each.alias: each for each in await read_aliases(work.context, home, name)}.get(alias.alias)
            if now is None or now.arms != alias.arms:
                continue  # it was changed meanwhile
            what = "is deleted" if row.is_version else "does not exist"
            message = f"it serves version {display_version(row.sk)}, which {what}"
            await work.find("artifacts", "error", f"alias {alias.alias} of {name}", message)


async def _check_versions(work: Work, home: Home, name: str) -> None:
    pages = Pages(work.context, home, VersionRow, home.query_versions(name, limit=_PAGE))
    while (rows := await pages.next()) is not None:
        live = [row for row in rows if row.is_live]
        notes = (
            await fetch_all(work.context.port, [Note.at(home, name, row.sk) for row in live]) if live else []
        )
        for row, note in zip(live, notes, strict=True):
            content = find_content(row, note)
            key = home.object_key(name, row.sk) if content is None else content.key
            if await _is_there(work, home, key):
                continue
            again = await fetch(work.context.port, VersionRow(row.address))
            if again.item == row.item and not await _is_there(work, home, key):
                subject = f"version {display_version(row.sk)} of {name}"
                await work.find(
                    "artifacts", "error", subject, f"its bytes are missing ({home.service}:{key})"
                )


async def _is_there(work: Work, home: Home, key: str) -> bool:
    try:
        await work.context.port.send(HeadObject(home.service, key))
    except ObjectNotFoundError:
        return False
    return True


async def _check_reservations(work: Work, home: Home, name: str) -> None:
    """Find numbers that a publisher reserved and did not use; the next one to publish clears them away."""
    head = await fetch(work.context.port, Head.of(home, name))
    before = work.context.port.now() - _OLD
    for slot, mark in head.reserving.items():
        try:
            ended = parse_moment(mark.partition("|")[0])
        except ValueError:
            continue  # burnt already
        if ended < before:
            number = head.reserved.get(slot)
            message = f"version {number} was reserved and not published; the next publication clears it away"
            await work.find("artifacts", "notice", f"artifact {name}", message)
