"""The flow that publishes LATEST as the next version, which never changes.

**The steps, and why a crash is safe after each.**

1. A number is reserved: one conditional update of the head raises the counter and leaves a mark with the number and
   how long it is good. After a crash the number is burnt: nobody gets it again.
2. The object of LATEST is copied to that number's key, only if it is still the one that was looked at and nothing is
   there. After a crash the copy is litter; the mark says where.
3. One transaction writes the row and our note, and takes the mark away. It fails when the mark is gone.

Marks whose time is over are cleaned by the next who publishes: the mark is first made one of a burnt number, so that
whoever reserved it, if they are only slow, can no longer write the row; then the litter is deleted, then the mark.
"""

from __future__ import annotations

from datetime import timedelta

from holdall.artifacts.artifact import Artifact
from holdall.artifacts.events import announce
from holdall.artifacts.expectations import Expected, newest_rows
from holdall.artifacts.home import Home, home_of
from holdall.artifacts.latest import (
    Latest,
    check_home,
    committed,
    directory_item,
    look,
    pauses,
    read_latest,
    settle,
    tags_of,
)
from holdall.artifacts.naming import (
    LAST_NUMBER,
    LATEST,
    check_name,
    encode_meta_pk,
    encode_version_sk,
    number_of,
)
from holdall.artifacts.reading import missing
from holdall.artifacts.stored import (
    HEAD,
    Content,
    artifact_of,
    content_attributes,
    content_of,
    is_live,
    moment_of,
    moment_text,
    note_sk,
    noted_content,
    row_item,
    served_by,
)
from holdall.core.context import Context
from holdall.core.expressions import (
    Compare,
    Exists,
    IfNotExists,
    NotExists,
    Path,
    Plus,
    Remove,
    Set,
    Update,
    Value,
    path,
)
from holdall.core.frozen import dataclass, replace
from holdall.core.objects import CopyObject, DeleteObject, ObjectInfo
from holdall.core.requests import GetItem, PutItem, TransactAction, UpdateItem
from holdall.core.values import Attribute, Item
from holdall.errors import (
    ConditionFailedError,
    ContentionError,
    ObjectNotFoundError,
    OutcomeUnknown,
    PreconditionFailedError,
    VersionsExhaustedError,
)
from holdall.files.mirroring import mirror

__all__ = ["clean", "publish"]

RESERVED = "reserved|"
BURNT = "burnt|"
_COUNTER = Path(("counter",))
_PATIENCE = 60.0
_SLOWEST = 10_000_000
"""Bytes in a second: a copy that is slower than that may lose its reservation, and then has to be made anew."""


@dataclass(frozen=True, slots=True)
class _Reservation:
    """A number that is ours; ``head`` is the head just after."""

    mark: str
    number: int
    head: Item

    @property
    def sk(self) -> str:
        return encode_version_sk(self.number)


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
    expected = Expected(expect_sha256, expect_version, expect_revision)
    for pause in pauses():
        row, newest = await newest_rows(context, home, name)
        if not is_live(row):
            row = await _revived(context, home, name)
        assert row is not None
        expected.check_version(name, None if newest is None else home.sk_of(newest))
        expected.check_sha256(name, row["sha256"]["S"])
        if expected.revision is not None:
            expected.check_revision(name, await read_latest(context, home, name))
        if not force and newest is not None and is_live(newest) and newest["sha256"] == row["sha256"]:
            same = await _same(context, home, name, newest)
            if same is not None:
                return same
        reservation = await _reserved(context, home, name, newest)
        published = await _published(context, home, name, row, reservation, expected)
        await _clean_old(context, home, name, reservation.head)
        if published is not None:
            return published
        await context.port.sleep(pause)
    raise ContentionError(f"the artifact {name!r:.60} is being published by others, again and again")


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


# --- the number -------------------------------------------------------------------------------------------


