"""The flow that deletes for good: rows first, then bytes, so that nothing listed is ever without its bytes.

**Why a crash is safe after each step.** One transaction deletes the row and our note and leaves a mark that says which
bytes are to go. They are deleted, then the mark. Who dies in between leaves the mark, and the next purge goes on with
it. Numbers are never used again: the counter stays.
"""

from __future__ import annotations

from holdall.artifacts.alias_state import read_aliases
from holdall.artifacts.aliasing import change_alias, check_protected
from holdall.artifacts.deleting import dropping, in_use, read_version
from holdall.artifacts.home import Home, home_of
from holdall.artifacts.latest import (
    PURGING,
    Latest,
    committed,
    counted,
    look,
    pauses,
    set_head,
    unlist,
)
from holdall.artifacts.naming import (
    LATEST,
    check_name,
    displayed,
    encode_meta_pk,
    encode_version_sk,
    number_of,
)
from holdall.artifacts.reading import serving
from holdall.artifacts.reservation import clean
from holdall.artifacts.stored import (
    CONTENT,
    HEAD,
    ROW,
    note_sk,
    noted_content,
    object_sha256,
)
from holdall.artifacts.vacating import delete_marked, finish_purge, purge_mark
from holdall.core.context import Context
from holdall.core.expressions import Compare, NotExists, Path, Remove, Set, Update, UpdateAction, Value, path
from holdall.core.frozen import dataclass, replace
from holdall.core.objects import DeleteObject
from holdall.core.requests import ConditionCheck, DeleteItem, PutItem, TransactAction, UpdateItem
from holdall.core.values import Attribute, Item
from holdall.errors import ConditionFailedError, ContentionError, OutcomeUnknown

__all__ = ["PurgeReport", "finish_purges", "purge"]


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """What is gone, or would be: versions, aliases, and how many objects with how many bytes."""

    name: str
    versions: tuple[str, ...]
    aliases: tuple[str, ...]
    objects: int
    bytes: int
    dry_run: bool


@dataclass(frozen=True, slots=True)
class _Bytes:
    """An object that is to go."""

    key: str
    etag: str
    size: int
    sha256: str | None


class _Tally:
    """What has been purged so far; the files of directories are counted when they go."""

    def __init__(self, dry_run: bool) -> None:
        self.dry_run = dry_run
        self.versions: list[str] = []
        self.aliases: list[str] = []
        self.objects = 0
        self.bytes = 0
        self.manifests: set[str] = set()

    def add(self, sk: str, size: int | None) -> None:
        self.versions.append(displayed(sk))
        if size is not None:
            self.objects += 1
            self.bytes += size


async def purge(
    context: Context,
    name: str,
    version: int | str | None = None,
    *,
    drop_aliases: bool = False,
    allow_protected: bool = False,
    dry_run: bool = False,
) -> PurgeReport:
    """Delete a version for good, or, without one, the artifact with all versions; its bytes are freed.

    What aliases serve is refused by `ArtifactInUseError`; with ``drop_aliases`` they are deleted, too. What is not
    there changes nothing. The numbers of versions are not used again. ``dry_run`` tells what would go, but for the
    files of directories: whether somebody else has them shows when they go.
    """
    check_name(name)
    home = await home_of(context)
    tally = _Tally(dry_run)
    sk = None if version is None else encode_version_sk(version)
    if not dry_run:
        await finish_purges(context, home, name)
    if sk is not None:
        await _purge_one(context, home, name, sk, tally, drop_aliases, allow_protected)
    else:
        await _purge_all(context, home, name, tally, drop_aliases, allow_protected)
    if not dry_run:
        freed = await _swept(context, home, tally)
        tally.objects += freed[0]
        tally.bytes += freed[1]
    return PurgeReport(name, tuple(tally.versions), tuple(tally.aliases), tally.objects, tally.bytes, dry_run)


async def _swept(context: Context, home: Home, tally: _Tally) -> tuple[int, int]:
    """Free the files that no directory has any more: of what was purged, and what others left when they died."""
    from holdall.artifacts.directories.holdings import sweep

    freed = await sweep(context, home, tuple(sorted(tally.manifests)))
    await sweep(context, home)
    return freed.objects, freed.bytes


