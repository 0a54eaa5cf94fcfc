"""LATEST: the one version that changes, kept in two places that have to agree.

The object is the truth; its metadata says what is in it. The row, which everybody lists, and our head beside it are
brought in line with it, by whoever finds that they are not (`settle`). Why that is safe wherever anybody stops, and
however many are at it:

1. The row and the head are read *before* the object. They are written only if both are still what was read.
2. So of two who write at once one has to look again; and whoever has put an object looks at the row after it.
3. Therefore the last object that was put is seen by somebody who then writes the row. If that one dies in between,
   the row is old, and the next to look finds so and puts it right.

A directory's files are counted for it before its manifest is put (``next|…`` on the head), so that there is never a
manifest whose files nobody holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from holdall.artifacts.home import Home
from holdall.artifacts.naming import LATEST, encode_meta_pk
from holdall.artifacts.stored import (
    CONTENT,
    HEAD,
    ROW,
    Content,
    content_attributes,
    content_of,
    is_live,
    moment_of,
    noted_content,
    row_item,
)
from holdall.core.context import Context
from holdall.core.expressions import Remove, Set, Update, UpdateAction, Value, path
from holdall.core.frozen import dataclass
from holdall.core.objects import GetTags, HeadObject, ObjectInfo
from holdall.core.requests import (
    BatchGet,
    ConditionCheck,
    DeleteItem,
    PutItem,
    TransactAction,
    TransactWrite,
    UpdateItem,
)
from holdall.core.values import Attribute, Item
from holdall.errors import (
    ConfigurationError,
    ContentionError,
    IntegrityError,
    ObjectNotFoundError,
    TransactionCanceledError,
)
from holdall.tables.record import fetch

if TYPE_CHECKING:
    from holdall.artifacts.directories.holdings import Hold

__all__ = [
    "DIRECTORY",
    "Latest",
    "committed",
    "look",
    "pauses",
    "put_right",
    "read_latest",
    "set_head",
    "settle",
    "unlist",
]

DIRECTORY = "holdall#Artifacts"
"""The partition that lists the names of all artifacts."""

NEXT = "next|"
PURGING = "purging"
LISTED = "listed"
"""That the name is in the list of all names."""

PUBLISHED = "published"
"""The number that was published last: another after every publish."""

_PAUSES = tuple(min(0.01 * 2**turn, 1.0) for turn in range(12))
_STALE = timedelta(days=1)
_MOST_GONE = 20


@dataclass(frozen=True, slots=True)
class Latest:
    """LATEST as the table has it; ``content`` is what is known of it, None when the head does not say."""

    name: str
    row: Item | None
    head: Item | None
    content: Content | None

    @property
    def purged(self) -> bool:
        """Whether it was purged, and its object perhaps not deleted yet; it is nothing to learn from any more."""
        return self.row is None and self.head is not None and PURGING in self.head

    @property
    def live(self) -> bool:
        """Whether it is there, and not deleted."""
        return is_live(self.row)


async def read_latest(context: Context, home: Home, name: str) -> Latest:
    """The row and the head, as they are now."""
    reads = (home.get(name, LATEST), home.get(encode_meta_pk(name), HEAD))
    row, head = (await context.port.send(BatchGet(reads))).items
    return Latest(name, row, head, noted_content(row, head))


async def look(context: Context, home: Home, key: str) -> ObjectInfo | None:
    """An object without its bytes; None when there is none."""
    try:
        return await context.port.send(HeadObject(home.service, key))
    except ObjectNotFoundError:
        return None


async def settle(
    context: Context, home: Home, name: str, hold: Hold | None = None
) -> tuple[Latest, ObjectInfo | None]:
    """LATEST with the row and the head in line with the object; and the object, None when there is none."""
    for pause in pauses():
        latest = await read_latest(context, home, name)
        check_home(home, latest)
        info = None if latest.purged else await look(context, home, home.object_key(name, LATEST))
        if info is None or in_line(latest, info):
            return latest, info
        found = await put_right(context, home, latest, info, hold=hold)
        if found is not None:
            return found, info
        now = await read_latest(context, home, name)
        if (now.row, now.head) == (latest.row, latest.head):  # so that it is not others who got in between
            content = content_of(info, None)
            manifest = None if content is None else content.manifest
            if not await is_counted(context, home, manifest):
                raise uncounted(name, manifest)
        await context.port.sleep(pause)
    raise _busy(name)


async def is_counted(context: Context, home: Home, manifest: str | None) -> bool:
    """Whether a directory's files are counted for somebody; what is no directory has none to count."""
    if manifest is None:
        return True
    from holdall.artifacts.directories.record import ManifestRecord

    return (await fetch(context.port, ManifestRecord.at(home, manifest))).refs > 0


