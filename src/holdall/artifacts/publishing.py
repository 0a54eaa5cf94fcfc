"""The flow that publishes LATEST as the next version, which never changes.

**The steps, and why a crash is safe after each.**

1. A number is reserved: one conditional update of the head raises the counter and leaves a mark with the number and
   how long it is good. After a crash the number is burnt: nobody gets it again.
2. The object of LATEST is copied to that number's key, only if it is still the one that was looked at and nothing is
   there. After a crash the copy is litter; the mark says where.
3. One transaction writes the row and our note, and takes the mark away. It fails when the mark is gone.

`reservation` says how numbers are reserved, and how what the dead leave is cleaned.
"""

from __future__ import annotations

from base64 import b64encode

from holdall.artifacts.artifact import Artifact
from holdall.artifacts.events import announce
from holdall.artifacts.expectations import Expected, newest_rows
from holdall.artifacts.home import Home, home_of
from holdall.artifacts.latest import (
    LISTED,
    Latest,
    check_home,
    committed,
    directory_item,
    is_counted,
    look,
    pauses,
    read_latest,
    settle,
    tags_of,
    uncounted,
)
from holdall.artifacts.naming import (
    LATEST,
    check_name,
    encode_meta_pk,
    number_of,
)
from holdall.artifacts.reading import missing
from holdall.artifacts.reservation import Reservation, clean_old, given_up, is_held, prolonged, reserve
from holdall.artifacts.stored import (
    Content,
    artifact_of,
    content_attributes,
    content_of,
    is_live,
    note_sk,
    noted_content,
    object_sha256,
    row_item,
    served_by,
    user_metadata,
)
from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.objects import CopyObject, DeleteObject, ObjectInfo
from holdall.core.requests import GetItem, PutItem, TransactAction
from holdall.core.telemetry import warn
from holdall.core.values import Attribute, Item
from holdall.errors import (
    ArtifactChangedError,
    ContentionError,
    ObjectNotFoundError,
    PreconditionFailedError,
    ServiceError,
)
from holdall.files.mirroring import mirror

__all__ = ["publish"]


async def publish(
    context: Context,
    name: str,
    *,
    force: bool = False,
    expect_sha256: str | None = None,
    expect_version: int | str | None = None,
    expect_revision: str | None = None,
) -> Artifact:
    """Make LATEST the next version, which never changes; gives that.

    When nothing changed since the newest version, that one is given, and nothing is made, unless ``force``.
    ``expect_sha256`` and ``expect_revision`` are what LATEST has to be, ``expect_version`` the newest version (0: there
    is none yet): `ArtifactChangedError` when it is not so.
    """
    check_name(name)
    home = await home_of(context)
    expected = Expected(expect_sha256, expect_version, expect_revision).check_given()
    for pause in pauses():
        row, newest = await newest_rows(context, home, name)
        if not is_live(row) or expected.sha256 is not None or expected.revision is not None:
            row = await _revived(context, home, name)  # what is expected is of the object
        assert row is not None
        expected.check_version(name, None if newest is None else home.sk_of(newest))
        expected.check_sha256(name, row["sha256"]["S"])
        if expected.revision is not None:
            expected.check_revision(name, await read_latest(context, home, name))
        if not force and newest is not None and is_live(newest) and newest["sha256"] == row["sha256"]:
            same = await _same(context, home, name, newest)
            if same is not None:
                return same
        least = 0 if newest is None else number_of(home.sk_of(newest)) or 0
        reservation = await reserve(context, home, name, least)
        try:
            if expected.version is not None:  # others who publish from here on change the head
                _, newest = await newest_rows(context, home, name)
                expected.check_version(name, None if newest is None else home.sk_of(newest))
            expected.check_revision(name, Latest(name, row, reservation.head, None))
            published = await _published(context, home, name, row, reservation, expected)
        except ArtifactChangedError:
            await given_up(context, home, name, reservation)
            raise
        await _tidied(context, home, name, reservation.head)
        if published is not None:
            return published
        await context.port.sleep(pause)
    raise ContentionError(f"the artifact {name!r:.60} is being published by others, again and again")


async def _tidied(context: Context, home: Home, name: str, head: Item) -> None:
    """Clean up after publishers who died. Where that is not permitted, what we have published is published all the
    same."""
    try:
        await clean_old(context, home, name, head)
    except ServiceError as error:
        warn("artifacts", "what a dead publisher of %r has left could not be deleted: %s", name, error.code)


async def _revived(context: Context, home: Home, name: str) -> Item:
    """The row of LATEST after a look at the object: who put it may have died before they wrote the row."""
    latest, info = await settle(context, home, name)
    if not latest.live or info is None:
        raise missing(name, LATEST)
    assert latest.row is not None
    return latest.row


async def _same(context: Context, home: Home, name: str, newest: Item) -> Artifact | None:
    """The newest version, if LATEST is just that; not when its type, metadata or tags are others."""
    latest, info = await settle(context, home, name)
    if info is None or not latest.live:
        return None
    sk = home.sk_of(newest)
    note = (await context.port.send(home.get(encode_meta_pk(name), note_sk(sk)))).item
    ours = latest.content or content_of(info, await tags_of(context, home, info.key))
    theirs = noted_content(newest, note)
    if theirs is None:
        there = await look(context, home, home.object_key(name, sk))
        theirs = None if there is None else content_of(there, await tags_of(context, home, there.key))
    if ours is None or theirs is None or _said(ours) != _said(theirs):
        return None
    return artifact_of(home, newest, note, content=theirs, aliases=served_by(note))