async def _purge_all(
    context: Context, home: Home, name: str, tally: _Tally, drop_aliases: bool, allow_protected: bool
) -> None:
    found = await read_aliases(context, home, name)
    served = [each.alias for each in found]
    if served and not drop_aliases:
        raise in_use(name, None, served)
    for each in found:  # all are looked at before any is deleted
        check_protected(each, allow_protected)
    for alias in served:
        tally.aliases.append(alias)
        if not tally.dry_run:
            reason = "the artifact was purged"
            await change_alias(
                context,
                name,
                alias,
                lambda state: (),
                "deleted",
                allow_protected=allow_protected,
                reason=reason,
            )
    dropped: list[str] = [*tally.aliases]
    if not tally.dry_run:  # its row may be gone, or not be there yet, because somebody died
        await _purge_one(context, home, name, LATEST, tally, drop_aliases, allow_protected)
    query = home.query(name, reverse=True, limit=100)
    while True:
        page = await context.port.send(query)
        for row in page.items:
            sk = home.sk_of(row)
            if sk == LATEST or number_of(sk) is not None:
                await _purge_one(context, home, name, sk, tally, drop_aliases, allow_protected)
        if page.last_key is None:
            break
        query = replace(query, start_after=page.last_key)
    tally.aliases = list(dict.fromkeys([*dropped, *tally.aliases]))
    if not tally.dry_run:
        await _forget_notes(context, home, name, tally)
        await clean(context, home, name)
        await unlist(context, home, name)


async def _forget_notes(context: Context, home: Home, name: str, tally: _Tally) -> None:
    """Delete notes about versions whose rows are gone: versioned purges without asking us."""
    query = home.query(encode_meta_pk(name), prefix="version#")
    while True:
        page = await context.port.send(query)
        for note in page.items:
            sk = home.sk_of(note).removeprefix("version#")
            manifests = _manifests(context, sk, note)
            gone = ConditionCheck(home.table, home.key(name, sk), home.absent)
            actions: list[TransactAction] = [
                gone,
                DeleteItem(home.table, home.meta_key(name, note_sk(sk)), home.unchanged(note, "revision")),
            ]
            if manifests:
                from holdall.artifacts.directories.holdings import dropped_actions

                actions += dropped_actions(home, manifests[0])
            if await committed(context, actions):
                tally.manifests.update(manifests)
        if page.last_key is None:
            return
        query = replace(query, start_after=page.last_key)


async def _purge_one(
    context: Context,
    home: Home,
    name: str,
    sk: str,
    tally: _Tally,
    drop_aliases: bool,
    allow_protected: bool,
) -> None:
    for pause in pauses():
        row, note = await read_version(context, home, name, sk)
        if row is None:
            if sk == LATEST and note is not None and not tally.dry_run:
                await _forget_rest(context, home, name, note, tally)
            return
        found = await _object(context, home, row, note)
        size = None if found is None else found.size
        if tally.dry_run:  # `dropping` may delete aliases, so that it is not even asked
            await _foresee(context, home, name, sk, tally, drop_aliases, allow_protected)
            tally.add(sk, size)
            return
        drop = await dropping(
            context, home, name, sk, drop_aliases=drop_aliases, allow_protected=allow_protected
        )
        if drop.aliases and not drop.actions:  # they were too many for one transaction, and are gone already
            tally.aliases += drop.aliases
            continue
        manifests = _manifests(context, sk, note)
        tally.manifests.update(manifests)
        if sk != LATEST and "sha256" in row:
            await _keep_counter(context, home, name, number_of(sk) or 0)
        mark = _mark(context, home, name, sk, found)
        actions = [*_row_actions(context, home, name, sk, row, note, mark), *drop.actions]
        if manifests:
            from holdall.artifacts.directories.holdings import dropped_actions

            for each in dict.fromkeys(manifests):
                actions += dropped_actions(home, each, manifests.count(each))
        if await committed(context, actions):
            await drop.settle()
            tally.aliases += drop.aliases
            tally.add(sk, size)
            await _free(context, home, name, mark)
            return
        await context.port.sleep(pause)
    raise ContentionError(
        f"version {displayed(sk)} of {name!r:.60} is being changed by others, again and again"
    )


async def _foresee(
    context: Context,
    home: Home,
    name: str,
    sk: str,
    tally: _Tally,
    drop_aliases: bool,
    allow_protected: bool,
) -> None:
    """Which aliases would go with a version; refused as the purge would be."""
    served = serving(await read_aliases(context, home, name), sk)
    if served and not drop_aliases:
        raise in_use(name, sk, [each.alias for each in served])
    for each in served:
        check_protected(each, allow_protected)
        if each.alias not in tally.aliases:
            tally.aliases.append(each.alias)


async def _forget_rest(context: Context, home: Home, name: str, head: Item, tally: _Tally) -> None:
    """Where there is no LATEST: finish a purge of it that was begun, and uncount what is still counted for it."""
    if PURGING in head:
        await finish_purge(context, home, name, head)
    while True:
        manifests, _, marks = counted(context, head, None, None)
        if not manifests and not marks:
            return
        from holdall.artifacts.directories.holdings import dropped_actions

        said = {"revision": {"S": context.port.new_id()}}
        latest = Latest(name, None, head, None)
        actions: list[TransactAction] = [set_head(home, latest, said, removed=(*marks, *CONTENT))]
        for each in dict.fromkeys(manifests):
            actions += dropped_actions(home, each, manifests.count(each))
        if not await committed(context, actions):
            return  # somebody has just put it
        tally.manifests.update(manifests)
        now = (await context.port.send(home.get(encode_meta_pk(name), HEAD))).item
        if now is None:
            return
        head = now


