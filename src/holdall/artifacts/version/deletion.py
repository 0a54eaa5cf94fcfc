"""Flows that delete versions and restore them. The bytes stay until a version is purged."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from holdall.artifacts.alias.alias import Alias, Arms
from holdall.artifacts.alias.flow import change_alias, check_protected, note_service, set_arms
from holdall.artifacts.alias.history import AliasChange
from holdall.artifacts.alias.state import AliasState, read_aliases, read_state
from holdall.artifacts.event import announce
from holdall.artifacts.home import Home, find_home
from holdall.artifacts.name import LATEST, check_name, display_version, encode_version_sk
from holdall.artifacts.record import ROW, Note, VersionRow
from holdall.artifacts.version.artifact import Artifact
from holdall.artifacts.version.content import find_content, revision_of
from holdall.artifacts.version.latest import settle
from holdall.artifacts.version.lookup import explain_missing, find_serving, get
from holdall.core.context import Context
from holdall.core.expressions import UpdateAction
from holdall.errors import ArtifactChangedError, ArtifactInUseError, ArtifactNotFoundError
from holdall.files.transfer import find_object
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit
from holdall.tables.record import fetch

_TOGETHER = 8
"""The most aliases that are deleted in one transaction with their version."""


async def delete(
    context: Context,
    name: str,
    version: int | str | None = None,
    *,
    drop_aliases: bool = False,
    allow_protected: bool = False,
    expect_revision: str | None = None,
) -> bool:
    """Delete a version, LATEST by default; it can be restored until it is purged.

    Return False if it does not exist or is already deleted. If aliases serve it, `ArtifactInUseError` names them; with
    ``drop_aliases=True`` they are deleted with it. With ``expect_revision``, the version is deleted only if it still
    has that revision; otherwise `ArtifactChangedError`.
    """
    check_name(name)
    sk = encode_version_sk(version)
    home = await find_home(context)

    async def body(change: Change) -> bool:
        row, note = await read_version(context, home, name, sk)
        if not row.is_live:
            return False
        found = revision_of(row, note)
        if expect_revision is not None and expect_revision != found:
            raise ArtifactChangedError(
                f"{describe_version(name, sk)} has revision {found}, not {expect_revision:.40}",
                hint="it has changed since you read it: read it again, then decide",
            )
        await drop_aliases_of(change, home, name, sk, drop_aliases, allow_protected)
        _mark_row(change, row, note, True, Note.deleted_at.set(context.port.now()))
        announce(change, "deleted", name, sk, row.sha256)
        return True

    return await commit(context, body, describe_version(name, sk))


async def restore(context: Context, name: str, version: int | str | None = None) -> Artifact:
    """Restore a deleted version, LATEST by default, and return it; a version that is not deleted stays as it is."""
    check_name(name)
    sk = encode_version_sk(version)
    home = await find_home(context)

    async def body(change: Change) -> None:
        row, note = await read_version(context, home, name, sk)
        if not row.is_version:
            raise explain_missing(name, sk)
        if row.is_live:
            return
        content = find_content(row, note)
        if (
            await find_object(
                context, home.service, home.object_key(name, sk) if content is None else content.key
            )
            is None
        ):
            raise ArtifactNotFoundError(
                f"{describe_version(name, sk)} cannot be restored: its bytes are missing from the file service"
            )
        _mark_row(change, row, note, False, Note.deleted_at.remove())
        announce(change, "restored", name, sk, row.sha256)

    await commit(context, body, describe_version(name, sk))
    return await get(context, name, version)


async def read_version(context: Context, home: Home, name: str, sk: str) -> tuple[VersionRow, Note]:
    """Read the row and the note of a version; those of LATEST are first brought in line with its object."""
    if sk == LATEST:
        latest, _ = await settle(context, home, name)
        return latest.row, latest.head
    return await fetch(context.port, VersionRow.at(home, name, sk), Note.at(home, name, sk))


def _mark_row(change: Change, row: VersionRow, note: Note, deleted: bool, update: UpdateAction) -> None:
    """Mark a row as deleted or not deleted, if no process has changed it, and no known alias serves it."""
    change.update(row, VersionRow.is_deleted.set(deleted), expect=[row.same(*ROW)])
    free = (Note.served_by.remove(),) if note.served_by else ()
    same = note.same(Note.revision, Note.served_by, Note.referred, or_created=True)
    revision = Note.revision.set(change.context.port.new_id())
    change.update(note, update, revision, *free, expect=[same])


def describe_version(name: str, sk: str) -> str:
    """Describe a version in messages."""
    return f"version {display_version(sk)} of {name!r:.60}"


# --- aliases that are deleted with a version --------------------------------------------------------------


async def drop_aliases_of(
    change: Change, home: Home, name: str, sk: str, drop_aliases: bool, allow_protected: bool
) -> list[str]:
    """Delete the aliases that serve a version, and return their names; `ArtifactInUseError` unless ``drop_aliases``.

    If there are too many for one transaction, they are deleted one by one, before the version. This changes the
    version's note, so the change is then refused, and the next attempt finds no aliases.
    """
    context, names = change.context, []
    served = find_serving(await read_aliases(context, home, name), sk)
    check_droppable(served, describe_version(name, sk), drop_aliases, allow_protected)
    reason = f"version {display_version(sk)} was deleted"
    if len(served) > _TOGETHER:
        return await _drop_one_by_one(context, name, sk, served, allow_protected, reason)
    elsewhere: dict[str, list[str]] = {}
    for alias in served:
        state = await read_state(context, home, name, alias.alias)
        arms = dict(state.arms)
        if sk not in arms:
            continue  # it has just been pointed elsewhere
        check_protected(state, allow_protected)
        names.append(state.alias)
        entry = AliasChange(state.note.changes + 1, context.port.now(), "deleted", None, None, reason, None)
        set_arms(change, home, state, (), entry)
        before = {display_version(arm): weight for arm, weight in arms.items()}
        announce(change, "alias_moved", name, alias=state.alias, before=before)
        for other in arms:
            if other != sk:
                elsewhere.setdefault(other, []).append(state.alias)
    for other, gone in elsewhere.items():
        note_service(change, Note.at(home, name, other), Note.served_by.discard(gone))
    return names


async def _drop_one_by_one(
    context: Context, name: str, sk: str, served: Sequence[Alias], allow_protected: bool, reason: str
) -> list[str]:
    names = []

    def decide(state: AliasState) -> Arms:
        if sk not in dict(state.arms):
            raise _Elsewhere
        return ()

    for each in served:
        with suppress(_Elsewhere):
            await change_alias(
                context, name, each.alias, decide, "deleted", allow_protected=allow_protected, reason=reason
            )
            names.append(each.alias)
    return names


class _Elsewhere(Exception):
    """An alias has just been pointed elsewhere."""


def check_droppable(served: Sequence[Alias], what: str, drop_aliases: bool, allow_protected: bool) -> None:
    """Raise if aliases cannot be deleted with what they serve: they are protected, or the caller did not allow it."""
    if served and not drop_aliases:
        aliases = [each.alias for each in served]
        raise ArtifactInUseError(
            f"{what} cannot be deleted while aliases serve it: {', '.join(aliases)}",
            aliases=aliases,
            hint="point them elsewhere first, or delete them too with drop_aliases=True",
        )
    for each in served:
        check_protected(each, allow_protected)
