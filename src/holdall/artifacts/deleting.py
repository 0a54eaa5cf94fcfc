"""Flows that delete versions softly, and bring them back. Bytes stay until they are purged."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from holdall.artifacts.alias import Alias, Arms
from holdall.artifacts.alias_state import AliasState, read_aliases, read_state
from holdall.artifacts.aliasing import change_actions, change_alias, check_protected, referred
from holdall.artifacts.artifact import Artifact
from holdall.artifacts.events import Announcement, announce
from holdall.artifacts.history import AliasChange
from holdall.artifacts.home import Home, home_of
from holdall.artifacts.latest import committed, look, pauses, settle
from holdall.artifacts.naming import LATEST, check_name, displayed, encode_meta_pk, encode_version_sk
from holdall.artifacts.reading import get, missing, serving
from holdall.artifacts.stored import ROW, is_live, moment_text, note_sk, noted_content, revision_of, served_by
from holdall.core.context import Context
from holdall.core.expressions import Delete, Remove, Set, Update, UpdateAction, Value, path
from holdall.core.frozen import dataclass
from holdall.core.requests import BatchGet, TransactAction, UpdateItem
from holdall.core.values import Item
from holdall.errors import ArtifactChangedError, ArtifactInUseError, ArtifactNotFoundError, ContentionError

_TOGETHER = 8
"""So many aliases are deleted in one transaction with their version."""

__all__ = ["Dropping", "delete", "dropping", "read_version", "restore"]


async def delete(
    context: Context,
    name: str,
    version: int | str | None = None,
    *,
    drop_aliases: bool = False,
    allow_protected: bool = False,
    expect_revision: str | None = None,
) -> bool:
    """Delete a version, LATEST without one; it can be restored until it is purged.

    False when there is none, or it is deleted already: then nothing changes. `ArtifactInUseError` names the aliases
    that serve it; with ``drop_aliases`` they are deleted with it.
    """
    check_name(name)
    sk = encode_version_sk(version)
    home = await home_of(context)
    for pause in pauses():
        row, note = await read_version(context, home, name, sk)
        if not is_live(row):
            return False
        assert row is not None
        _check_revision(name, sk, row, note, expect_revision)
        drop = await dropping(
            context, home, name, sk, drop_aliases=drop_aliases, allow_protected=allow_protected
        )
        event = await announce(context, "deleted", name, sk, row["sha256"]["S"])
        actions = [
            UpdateItem(
                home.table,
                home.key(name, sk),
                Update((Set(path("is_deleted"), Value({"BOOL": True})),)),
                home.unchanged(row, *ROW),
            ),
            _noted(context, home, name, sk, note, (Set(path("deleted_at"), _now(context)),)),
            *drop.actions,
            *event.actions,
        ]
        if await committed(context, actions):
            await drop.settle()
            await event.settle()
            return True
        await context.port.sleep(pause)
    raise ContentionError(
        f"version {displayed(sk)} of {name!r:.60} is being changed by others, again and again"
    )


async def restore(context: Context, name: str, version: int | str | None = None) -> Artifact:
    """Bring a deleted version back, LATEST without one; one that is not deleted is given as it is."""
    check_name(name)
    sk = encode_version_sk(version)
    home = await home_of(context)
    for pause in pauses():
        row, note = await read_version(context, home, name, sk)
        if row is None or "sha256" not in row:
            raise missing(name, sk)
        if is_live(row):
            return await get(context, name, version)
        content = noted_content(row, note)
        if await look(context, home, home.object_key(name, sk) if content is None else content.key) is None:
            raise ArtifactNotFoundError(f"the bytes of version {displayed(sk)} of {name!r:.60} are gone")
        event = await announce(context, "restored", name, sk, row["sha256"]["S"])
        actions = [
            UpdateItem(
                home.table,
                home.key(name, sk),
                Update((Set(path("is_deleted"), Value({"BOOL": False})),)),
                home.unchanged(row, *ROW),
            ),
            _noted(context, home, name, sk, note, (Remove(path("deleted_at")),)),
            *event.actions,
        ]
        if await committed(context, actions):
            await event.settle()
            return await get(context, name, version)
        await context.port.sleep(pause)
    raise ContentionError(
        f"version {displayed(sk)} of {name!r:.60} is being changed by others, again and again"
    )


async def read_version(context: Context, home: Home, name: str, sk: str) -> tuple[Item | None, Item | None]:
    """The row and the note of a version; LATEST's are first brought in line with its object."""
    if sk == LATEST:
        latest, _ = await settle(context, home, name)
        return latest.row, latest.head
    reads = (home.get(name, sk), home.get(encode_meta_pk(name), note_sk(sk)))
    row, note = (await context.port.send(BatchGet(reads))).items
    return row, note


