"""The way back: an alias serves again what its history says that it served."""

from __future__ import annotations

from holdall.artifacts.alias import Alias
from holdall.artifacts.alias_state import AliasState, no_alias, read_state
from holdall.artifacts.aliasing import change_alias
from holdall.artifacts.history import AliasChange, Entries, arms_at
from holdall.artifacts.home import Home, home_of
from holdall.artifacts.naming import check_name, displayed
from holdall.core.context import Context
from holdall.errors import AliasNotFoundError, InvalidOptionsError

__all__ = ["rollback_alias"]


async def rollback_alias(
    context: Context,
    name: str,
    alias: str,
    *,
    to: int | None = None,
    allow_protected: bool = False,
    expect_revision: str | None = None,
    by: str | None = None,
    reason: str | None = None,
) -> Alias:
    """Let an alias serve again what it served before its last change, the whole split; or after the change ``to``.

    Going back twice goes back two changes.
    """
    check_name(name)
    home = await home_of(context)
    state = await read_state(context, home, name, alias)
    target = await _target(context, home, state, to)
    if target is None:
        if state.row is None:
            raise no_alias(name, alias)
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


async def _target(context: Context, home: Home, state: AliasState, to: int | None) -> AliasChange | None:
    """The change to go back to: the one named, or the last before what is now that served something else."""
    alias = state.alias
    entries = Entries(context, home, state.name, alias)
    change = await entries.next()
    if change is not None and (state.noted or (state.row is None and change.weights is None)):
        below, now = change.of or change.number, change.weights
    else:  # versioned has changed or deleted it since, which comes after all entries
        below, now = state.changes + 1, {displayed(sk): weight for sk, weight in state.arms}
    while change is not None:
        if to is not None and change.number == to:
            if change.weights is None:
                raise InvalidOptionsError(f"after change {to} the alias {alias!r:.60} was deleted")
            return change
        if to is None and change.number < below and change.weights is not None and change.weights != now:
            return change
        change = await entries.next()
    if to is not None:
        raise InvalidOptionsError(
            f"the alias {alias!r:.60} of {state.name!r:.60} has no change {to}", hint="see its history"
        )
    return None