def uncounted(name: str, manifest: str | None) -> IntegrityError:
    """A directory came from elsewhere, without the counts of its files."""
    return IntegrityError(
        f"the directory {name!r:.60}, of the manifest {manifest}, has files that this table does not know",
        hint="put the directory again",
    )


def in_line(latest: Latest, info: ObjectInfo) -> bool:
    """Whether the row says what the object is, and the head, unless versioned has written since, means that one."""
    content = content_of(info, None)
    if content is None:
        return True  # nobody's, so that there is nothing to learn from it
    if latest.row is None or latest.row.get("sha256", {}).get("S") != content.sha256:
        return False
    known = latest.content
    if known is None:
        return True
    # versioned may have put the same bytes anew, with another type or metadata, within the second that the row has
    return (known.etag, known.content_type, known.metadata or {}) == (
        content.etag,
        content.content_type,
        content.metadata or {},
    )


async def put_right(
    context: Context,
    home: Home,
    latest: Latest,
    info: ObjectInfo,
    *,
    content: Content | None = None,
    hold: Hold | None = None,
) -> Latest | None:
    """Write the row and the head of an object; None when somebody else has written either meanwhile."""
    if content is None:
        content = content_of(info, await tags_of(context, home, info.key))
        assert content is not None
    name = latest.name
    row = row_item(home, name, LATEST, info.modified, content.sha256)
    head: dict[str, Attribute] = {
        **content_attributes(content, row),
        "revision": {"S": context.port.new_id()},
        LISTED: {"BOOL": True},
    }
    drops, adds, gone = counted(context, latest.head, content.manifest, hold)
    actions: list[TransactAction] = [
        PutItem(home.table, row, home.unchanged(latest.row, *ROW)),
        set_head(home, latest, head, removed=(*_outdated(head), *gone)),
    ]
    if LISTED not in (latest.head or {}):
        actions.append(PutItem(home.table, directory_item(home, name)))
    if drops or adds:
        from holdall.artifacts.directories.holdings import added_actions, dropped_actions

        for manifest in adds:
            actions += added_actions(home, manifest)
        for manifest in dict.fromkeys(drops):
            actions += dropped_actions(home, manifest, drops.count(manifest))
    if not await committed(context, actions):
        return None
    if drops:
        from holdall.artifacts.directories.holdings import sweep

        await sweep(context, home, tuple(drops))  # who dies before leaves marks, which a later purge finds
    kept = {
        each: value for each, value in (latest.head or {}).items() if each not in (*_outdated(head), *gone)
    }
    return Latest(name, row, {**kept, **head}, content)


def _outdated(head: Mapping[str, Attribute]) -> list[str]:
    """What a head no longer says once it has a new content."""
    return [*(each for each in CONTENT if each not in head), "deleted_at", PURGING]