def _manifests(context: Context, sk: str, note: Item | None) -> list[str]:
    """The manifests that are counted for a version; for LATEST also those of puts that were never finished."""
    if sk == LATEST:
        return counted(context, note, None, None)[0]
    # only what we noted was counted: versioned publishes a directory without counting it
    return [] if note is None or "manifest" not in note else [str(note["manifest"]["S"])]


async def _object(context: Context, home: Home, row: Item, note: Item | None) -> _Bytes | None:
    """The object of a version, whatever is known of it; None when there is none."""
    content = noted_content(row, note)
    if content is not None:
        return _Bytes(content.key, content.etag, content.size, content.sha256)
    info = await look(context, home, home.object_key(home.pk_of(row), home.sk_of(row)))
    return None if info is None else _Bytes(info.key, info.etag, info.size, object_sha256(info))


def _row_actions(
    context: Context, home: Home, name: str, sk: str, row: Item, note: Item | None, mark: Item
) -> list[TransactAction]:
    """Delete the row and what we know of it, and leave the mark of the bytes that are to go."""
    unchanged = home.unchanged(note or {}, "revision", "served_by", "referred")
    actions: list[TransactAction] = [DeleteItem(home.table, home.key(name, sk), home.unchanged(row, *ROW))]
    if sk != LATEST:
        actions.append(DeleteItem(home.table, home.meta_key(name, note_sk(sk)), unchanged))
        actions.append(PutItem(home.table, mark))
        return actions
    stale = counted(context, note, None, None)[2]
    gone = (
        each for each in (*CONTENT, "deleted_at", "served_by", *stale) if note is not None and each in note
    )
    steps: list[UpdateAction] = [Remove(path(each)) for each in gone]
    steps.append(Set(path("revision"), Value({"S": context.port.new_id()})))
    steps += [Set(path(each), Value(value)) for each, value in mark.items()]
    actions.append(UpdateItem(home.table, home.meta_key(name, HEAD), Update(tuple(steps)), unchanged))
    return actions


def _mark(context: Context, home: Home, name: str, sk: str, found: _Bytes | None) -> dict[str, Attribute]:
    """What says which bytes are to go: an item, or of LATEST an attribute of the head."""
    if sk == LATEST:
        return {} if found is None else {PURGING: purge_mark(context, found.etag, found.sha256)}
    return {
        **home.meta_key(name, f"purge#{sk}"),
        "_type": {"S": "holdall.ArtifactPurge"},
        "key": {"S": home.object_key(name, sk) if found is None else found.key},
    }


async def _keep_counter(context: Context, home: Home, name: str, number: int, *, again: bool = False) -> None:
    """See that the counter is at least this: versioned keeps none, and the row that shows the number goes."""
    counter = Path(("counter",))
    below = NotExists(counter) | Compare("<", counter, Value({"N": str(number)}))
    update = UpdateItem(
        home.table,
        home.meta_key(name, HEAD),
        Update((Set(counter, Value({"N": str(number)})),)),
        below,
    )
    try:
        await context.port.send(update)
    except ConditionFailedError:
        return
    except OutcomeUnknown:
        if again:
            raise
        await _keep_counter(context, home, name, number, again=True)  # done twice is done once


# --- bytes ------------------------------------------------------------------------------------------------


async def _free(context: Context, home: Home, name: str, mark: Item) -> None:
    """Delete the bytes that a mark of our own names."""
    if PURGING in mark:
        await delete_marked(context, home, name, mark[PURGING])
    elif mark:
        await _finish(context, home, name, mark)


async def finish_purges(context: Context, home: Home, name: str) -> int:
    """Go on with what others have begun to purge, and left; gives how many versions those were."""
    query = home.query(encode_meta_pk(name), prefix="purge#")
    finished = 0
    while True:
        page = await context.port.send(query)
        for mark in page.items:
            await _finish(context, home, name, mark)
            finished += 1
        if page.last_key is None:
            return finished
        query = replace(query, start_after=page.last_key)


async def _finish(context: Context, home: Home, name: str, mark: Item) -> None:
    """Delete the bytes that a mark names, then the mark; not those of a row that versioned has made since."""
    sk = home.sk_of(mark).removeprefix("purge#")
    if (await context.port.send(home.get(name, sk))).item is None:
        await context.port.send(DeleteObject(home.service, mark["key"]["S"]))
    await committed(context, (DeleteItem(home.table, home.meta_key(name, home.sk_of(mark))),))
