"""Flows that read, change, delete and roll back aliases.

Each change is one transaction. It demands that every version it points to exists and is not deleted, and that the alias
is still as it was read. It records in the notes of the versions that the alias serves them, so that they cannot be
deleted at the same time, and appends to the alias's history.

A rollback skips the stages of a rollout, which were not meant to last. So a rollout, finished or in progress, counts as
one step, and the step before it is what the alias served when the rollout began.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TypedDict, Unpack

from holdall.artifacts.alias.alias import Alias, Arms, Version, arms_of, is_plain, two_arms
from holdall.artifacts.alias.history import (
    AliasAction,
    AliasChange,
    AliasChanges,
    arms_at,
    find_alias_at,
    make_change_record,
)
from holdall.artifacts.alias.state import LONG_AGO, AliasState, explain_no_alias, read_aliases, read_state
from holdall.artifacts.event import announce
from holdall.artifacts.home import Home, find_home
from holdall.artifacts.name import LATEST, check_alias, check_name, display_version, encode_version_sk
from holdall.artifacts.record import FIELDS, LIVE, AliasNote, AliasRow, Note, VersionRow, show_moment
from holdall.artifacts.version.latest import settle
from holdall.artifacts.version.lookup import explain_missing
from holdall.core.context import Context
from holdall.core.expressions import Add, Condition, Delete, Remove, Set
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
    """Return an alias as it is now or, with ``at``, as it was then; `AliasNotFoundError` if it does not exist."""
    check_name(name)
    home = await find_home(context)
    if at is not None:
        return await find_alias_at(context, home, name, alias, at)
    found = (await read_state(context, home, name, alias)).value()
    if found is None:
        raise explain_no_alias(name, alias)
    return found


async def aliases(context: Context, name: str) -> list[Alias]:
    """List the aliases of an artifact, in the order of their names."""
    check_name(name)
    return await read_aliases(context, await find_home(context), name)


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
    """Create or change an alias: point it to a version (LATEST by default), or split its traffic between several.

    ``secondary_version`` gets ``secondary_version_weight`` per cent of the traffic, 0 to 99, and ``version`` the rest.
    Or ``weights`` maps versions to their weights: whole numbers, which need not sum to 100. All versions must exist.
    With ``expect_revision``, the alias changes only if it still has that revision; otherwise `ArtifactChangedError`.
    ``protected=True`` protects the alias: from then on it can be changed only with ``allow_protected=True``, even after
    it was deleted and created again, until you pass ``protected=False``. ``by`` and ``reason`` are recorded in its
    history.
    """
    check_name(name)
    check_alias(alias)
    if protected is not None and not isinstance(protected, bool):
        raise InvalidAliasError(f"protected must be True or False, not {protected!r:.60}")
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
    """Delete an alias; return False if it does not exist. Its history and its protection stay."""
    check_name(name)
    state = await read_state(context, await find_home(context), name, alias)
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
    """Change what an alias serves, in one transaction; None if it is deleted."""
    home = await find_home(context)

    async def body(change: Change) -> Alias | None:
        state = await read_state(context, home, name, alias)
        check_revision(state, expect_revision)
        return await alter_alias(change, home, state, decide(state), action, **options)

    return await commit(context, body, f"the alias {alias!r:.60} of {name!r:.60}")


class _Options(TypedDict, total=False):
    """The options of a change; ``of`` is the number of the change that a rollback goes back to."""

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
    """Add the steps that make an alias serve these versions, or delete it; return the alias as it will be."""
    context, protected = change.context, options.get("protected")
    check_protected(state, options.get("allow_protected", False))
    recorded = AliasChange(
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
    after = set_arms(change, home, state, arms, recorded)
    _note_arms(change, home, state, arms, notes)
    before = _weights(state.arms)
    announce(change, "alias_moved", state.name, alias=state.alias, before=before, after=_weights(arms))
    return after


def _weights(arms: Arms) -> dict[str, int] | None:
    return {display_version(sk): weight for sk, weight in arms} or None


def check_revision(state: AliasState, expected: str | None) -> None:
    """Raise `ArtifactChangedError` if the alias is no longer the one that the caller saw."""
    if expected is not None and state.revision != expected:
        raise ArtifactChangedError(
            f"the alias {state.alias!r:.60} of {state.name!r:.60} has revision {state.revision}, not {expected!r:.40}",
            hint="it has changed since you read it: read it again, then decide",
        )


def check_protected(state: AliasState | Alias, allowed: bool) -> None:
    """Raise `ProtectedAliasError` if the alias is protected and the caller did not pass ``allow_protected``."""
    if state.protected and not allowed:
        raise ProtectedAliasError(
            f"the alias {state.alias!r:.60} of {state.name!r:.60} is protected",
            hint="to change it anyway, pass allow_protected=True",
        )


async def _fetch_notes(context: Context, home: Home, state: AliasState, arms: Arms) -> list[Note]:
    """Fetch the notes about the versions that an alias served and will serve; raise if one of the latter is missing."""
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
            continue  # a process may have put LATEST and died before it wrote the row
        raise explain_missing(state.name, row.sk)
    return [note for note in found if isinstance(note, Note)]


def set_arms(
    change: Change, home: Home, state: AliasState, arms: Arms, recorded: AliasChange
) -> Alias | None:
    """Make an alias serve these versions, or delete it if there are none; return the alias as it will be."""
    name, alias = state.name, state.alias
    if state.row.is_stored and not state.is_noted:  # versioned has changed it: record that, too
        then = state.row.moment or LONG_AGO
        found = AliasChange(recorded.number, then, "found", _weights(state.arms), None, None, None)
        change.create(make_change_record(home, name, alias, found))
        recorded = replace(recorded, number=recorded.number + 1)
    change.create(make_change_record(home, name, alias, recorded))
    protected = state.protected if recorded.protected is None else recorded.protected
    note = AliasNote.new(
        state.note.address,
        AliasNote.revision.set(change.context.port.new_id()),
        AliasNote.changes.set(recorded.number),
        *([AliasNote.protected.set(True)] if protected else []),
    )
    same, after = state.row.same(*FIELDS), None
    if arms:
        fields = _fields(arms, recorded.at)
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
    """Demand that the versions exist, and record in each note that the alias serves it, or no longer does."""
    wanted = [Note.at(home, state.name, sk).sk for sk, _ in arms]
    for sk, _ in arms:
        change.require(VersionRow.at(home, state.name, sk), LIVE)
    for note in notes:
        if note.sk in wanted:
            note_service(change, note, Note.served_by.add([state.alias]))
        elif state.alias in note.served_by:
            note_service(change, note, Note.served_by.discard([state.alias]))


def note_service(
    change: Change, note: Note, update: Add | Delete, *, expect: Sequence[Condition] = ()
) -> None:
    """Record which aliases serve a version; ``referred`` reveals a change even if the names end up the same."""
    change.update(note, update, Note.referred.set(change.context.port.new_id()), expect=expect)


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
    """Undo the last change of an alias, even its deletion: it serves what it served before, the whole split.

    A rollout counts as one change, finished or in progress. A second rollback undoes the change before. ``to`` is the
    number of a change in the alias's history: the alias serves what it served after that change. With ``to_version``,
    it serves only that version, which it must have served alone before. A protected alias stays protected.
    """
    check_name(name)
    if to is not None and to_version is not None:
        raise InvalidOptionsError("to cannot be combined with to_version", hint="pass one or the other")
    version = None if to_version is None else display_version(encode_version_sk(to_version))
    home = await find_home(context)
    state = await read_state(context, home, name, alias)
    target = await _find_target(context, home, state, to, version)
    if target is None:
        if not state.row.is_stored:
            raise explain_no_alias(name, alias)
        raise AliasNotFoundError(
            f"the alias {alias!r:.60} of {name!r:.60} has no earlier state to roll back to",
            hint="look at the history of the alias",
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
    """Find the change to go back to.

    That is the named change, the last that served the version alone, or the last before the current one that served
    something else and was meant to last.
    """
    alias = state.alias
    changes = AliasChanges(context, home, state.name, alias)
    change = await changes.next()
    if change is not None and (state.is_noted or (not state.row.is_stored and change.weights is None)):
        below, now = change.of or change.number, change.weights
    else:  # versioned has changed or deleted it since, after all recorded changes
        below, now = state.note.changes + 1, {display_version(sk): weight for sk, weight in state.arms}
    while change is not None:
        if to is not None:
            if change.number == to:
                if change.weights is None:
                    raise InvalidOptionsError(
                        f"change {to} deleted the alias {alias!r:.60}, so there is nothing to roll back to",
                        hint="look at the history of the alias, and choose another change",
                    )
                return change
        elif version is not None:
            if [each for each, weight in (change.weights or {}).items() if weight] == [version]:
                return change
        elif change.number < below and change.weights not in (None, now) and not change.is_stage:
            return change
        change = await changes.next()
    what = f"the alias {alias!r:.60} of {state.name!r:.60}"
    if to is not None:
        raise InvalidOptionsError(
            f"{what} has no change {to} in its history", hint="look at the history, and choose another change"
        )
    if version is not None:
        raise InvalidOptionsError(
            f"{what} has never served version {version} alone",
            hint="to serve it for the first time, set the alias to that version",
        )
    return None
