"""Rollback: an alias serves again what it served before, according to its history.

A rollback skips the stages of a rollout, which were not meant to last. So a rollout, finished or under way, is one
step, and the step before it is what the alias served when the rollout began.
"""

from __future__ import annotations

from holdall.artifacts.alias.alias import Alias, Version
from holdall.artifacts.alias.flow import change_alias
from holdall.artifacts.alias.history import AliasChange, Entries, arms_at
from holdall.artifacts.alias.state import AliasState, no_alias, read_state
from holdall.artifacts.home import Home, home_of
from holdall.artifacts.name import check_name, display_version, encode_version_sk
from holdall.core.context import Context
from holdall.errors import AliasNotFoundError, InvalidOptionsError


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