async def _reserved(context: Context, home: Home, name: str, newest: Item | None) -> _Reservation:
    """The next number: one above the counter, or above the newest row where versioned has published since."""
    port = context.port
    least = 0 if newest is None else number_of(home.sk_of(newest)) or 0
    until = port.now() + timedelta(seconds=_PATIENCE)
    mark = f"{RESERVED}{moment_text(until)}|{port.new_id()}"
    known = IfNotExists(_COUNTER, Value({"N": str(least)}))
    following = Plus(known, Value({"N": "1"}))
    enough = Compare(">=", _COUNTER, Value({"N": str(least)}))
    ahead = UpdateItem(
        home.table,
        home.meta_key(name, HEAD),
        Update((Set(_COUNTER, following), Set(path(mark), following))),
        (NotExists(_COUNTER) | enough) & _below_last(least),
        returns="new",
        item_on_failure=True,
    )
    above = Value({"N": str(least + 1)})
    behind = replace(
        ahead,
        update=Update((Set(_COUNTER, above), Set(path(mark), above))),
        condition=Compare("<", _COUNTER, Value({"N": str(least)})),
    )
    for _ in range(len(pauses())):
        try:
            head = (await port.send(ahead)).item
        except OutcomeUnknown:
            continue  # a number may be burnt, and nobody has it
        except ConditionFailedError as error:
            if least >= LAST_NUMBER or int((error.item or {}).get("counter", {"N": "0"})["N"]) >= LAST_NUMBER:
                raise VersionsExhaustedError(
                    f"the artifact {name!r:.60} has had {LAST_NUMBER:,} versions",
                    hint="go on under another name",
                ) from None
            ahead, behind = behind, ahead
            continue
        assert head is not None
        return _Reservation(mark, int(head[mark]["N"]), head)
    raise ContentionError(f"no version of {name!r:.60} could be reserved: others did, again and again")


def _below_last(least: int) -> Compare:
    """That there is a number left: the counter, if there is one, is below the last."""
    if least >= LAST_NUMBER:
        return Compare("<", _COUNTER, Value({"N": "0"}))
    return Compare("<>", _COUNTER, Value({"N": str(LAST_NUMBER)}))


# --- the version ------------------------------------------------------------------------------------------


async def _published(
    context: Context, home: Home, name: str, row: Item, reservation: _Reservation, expected: Expected
) -> Artifact | None:
    """Copy the bytes and write the row; None when the number turns out not to be ours."""
    key = home.object_key(name, reservation.sk)
    content = noted_content(row, reservation.head)
    adopted = content is None
    if content is not None:
        check_home(home, Latest(name, row, reservation.head, content))
    for _ in range(len(pauses())):
        if content is None:
            content = await _looked_at(context, home, name)
            expected.check_sha256(name, content.sha256)
        reservation = await _prolonged(context, home, name, reservation, content.size)
        copied = await _copied(context, home, content, key)
        if copied is not None:
            return await _written(context, home, name, reservation, content, copied, adopted)
        if await look(context, home, key) is not None:
            break  # somebody else's: versioned asks nobody
        content = None
    await _given_up(context, home, name, reservation)
    return None


async def _prolonged(
    context: Context, home: Home, name: str, reservation: _Reservation, size: int
) -> _Reservation:
    """The reservation, good for longer when there is much to copy."""
    needed = 2 * size / _SLOWEST
    if needed < _PATIENCE:
        return reservation
    until = context.port.now() + timedelta(seconds=needed)
    old, id = path(reservation.mark), reservation.mark.split("|")[2]
    longer = replace(reservation, mark=f"{RESERVED}{moment_text(until)}|{id}")
    if longer.mark == reservation.mark:
        return reservation
    steps = (Remove(old), Set(path(longer.mark), Value({"N": str(reservation.number)})))
    change = UpdateItem(home.table, home.meta_key(name, HEAD), Update(steps), Exists(old))
    return longer if await committed(context, (change,)) else reservation


async def _looked_at(context: Context, home: Home, name: str) -> Content:
    """LATEST's content as its object says it."""
    latest, info = await settle(context, home, name)
    if info is None or not latest.live:
        raise missing(name, LATEST)
    content = latest.content or content_of(info, await tags_of(context, home, info.key))
    if content is None:
        raise missing(name, LATEST)
    return replace(content, etag=info.etag)


async def _copied(context: Context, home: Home, content: Content, key: str) -> ObjectInfo | None:
    """The copy; None when LATEST is no longer what it was, or something is under the key."""
    copy = CopyObject(home.service, content.key, key, content.etag, context.port.new_id())
    try:
        info = await context.port.send(copy)
    except (PreconditionFailedError, ObjectNotFoundError):
        return None
    await mirror(context, home.service, key)
    return info


