"""The history of an alias: every change, with its author and reason.

Records of changes are only ever appended, in the transaction of the change itself. A change that versioned made appears
when Holdall next changes the alias, as a change ``found`` with the time at which versioned made it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

from holdall.artifacts.alias.alias import Alias, Arms, Dice, two_arms
from holdall.artifacts.alias.state import explain_no_alias, read_state
from holdall.artifacts.home import Home, find_home
from holdall.artifacts.name import (
    check_alias_text,
    check_name,
    encode_alias_pk,
    encode_meta_pk,
    encode_version_sk,
)
from holdall.artifacts.record import AliasChangeRecord, history_sk
from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.core.option import check_count
from holdall.errors import InvalidOptionsError
from holdall.tables.record import RecordPages

AliasAction: TypeAlias = Literal["set", "deleted", "found", "rollback", "rollout"]
"""What changed an alias; ``found``: the package versioned changed it."""


@dataclass(frozen=True, slots=True)
class AliasChange:
    """One change of an alias. ``weights`` is what the alias served from then on; None if it was deleted.

    ``of`` is the number of the change that a rollback went back to. ``protected`` is True if the change protected the
    alias, False if it ended the protection, None otherwise.
    """

    number: int
    at: datetime
    action: AliasAction
    weights: dict[str, int] | None
    by: str | None
    reason: str | None
    of: int | None
    protected: bool | None = None

    @property
    def is_stage(self) -> bool:
        """Whether the change is a stage of a rollout, which is not meant to last."""
        return self.action == "rollout" and self.weights is not None and len(self.weights) > 1

    def describe(self) -> dict[str, Any]:
        """Return the change as JSON-compatible values."""
        return {
            "number": self.number,
            "at": self.at.isoformat(),
            "action": self.action,
            "weights": self.weights,
            "by": self.by,
            "reason": self.reason,
            "of": self.of,
            "protected": self.protected,
        }


_STORED = ("at", "action", "by", "reason", "of", "protected")
"""The fields with a column of the same name; the record's key has the number."""


def make_change_record(home: Home, name: str, alias: str, change: AliasChange) -> AliasChangeRecord:
    """Make the record of a change; the order of its versions is kept."""
    return AliasChangeRecord.new(
        home.address(encode_meta_pk(name), history_sk(alias, change.number)),
        AliasChangeRecord.arms.set(None if change.weights is None else list(change.weights.items())),
        *(getattr(AliasChangeRecord, field).set(getattr(change, field)) for field in _STORED),
    )


def _change_of(record: AliasChangeRecord) -> AliasChange:
    stored: dict[str, Any] = {field: getattr(record, field) for field in _STORED}
    weights = None if record.arms is None else {version: int(weight) for version, weight in record.arms}
    return AliasChange(number=int(record.sk.rpartition("#")[2]), weights=weights, **stored)


async def alias_history(context: Context, name: str, alias: str, *, limit: int = 100) -> list[AliasChange]:
    """List the last changes of an alias, newest first; also of an alias that was deleted."""
    check_name(name)
    check_alias_text(alias)
    check_count(limit, "limit")
    changes = AliasChanges(context, await find_home(context), name, alias)
    found: list[AliasChange] = []
    while len(found) < limit and (change := await changes.next()) is not None:
        found.append(change)
    return found


async def find_alias_at(context: Context, home: Home, name: str, alias: str, at: datetime) -> Alias:
    """An alias as it was at a time."""
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise InvalidOptionsError(
            f"at must be a datetime with a time zone, not {at!r:.60}", hint="as in datetime.now(UTC)"
        )
    state = await read_state(context, home, name, alias)
    value = state.value()
    if value is not None and value.update_at <= at:
        return value
    changes = AliasChanges(context, home, name, alias)
    while (change := await changes.next()) is not None:
        if change.at <= at:
            if change.weights is None:
                break
            arms, dice = arms_at(change), Dice(context.port.random)
            return Alias(encode_alias_pk(name), alias, change.at, *two_arms(arms), arms, dice=dice)
    raise explain_no_alias(name, alias)


def arms_at(change: AliasChange) -> Arms:
    """The arms of a change, in their original order."""
    return tuple((encode_version_sk(each), weight) for each, weight in (change.weights or {}).items())


class AliasChanges:
    """The changes in a history, newest first, read as they are needed."""

    def __init__(self, context: Context, home: Home, name: str, alias: str) -> None:
        query = home.query(encode_meta_pk(name), reverse=True, limit=25, prefix=f"history#{alias}#")
        self._pages = RecordPages(context.port, AliasChangeRecord, query, home.address_of)
        self._waiting: list[AliasChangeRecord] = []

    async def next(self) -> AliasChange | None:
        """Return the next older change; None after the oldest."""
        while not self._waiting:
            page = await self._pages.next_page()
            if page is None:
                return None
            self._waiting = page[::-1]
        return _change_of(self._waiting.pop())