def _said(content: Content) -> tuple[object, ...]:
    return content.sha256, content.content_type, content.metadata or {}, content.tags or {}


# --- the version ------------------------------------------------------------------------------------------


async def _published(
    context: Context, home: Home, name: str, row: Item, reservation: Reservation, expected: Expected
) -> Artifact | None:
    """Copy the bytes and write the row; None when the number turns out not to be ours."""
    key = home.object_key(name, reservation.sk)
    content = noted_content(row, reservation.head)
    if content is not None:
        check_home(home, Latest(name, row, reservation.head, content))
    for _ in range(len(pauses())):
        if content is None:
            content = await _looked_at(context, home, name, expected)
        reservation = await prolonged(context, home, name, reservation, content.size)
        try:
            copied = await _copied(context, home, content, key)
        except _TakenError:
            break
        if copied is not None:
            return await _written(context, home, name, reservation, content, copied, expected)
        content = None
    await given_up(context, home, name, reservation)
    return None


async def _looked_at(context: Context, home: Home, name: str, expected: Expected) -> Content:
    """LATEST's content as its object says it; refused when it is not the one that is expected."""
    latest, info = await settle(context, home, name)
    if info is None or not latest.live:
        raise missing(name, LATEST)
    content = latest.content or content_of(info, await tags_of(context, home, info.key))
    if content is None:
        raise missing(name, LATEST)
    expected.check_revision(name, latest)
    expected.check_sha256(name, content.sha256)
    return replace(content, etag=info.etag)


async def _copied(context: Context, home: Home, content: Content, key: str) -> ObjectInfo | None:
    """The copy; None when LATEST is no longer what it was, `_TakenError` when something else is under the key."""
    digest = b64encode(bytes.fromhex(content.sha256)).decode()
    # without a mark of ours: it is to be the object that versioned would have made
    copy = CopyObject(
        home.service, content.key, key, content.etag, context.port.new_id(), digest, unmarked=True
    )
    try:
        info = await context.port.send(copy)
    except (PreconditionFailedError, ObjectNotFoundError):
        found = await look(context, home, key)
        if found is None:
            return None
        if (object_sha256(found), found.size) != (content.sha256, content.size):
            raise _TakenError from None
        info = found  # the number is ours, and so is what is there: a reply was lost
    await mirror(context, home.service, key)
    return info


class _TakenError(Exception):
    """Somebody else's object is under our number: versioned asks nobody."""


async def _written(
    context: Context,
    home: Home,
    name: str,
    reservation: Reservation,
    content: Content,
    copied: ObjectInfo,
    expected: Expected,
) -> Artifact | None:
    port, sk = context.port, reservation.sk
    row = row_item(home, name, sk, copied.modified, content.sha256)
    kept = replace(
        content,
        etag=copied.etag,
        key=copied.key,
        content_type=copied.headers.content_type,
        metadata=user_metadata(copied),
    )
    note: dict[str, Attribute] = {
        **home.meta_key(name, note_sk(sk)),
        "_type": {"S": "holdall.ArtifactVersion"},
        **content_attributes(kept, row),
        "revision": {"S": port.new_id()},
    }
    event = await announce(context, "published", name, sk, content.sha256)
    listed, alone = LISTED in reservation.head, expected.version is not None
    for pause in pauses():
        actions: list[TransactAction] = [
            PutItem(home.table, row, home.absent),
            PutItem(home.table, note),
            reservation.used(home, name, alone=alone, listed=listed),
            *event.actions,
        ]
        if not listed:
            actions.append(PutItem(home.table, directory_item(home, name)))
        if content.manifest is not None:
            from holdall.artifacts.directories.holdings import added_actions

            actions += added_actions(home, content.manifest)
        if await committed(context, actions):
            await event.settle()
            return artifact_of(home, row, note)
        listed = False  # a purge may have taken the name from the list meanwhile
        there = (await port.send(home.get(name, sk))).item
        if there is not None or not await is_held(context, home, name, reservation, alone=alone):
            break
        if not await is_counted(context, home, content.manifest):
            latest = await read_latest(context, home, name)
            if latest.content is not None and latest.content.manifest == content.manifest:
                raise uncounted(name, content.manifest)
            break  # LATEST is another by now, and nobody else had those files
        await port.sleep(pause)  # only others who changed the head at the same time
    if there is None:  # so that nobody has the number: its mark was cleaned
        await port.send(DeleteObject(home.service, copied.key, copied.etag))
    elif there == row and await _is_ours(context, home, name, reservation, note):
        return artifact_of(home, row, note)
    await given_up(context, home, name, reservation)
    return None


async def _is_ours(context: Context, home: Home, name: str, reservation: Reservation, note: Item) -> bool:
    """Whether it was we who wrote a row: an earlier send may have, though its reply said nothing of it."""
    found = (
        await context.port.send(GetItem(home.table, home.meta_key(name, note_sk(reservation.sk)), True))
    ).item
    return found is not None and found.get("revision") == note["revision"]