def _noted(
    context: Context, home: Home, name: str, sk: str, note: Item | None, steps: Sequence[UpdateAction]
) -> UpdateItem:
    """Change a version's note, if nobody has; from here on no alias serves it, as far as we were told."""
    revision = Set(path("revision"), Value({"S": context.port.new_id()}))
    free = (Remove(path("served_by")),) if served_by(note) else ()
    return UpdateItem(
        home.table,
        home.meta_key(name, note_sk(sk)),
        Update((*steps, revision, *free)),
        home.unchanged(note or {}, "revision", "served_by", "referred"),
    )


def _now(context: Context) -> Value:
    return Value({"S": moment_text(context.port.now())})


def _check_revision(name: str, sk: str, row: Item, note: Item | None, expected: str | None) -> None:
    found = revision_of(row, note)
    if expected is not None and expected != found:
        raise ArtifactChangedError(
            f"version {displayed(sk)} of {name!r:.60} has the revision {found}, not {expected:.40}",
            hint="look at it again, and decide anew",
        )


# --- aliases that go with it ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Dropping:
    """The aliases that are deleted with a version: their names, the actions, and what follows."""

    aliases: tuple[str, ...]
    actions: tuple[TransactAction, ...]
    events: tuple[Announcement, ...]

    async def settle(self) -> None:
        """It went through."""
        for event in self.events:
            await event.settle()


async def dropping(
    context: Context, home: Home, name: str, sk: str, *, drop_aliases: bool, allow_protected: bool
) -> Dropping:
    """What it takes to delete the aliases that serve a version; `ArtifactInUseError` when that was not asked for."""
    served = serving(await read_aliases(context, home, name), sk)
    if not served:
        return Dropping((), (), ())
    if not drop_aliases:
        raise in_use(name, sk, [each.alias for each in served])
    if len(served) > _TOGETHER:
        return await _dropped_before(context, name, sk, served, allow_protected)
    actions: list[TransactAction] = []
    names, events = [], []
    elsewhere: dict[str, list[str]] = {}
    for alias in served:
        state = await read_state(context, home, name, alias.alias)
        each = state.value()
        if each is None or not serving([each], sk):
            continue  # it has just been pointed elsewhere
        names.append(each.alias)
        check_protected(state, allow_protected)
        change = _deletion(context, state, sk)
        actions += change_actions(context, home, state, (), change, {})[0]
        events.append(await announce(context, "alias_moved", name, alias=each.alias, before=_weights(each)))
        for other in each.arms:
            if other[0] != sk:
                elsewhere.setdefault(other[0], []).append(each.alias)
    for other_sk, gone in elsewhere.items():
        steps = (Delete(path("served_by"), Value({"SS": gone})), referred(context))
        actions.append(UpdateItem(home.table, home.meta_key(name, note_sk(other_sk)), Update(steps)))
    for event in events:
        actions += event.actions
    return Dropping(tuple(names), tuple(actions), tuple(events))


async def _dropped_before(
    context: Context, name: str, sk: str, served: Sequence[Alias], allow_protected: bool
) -> Dropping:
    """Delete many aliases one by one, before the version: a transaction has no room for them all."""
    for each in served:
        check_protected(each, allow_protected)
    names = []

    def gone(state: AliasState) -> Arms:
        if not any(arm == sk for arm, _ in state.arms):
            raise _Elsewhere
        return ()

    for each in served:
        reason = f"version {displayed(sk)} was deleted"
        with suppress(_Elsewhere):
            await change_alias(
                context, name, each.alias, gone, "deleted", allow_protected=allow_protected, reason=reason
            )
            names.append(each.alias)
    return Dropping(tuple(names), (), ())


class _Elsewhere(Exception):
    """An alias has just been pointed elsewhere."""


def in_use(name: str, sk: str | None, aliases: Sequence[str]) -> ArtifactInUseError:
    """The refusal that names the aliases."""
    what = f"version {displayed(sk)} of {name!r:.60}" if sk is not None else f"the artifact {name!r:.60}"
    return ArtifactInUseError(
        f"{what} is served by {', '.join(aliases)}",
        aliases=aliases,
        hint="point them elsewhere first, or delete them with it: drop_aliases=True",
    )


def _deletion(context: Context, state: AliasState, sk: str) -> AliasChange:
    reason = f"version {displayed(sk)} was deleted"
    return AliasChange(state.changes + 1, context.port.now(), "deleted", None, None, reason, None)


def _weights(alias: Alias) -> dict[str, int]:
    return {displayed(sk): weight for sk, weight in alias.arms}
