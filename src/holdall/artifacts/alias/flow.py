"""Flows about aliases: look at them, point them elsewhere, delete them.

Each change is one transaction. It demands that every version it points to is there and not deleted, that the alias is
still what it was when it was read, and that no other process changed it; it notes at the versions that the alias serves
them, so that they cannot be deleted at the same time, and appends to the alias's history.

A rollback skips the stages of a rollout, which were not meant to last. So a rollout, finished or under way, is one
step, and the step before it is what the alias served when the rollout began.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypedDict, Unpack

from holdall.artifacts.alias.alias import Alias, Arms, Version, arms_of, is_plain, two_arms
from holdall.artifacts.alias.history import AliasAction, AliasChange, Entries, alias_at, arms_at, make_entry
from holdall.artifacts.alias.state import LONG_AGO, AliasState, explain_no_alias, read_aliases, read_state
from holdall.artifacts.event import announce
from holdall.artifacts.home import Home, home_of
from holdall.artifacts.name import LATEST, check_alias, check_name, display_version, encode_version_sk
from holdall.artifacts.record import FIELDS, LIVE, AliasNote, AliasRow, Note, VersionRow, show_moment
from holdall.artifacts.version.latest import settle
from holdall.artifacts.version.lookup import explain_missing
from holdall.core.context import Context
from holdall.core.expressions import Add, Delete, Remove, Set
from holdall.core.frozen import replace
from holdall.errors import (
    AliasNotFoundError,
    ArtifactChangedError,
    InvalidAliasError,
    InvalidOptionsError,
    ProtectedAliasError,
)
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit
from holdall.tables.record import Record, fetch_all


async def alias(context: Context, name: str, alias: str, *, at: datetime | None = None) -> Alias:
    """An alias as it is, or as it was at a time; `AliasNotFoundError` if there is, or was, none."""
    check_name(name)
    home = await home_of(context)
    if at is not None:
        return await alias_at(context, home, name, alias, at)
    found = (await read_state(context, home, name, alias)).value()
    if found is None:
        raise explain_no_alias(name, alias)
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
    if not state.row.is_stored and expect_revision is None:
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


async def change_alias(
    context: Context,
    name: str,
    alias: str,
    decide: Callable[[AliasState], Arms],
    action: AliasAction,
    *,
    expect_revision: str | None = None,
    **options: Unpack[_Options],
) -> Alias | None:
    """Change what an alias serves, in one transaction; None if it serves nothing any more and is gone."""
    home = await home_of(context)

    async def body(change: Change) -> Alias | None:
        state = await read_state(context, home, name, alias)
        check_revision(state, expect_revision)
        check_protected(state, options.get("allow_protected", False))
        return await alter_alias(change, home, state, decide(state), action, **options)

    return await commit(context, body, f"the alias {alias!r:.60} of {name!r:.60}")


class _Options(TypedDict, total=False):
    """Options of a change; ``of`` is the number of the change that a rollback goes back to."""

    protected: bool | None
    allow_protected: bool
    by: str | None
    reason: str | None
    of: int | None


async def alter_alias(
    change: Change,
    home: Home,
    state: AliasState,
    arms: Arms,
    action: AliasAction,
    **options: Unpack[_Options],
) -> Alias | None:
    """Have a change make an alias serve these versions, or nothing; returns what it will be."""
    context, protected = change.context, options.get("protected")
    check_protected(state, options.get("allow_protected", False))
    entry = AliasChange(
        state.note.changes + 1,
        context.port.now(),
        action,
        _weights(arms),
        options.get("by"),
        options.get("reason"),
        options.get("of"),
        None if protected == state.protected else protected,
    )
    notes = await _fetch_notes(context, home, state, arms)
    after = set_arms(change, home, state, arms, entry)
    _note_arms(change, home, state, arms, notes)
    before = _weights(state.arms)
    announce(change, "alias_moved", state.name, alias=state.alias, before=before, after=_weights(arms))
    return after


def _weights(arms: Arms) -> dict[str, int] | None:
    return {display_version(sk): weight for sk, weight in arms} or None


def check_revision(state: AliasState, expected: str | None) -> None:
    """Refuse an alias that is not the one that the caller saw."""
    if expected is not None and state.revision != expected:
        raise ArtifactChangedError(
            f"the alias {state.alias!r:.60} of {state.name!r:.60} has the revision {state.revision}, "
            f"not {expected!r:.40}",
            hint="look at it again, and decide anew",
        )


def check_protected(state: AliasState | Alias, allowed: bool) -> None:
    """Refuse to change a protected alias by accident."""
    if state.protected and not allowed:
        raise ProtectedAliasError(
            f"the alias {state.alias!r:.60} of {state.name!r:.60} is protected",
            hint="if you mean it, pass allow_protected=True",
        )


async def _fetch_notes(context: Context, home: Home, state: AliasState, arms: Arms) -> list[Note]:
    """The notes about the versions that an alias served and will serve; refused if one of the latter is missing."""
    wanted = [sk for sk, _ in arms]
    both = list(dict.fromkeys([*wanted, *(sk for sk, _ in state.arms)]))
    if not both:
        return []
    records: list[Record] = [VersionRow.at(home, state.name, sk) for sk in wanted]
    records += [Note.at(home, state.name, sk) for sk in both]
    found = await fetch_all(context.port, records)
    for row in found[: len(wanted)]:
        assert isinstance(row, VersionRow)
        if row.is_live or (row.sk == LATEST and (await settle(context, home, state.name))[0].is_live):
            continue  # a process that put LATEST may have died before it wrote the row
        raise explain_missing(state.name, row.sk)
    return [note for note in found if isinstance(note, Note)]


def set_arms(change: Change, home: Home, state: AliasState, arms: Arms, entry: AliasChange) -> Alias | None:
    """Make an alias serve these versions, or, with none, nothing; returns what it is then."""
    name, alias = state.name, state.alias
    if state.row.is_stored and not state.is_noted:  # versioned has changed it: that is history, too
        then = state.row.moment or LONG_AGO
        found = AliasChange(entry.number, then, "found", _weights(state.arms), None, None, None)
        change.create(make_entry(home, name, alias, found))
        entry = replace(entry, number=entry.number + 1)
    change.create(make_entry(home, name, alias, entry))
    protected = state.protected if entry.protected is None else entry.protected
    note = AliasNote.new(
        state.note.address,
        AliasNote.revision.set(change.context.port.new_id()),
        AliasNote.changes.set(entry.number),
        *([AliasNote.protected.set(True)] if protected else []),
    )
    same, after = state.row.same(*FIELDS), None
    if arms:
        fields = _fields(arms, entry.at)
        row = AliasRow.new(state.row.address, *fields)
        note = note.apply(*fields, AliasNote.arms.set(None if is_plain(arms) else arms))
        change.put(row, expect=[same])
        after = AliasState(name, alias, row, note, state.dice).value()
    else:
        change.delete(state.row, expect=[same])
    change.put(note, expect=[state.note.same(AliasNote.revision)])
    return after


def _fields(arms: Arms, now: datetime) -> list[Set | Remove]:
    """The attributes of an alias's row, exactly as versioned writes them."""
    primary, secondary, weight = two_arms(arms)
    fields = [AliasRow.update_at.set(show_moment(now)), AliasRow.version.set(primary)]
    if secondary is not None:
        fields += [AliasRow.secondary_version.set(secondary), AliasRow.weight.set(weight or 0)]
    return fields