def counted(
    context: Context, head: Item | None, manifest: str | None, hold: Hold | None
) -> tuple[list[str], list[str], list[str]]:
    """What a new content means for the manifests that are counted for LATEST: dropped, each as often as it was counted,
    and added; and marks that go."""
    if head is None:
        return [], [manifest] if manifest is not None else [], []
    old = head["manifest"]["S"] if "manifest" in head else None
    coming = {each: head[each]["S"] for each in head if each.startswith(NEXT)}
    now = context.port.now()
    gone = [
        each
        for each, value in coming.items()
        if (hold is not None and each.endswith(hold.id))
        or (now - moment_of(each.split("|")[1]) > _STALE and value != manifest)
    ]
    gone.sort(key=lambda each: hold is None or not each.endswith(hold.id))
    del gone[_MOST_GONE:]  # a transaction has room for so many: the others another time
    dropped = [*([old] if old is not None and old != manifest else [])]
    added = [manifest] if manifest is not None and manifest != old else []
    for each in gone:
        value = coming[each]
        if value in added:
            added.remove(value)  # it was counted for what was coming, which is now here
        else:
            dropped.append(value)
    return dropped, added, gone


def set_head(
    home: Home, latest: Latest, said: Mapping[str, Attribute], *, removed: Sequence[str] = ()
) -> UpdateItem:
    """Change the head, if it is still the one that was read."""
    steps: list[UpdateAction] = [Set(path(each), Value(value)) for each, value in said.items()]
    steps += [Remove(path(each)) for each in dict.fromkeys(removed)]
    if latest.head is None:
        steps.append(Set(path("_type"), Value({"S": "holdall.Artifact"})))
    return UpdateItem(
        home.table,
        home.meta_key(latest.name, HEAD),
        Update(tuple(steps)),
        home.unchanged(latest.head or {}, "revision", LISTED),
    )


def directory_item(home: Home, name: str) -> dict[str, Attribute]:
    """The item by which an artifact is listed."""
    return {**home.key(DIRECTORY, name), "_type": {"S": "holdall.ArtifactName"}}


async def unlist(context: Context, home: Home, name: str) -> bool:
    """Take a name from the list if nothing is under it, and nobody has put or published it while we looked."""
    head = (await context.port.send(home.get(encode_meta_pk(name), HEAD))).item
    if (await context.port.send(home.query(name, limit=1))).items:
        return False
    actions: list[TransactAction] = [
        ConditionCheck(home.table, home.key(name, LATEST), home.absent),
        DeleteItem(home.table, home.key(DIRECTORY, name)),
    ]
    key = home.meta_key(name, HEAD)
    if head is None:
        actions.append(ConditionCheck(home.table, key, home.absent))
    else:
        unlisted = Update((Remove(path(LISTED)),))
        actions.append(UpdateItem(home.table, key, unlisted, home.unchanged(head, PUBLISHED)))
    return await committed(context, actions)


async def tags_of(context: Context, home: Home, key: str) -> dict[str, str]:
    """The tags of an object; none of one that is gone."""
    try:
        found = await context.port.send(GetTags(home.service, key))
    except ObjectNotFoundError:
        return {}
    return dict(found)


def check_home(home: Home, latest: Latest) -> None:
    """Refuse to work on an artifact whose LATEST is elsewhere: its keys have another prefix or suffix."""
    content, expected = latest.content, home.object_key(latest.name, LATEST)
    if content is not None and content.key != expected:
        raise ConfigurationError(
            f"the artifact {latest.name!r:.60} is kept under {content.key!r:.80}, not under {expected!r:.80}",
            hint="open the database with the prefix and suffix it was made with: artifacts=ArtifactSettings(...)",
        )


async def committed(context: Context, actions: Sequence[TransactAction]) -> bool:
    """Whether a transaction went through; not when something was other than it demanded, or others held it."""
    try:
        await context.port.send(TransactWrite(tuple(actions), context.port.new_id()))
    except TransactionCanceledError as error:
        if any(reason.code == "ValidationError" for reason in error.reasons):
            raise  # an item would be too large, say: no other attempt would end otherwise
        return False
    return True


def pauses() -> Sequence[float]:
    """How long to wait after each time that others got in between, before giving up."""
    return _PAUSES


def _busy(name: str) -> ContentionError:
    return ContentionError(f"the artifact {name!r:.60} is being changed by others, again and again")