async def _written(
    context: Context,
    home: Home,
    name: str,
    reservation: _Reservation,
    content: Content,
    copied: ObjectInfo,
    adopted: bool,
) -> Artifact | None:
    port, sk = context.port, reservation.sk
    row = row_item(home, name, sk, copied.modified, content.sha256)
    kept = replace(content, etag=copied.etag, key=copied.key)
    note: dict[str, Attribute] = {
        **home.meta_key(name, note_sk(sk)),
        "_type": {"S": "holdall.ArtifactVersion"},
        **content_attributes(kept, row),
        "published_at": {"S": moment_text(port.now())},
        "revision": {"S": port.new_id()},
    }
    event = await announce(context, "published", name, sk, content.sha256)
    actions: list[TransactAction] = [
        PutItem(home.table, row, home.absent),
        PutItem(home.table, note),
        UpdateItem(
            home.table,
            home.meta_key(name, HEAD),
            Update((Remove(path(reservation.mark)),)),
            Exists(path(reservation.mark)),
        ),
        *event.actions,
    ]
    if adopted:
        actions.append(PutItem(home.table, directory_item(home, name)))
    if content.manifest is not None:
        from holdall.artifacts.directories.holdings import added_actions

        actions += added_actions(home, content.manifest)
    if await committed(context, actions):
        await event.settle()
        return artifact_of(home, row, note)
    there = (await port.send(home.get(name, sk))).item
    if there is None:  # so that it is nobody's, and its mark was cleaned, or is in the way of no one
        await port.send(DeleteObject(home.service, copied.key, copied.etag))
    elif there == row and await _is_ours(context, home, name, reservation, note):
        return artifact_of(home, row, note)
    await _given_up(context, home, name, reservation)
    return None


async def _is_ours(context: Context, home: Home, name: str, reservation: _Reservation, note: Item) -> bool:
    """Whether it was we who wrote a row: an earlier send may have, though its reply said nothing of it."""
    found = (
        await context.port.send(GetItem(home.table, home.meta_key(name, note_sk(reservation.sk)), True))
    ).item
    return found is not None and found.get("revision") == note["revision"]


async def _given_up(context: Context, home: Home, name: str, reservation: _Reservation) -> None:
    """Take the mark away: the number stays burnt."""
    mark = path(reservation.mark)
    update = UpdateItem(home.table, home.meta_key(name, HEAD), Update((Remove(mark),)), Exists(mark))
    await committed(context, (update,))


# --- cleaning ---------------------------------------------------------------------------------------------


async def clean(context: Context, home: Home, name: str) -> int:
    """Delete what publishers who died have left; gives how many numbers those were."""
    head = (await context.port.send(home.get(encode_meta_pk(name), HEAD))).item
    return 0 if head is None else await _clean_old(context, home, name, head)


async def _clean_old(context: Context, home: Home, name: str, head: Item) -> int:
    now = context.port.now()
    cleaned = 0
    for mark in [each for each in head if each.startswith((RESERVED, BURNT))]:
        number = head[mark]["N"]
        if mark.startswith(RESERVED):
            if moment_of(mark.split("|")[1]) > now or not await _burn(context, home, name, mark, number):
                continue
            mark = BURNT + mark.split("|")[2]
        await _clear(context, home, name, mark, number)
        cleaned += 1
    return cleaned


async def _burn(context: Context, home: Home, name: str, mark: str, number: str) -> bool:
    """From here on whoever reserved the number cannot write its row."""
    burnt = path(BURNT + mark.split("|")[2])
    update = Update((Remove(path(mark)), Set(burnt, Value({"N": number}))))
    change = UpdateItem(home.table, home.meta_key(name, HEAD), update, Exists(path(mark)))
    return await committed(context, (change,))


async def _clear(context: Context, home: Home, name: str, mark: str, number: str) -> None:
    """Delete the bytes under a burnt number, unless versioned has made it a version; then the mark."""
    sk = encode_version_sk(number)
    if (await context.port.send(home.get(name, sk))).item is None:
        await context.port.send(DeleteObject(home.service, home.object_key(name, sk)))
    update = Update((Remove(path(mark)),))
    change = UpdateItem(home.table, home.meta_key(name, HEAD), update, Exists(path(mark)))
    await committed(context, (change,))