def _note_arms(change: Change, home: Home, state: AliasState, arms: Arms, notes: list[Note]) -> None:
    """Demand that the versions are there, and note at each that the alias serves it, or no longer does."""
    wanted = [Note.at(home, state.name, sk).sk for sk, _ in arms]
    for sk, _ in arms:
        change.require(VersionRow.at(home, state.name, sk), LIVE)
    for note in notes:
        if note.sk in wanted:
            note_service(change, note, Note.served_by.add([state.alias]))
        elif state.alias in note.served_by:
            note_service(change, note, Note.served_by.discard([state.alias]))


def note_service(change: Change, note: Note, update: Add | Delete) -> None:
    """Note which aliases serve a version; ``referred`` shows the change even if the names are the same as before."""
    change.update(note, update, Note.referred.set(change.context.port.new_id()))


async def rollback_alias(
    context: Context,
    name: str,
    alias: str,
    *,
    to: int | None = None,
    to_version: Version | None = None,
    allow_protected: bool = False,
    expect_revision: str | None = None,
    by: str | None = None,
    reason: str | None = None,
) -> Alias:
    """Let an alias serve again what it served before its last change, the whole split.

    A rollout counts as one change, whether it is finished or under way. Going back twice goes back two changes. ``to``
    is the number of a change in its history: the alias serves what it served after that. With ``to_version`` it serves
    that version alone, as it did before. A protected alias stays protected.
    """
    check_name(name)
    if to is not None and to_version is not None:
        raise InvalidOptionsError("both to and to_version were given", hint="pass one or the other")
    version = None if to_version is None else display_version(encode_version_sk(to_version))
    home = await home_of(context)
    state = await read_state(context, home, name, alias)
    target = await _find_target(context, home, state, to, version)
    if target is None:
        if not state.row.is_stored:
            raise explain_no_alias(name, alias)
        raise AliasNotFoundError(
            f"the alias {alias!r:.60} of {name!r:.60} has nothing to go back to", hint="see its history"
        )
    found = await change_alias(
        context,
        name,
        alias,
        lambda state: arms_at(target),
        "rollback",
        allow_protected=allow_protected,
        expect_revision=state.revision if expect_revision is None else expect_revision,
        by=by,
        reason=reason,
        of=target.number,
    )
    assert found is not None
    return found


async def _find_target(
    context: Context, home: Home, state: AliasState, to: int | None, version: str | None
) -> AliasChange | None:
    """The change to go back to: the named one, the last that served the version alone, or the last before the current
    one that served something else and was meant to last."""
    alias = state.alias
    entries = Entries(context, home, state.name, alias)
    change = await entries.next()
    if change is not None and (state.is_noted or (not state.row.is_stored and change.weights is None)):
        below, now = change.of or change.number, change.weights
    else:  # versioned has changed or deleted it since, which comes after all entries
        below, now = state.note.changes + 1, {display_version(sk): weight for sk, weight in state.arms}
    while change is not None:
        if to is not None:
            if change.number == to:
                if change.weights is None:
                    raise InvalidOptionsError(f"after change {to} the alias {alias!r:.60} was deleted")
                return change
        elif version is not None:
            if [each for each, weight in (change.weights or {}).items() if weight] == [version]:
                return change
        elif change.number < below and change.weights not in (None, now) and not change.is_stage:
            return change
        change = await entries.next()
    what = f"the alias {alias!r:.60} of {state.name!r:.60}"
    if to is not None:
        raise InvalidOptionsError(f"{what} has no change {to}", hint="see its history")
    if version is not None:
        raise InvalidOptionsError(
            f"{what} has never served version {version} alone",
            hint="set the alias to that version, or see its history",
        )
    return None
