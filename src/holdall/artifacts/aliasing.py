"""Flows about aliases: look at them, point them elsewhere, delete them.

Each change is one transaction. It demands that every version it points to is there and not deleted, that the alias is
still what it was when it was read, and that nobody else changed it; it notes at the versions who serves them, so that
they cannot be deleted at the same time, and appends to the alias's history.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from holdall.artifacts.alias import Alias, Arms, Version, arms_of, is_plain, two_arms
from holdall.artifacts.alias_state import FIELDS, LONG_AGO, AliasState, no_alias, read_aliases, read_state
from holdall.artifacts.events import announce
from holdall.artifacts.history import AliasAction, AliasChange, alias_at, entry_item
from holdall.artifacts.home import Home, home_of
from holdall.artifacts.latest import committed, pauses, settle
from holdall.artifacts.naming import (
    LATEST,
    check_alias,
    check_name,
    displayed,
    encode_alias_pk,
    encode_meta_pk,
)
from holdall.artifacts.reading import missing
from holdall.artifacts.stored import is_live, moment_in, moment_text, note_sk, served_by
from holdall.core.context import Context
from holdall.core.expressions import Add, Compare, Delete, Exists, NotExists, Set, Update, Value, path
from holdall.core.frozen import replace
from holdall.core.requests import BatchGet, ConditionCheck, DeleteItem, PutItem, TransactAction, UpdateItem
from holdall.core.values import Attribute, Item
from holdall.errors import (
    ArtifactChangedError,
    ContentionError,
    InvalidAliasError,
    ProtectedAliasError,
)

__all__ = [
    "alias",
    "aliases",
    "change_actions",
    "change_alias",
    "check_protected",
    "delete_alias",
    "put_alias",
    "referred",
]

_NOT_DELETED = Exists(path("sha256")) & (
    NotExists(path("is_deleted")) | Compare("=", path("is_deleted"), Value({"BOOL": False}))
)
"""The condition of what `is_live` sees: rows of others may say nothing of deletion."""


async def alias(context: Context, name: str, alias: str, *, at: datetime | None = None) -> Alias:
    """An alias as it is, or as it was at a time; `AliasNotFoundError` when there is, or was, none."""
    check_name(name)
    home = await home_of(context)
    if at is not None:
        return await alias_at(context, home, name, alias, at)
    found = (await read_state(context, home, name, alias)).value()
    if found is None:
        raise no_alias(name, alias)
    return found


async def aliases(context: Context, name: str) -> list[Alias]:
    """The aliases of an artifact, in the order of their names."""
    check_name(name)
    return await read_aliases(context, await home_of(context), name)


# --- changing ---------------------------------------------------------------------------------------------


async def put_alias(
    context: Context,
    name: str,
    alias: str,
    version: Version | None = None,
    secondary_version: Version | None = None,
    secondary_version_weight: int | None = None,
    *,
    weights: Mapping[Version, int] | None = None,
    protected: bool | None = None,
    allow_protected: bool = False,
    expect_revision: str | None = None,
    by: str | None = None,
    reason: str | None = None,
) -> Alias:
    """Point an alias to a version, LATEST without one, or split its traffic.

    ``secondary_version`` gets ``secondary_version_weight`` per cent, 0 to 99, ``version`` the rest; or ``weights`` maps
    any number of versions to whatever whole numbers. All versions have to be there. ``expect_revision``: only if the
    alias still has that revision. A ``protected`` alias is changed only with ``allow_protected``, and stays protected,
    even when it is deleted and restored, until it is set with ``protected=False``. ``by`` and ``reason`` go into its
    history.
    """
    check_name(name)
    check_alias(alias)
    if protected is not None and not isinstance(protected, bool):
        raise InvalidAliasError(f"protected is {protected!r:.60}, neither True nor False")
    arms = arms_of(version, secondary_version, secondary_version_weight, weights)
    found = await change_alias(
        context,
        name,
        alias,
        lambda state: arms,
        "set",
        protected=protected,
        allow_protected=allow_protected,
        expect_revision=expect_revision,
        by=by,
        reason=reason,
    )
    assert found is not None
    return found


async def delete_alias(
    context: Context,
    name: str,
    alias: str,
    *,
    allow_protected: bool = False,
    expect_revision: str | None = None,
    by: str | None = None,
    reason: str | None = None,
) -> bool:
    """Delete an alias; False if there is none. Its history and its protection stay."""
    check_name(name)
    state = await read_state(context, await home_of(context), name, alias)
    if state.row is None and expect_revision is None:
        return False
    await change_alias(
        context,
        name,
        alias,
        lambda state: (),
        "deleted",
        allow_protected=allow_protected,
        expect_revision=expect_revision,
        by=by,
        reason=reason,
    )
    return True


Decide: TypeAlias = Callable[[AliasState], "Arms | Coroutine[Any, Any, Arms]"]
"""What an alias is to serve, in view of what it is: its arms, or a flow that finds them out."""

Extra: TypeAlias = Callable[[Alias], Sequence[TransactAction]]
"""More actions for the same transaction, in view of what the alias will be."""


async def change_alias(
    context: Context,
    name: str,
    alias: str,
    decide: Decide,
    action: AliasAction,
    *,
    protected: bool | None = None,
    allow_protected: bool = False,
    expect_revision: str | None = None,
    by: str | None = None,
    reason: str | None = None,
    of: int | None = None,
    extra: Extra = lambda alias: (),
) -> Alias | None:
    """Change what an alias serves, in one transaction; None when it serves nothing any more and is gone."""
    home = await home_of(context)
    for pause in pauses():
        state = await read_state(context, home, name, alias)
        if expect_revision is not None and state.revision != expect_revision:
            raise ArtifactChangedError(
                f"the alias {alias!r:.60} of {name!r:.60} has the revision {state.revision}, "
                f"not {expect_revision!r:.40}",
                hint="look at it again, and decide anew",
            )
        check_protected(state, allow_protected)
        decided = decide(state)
        arms = decided if isinstance(decided, tuple) else await decided
        change = AliasChange(
            state.changes + 1,
            context.port.now(),
            action,
            {displayed(sk): weight for sk, weight in arms} or None,
            by,
            reason,
            of,
            None if protected == state.protected else protected,
        )
        notes = await _target_notes(context, home, name, state, arms)
        actions, after = change_actions(context, home, state, arms, change, notes)
        event = await announce(
            context, "alias_moved", name, alias=alias, before=_weights(state.arms), after=_weights(arms)
        )
        more = () if after is None else tuple(extra(after))
        if await committed(context, (*actions, *event.actions, *more)):
            await event.settle()
            return after
        await context.port.sleep(pause)
    raise ContentionError(
        f"the alias {alias!r:.60} of {name!r:.60} is being changed by others, again and again"
    )


def _weights(arms: Arms) -> dict[str, int] | None:
    return {displayed(sk): weight for sk, weight in arms} or None


def check_protected(state: AliasState | Alias, allowed: bool) -> None:
    """Refuse to change a protected alias by accident."""
    if state.protected and not allowed:
        raise ProtectedAliasError(
            f"the alias {state.alias!r:.60} of {state.name!r:.60} is protected",
            hint="say that you mean it: allow_protected=True",
        )


async def _target_notes(
    context: Context, home: Home, name: str, state: AliasState, arms: Arms
) -> dict[str, Item | None]:
    """The notes about the versions that an alias served and will serve; refused when one of the latter is missing."""
    wanted = [sk for sk, _ in arms]
    both = list(dict.fromkeys([*wanted, *(sk for sk, _ in state.arms)]))
    if not both:
        return {}
    reads = [
        *(home.get(name, sk) for sk in wanted),
        *(home.get(encode_meta_pk(name), note_sk(sk)) for sk in both),
    ]
    found = (await context.port.send(BatchGet(tuple(reads)))).items
    for sk, row in zip(wanted, found, strict=False):
        if not is_live(row):
            if sk == LATEST and (await settle(context, home, name))[0].live:
                continue  # who put it had died before they wrote the row
            raise missing(name, sk)
    return dict(zip(both, found[len(wanted) :], strict=True))


def change_actions(
    context: Context,
    home: Home,
    state: AliasState,
    arms: Arms,
    change: AliasChange,
    notes: Mapping[str, Item | None],
) -> tuple[list[TransactAction], Alias | None]:
    """The actions that make an alias serve these versions, or, with none, nothing; and what it is then."""
    name, alias = state.name, state.alias
    entries = [change]
    if state.row is not None and not state.noted:  # versioned has changed it: that is history, too
        then = moment_in(state.row) or LONG_AGO
        found = AliasChange(change.number, then, "found", _weights(state.arms), None, None, None)
        entries = [found, replace(change, number=change.number + 1)]
    note: dict[str, Attribute] = {
        **home.meta_key(name, f"alias#{alias}"),
        "_type": {"S": "holdall.ArtifactAlias"},
        "revision": {"S": context.port.new_id()},
        "changes": {"N": str(entries[-1].number)},
    }
    if state.protected if change.protected is None else change.protected:
        note["protected"] = {"BOOL": True}
    unchanged = home.unchanged(state.row, *FIELDS)
    after: AliasState | None = None
    if arms:
        row = _row(home, name, alias, arms, change.at)
        note |= {each: row[each] for each in FIELDS if each in row}
        if not is_plain(arms):
            note["arms"] = {
                "L": [{"M": {"version": {"S": sk}, "weight": {"N": str(weight)}}} for sk, weight in arms]
            }
        after = AliasState(name, alias, row, note, state.dice)
        first: TransactAction = PutItem(home.table, row, unchanged)
    else:
        first = DeleteItem(home.table, home.key(encode_alias_pk(name), alias), unchanged)
    actions: list[TransactAction] = [first, PutItem(home.table, note, home.unchanged(state.note, "revision"))]
    actions += _reference_actions(context, home, state, arms, notes)
    actions += [PutItem(home.table, entry_item(home, name, alias, each), home.absent) for each in entries]
    return actions, None if after is None else after.value()


def _row(home: Home, name: str, alias: str, arms: Arms, now: datetime) -> dict[str, Attribute]:
    """An alias's row, exactly as versioned writes it."""
    primary, secondary, weight = two_arms(arms)
    row: dict[str, Attribute] = {
        **home.key(encode_alias_pk(name), alias),
        "update_at": {"S": moment_text(now)},
        "version": {"S": primary},
    }
    if secondary is not None:
        row["secondary_version"] = {"S": secondary}
        row["secondary_version_weight"] = {"N": str(weight)}
    return row


def _reference_actions(
    context: Context, home: Home, state: AliasState, arms: Arms, notes: Mapping[str, Item | None]
) -> list[TransactAction]:
    """Demand that the versions are there, and note at each who serves it; take it back where it no longer does."""
    member, wanted = Value({"SS": [state.alias]}), [sk for sk, _ in arms]
    actions: list[TransactAction] = []
    for sk in wanted:
        actions.append(ConditionCheck(home.table, home.key(state.name, sk), _NOT_DELETED))
        actions.append(_noted(context, home, state.name, sk, Add(path("served_by"), member)))
    for sk, note in notes.items():
        if sk not in wanted and state.alias in served_by(note):
            actions.append(_noted(context, home, state.name, sk, Delete(path("served_by"), member)))
    return actions


def _noted(context: Context, home: Home, name: str, sk: str, step: Add | Delete) -> UpdateItem:
    """Note who serves a version; ``referred`` is another each time, as the names may be the same as before."""
    return UpdateItem(home.table, home.meta_key(name, note_sk(sk)), Update((step, referred(context))))


def referred(context: Context) -> Set:
    """The mark of a change of who serves a version."""
    return Set(path("referred"), Value({"S": context.port.new_id()}))
