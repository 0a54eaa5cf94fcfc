"""Derived attributes: stored attributes that are computed from fields.

Pure. A transaction that writes a component of a derived attribute also writes the attribute, and locks all its
components. So two transactions that change different components cannot leave a value that fits neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from holdall.core.numbers import number_text
from holdall.core.schema import TTL
from holdall.core.values import Attribute
from holdall.models.fields.field import Field


class Derived(Protocol):
    """Attributes that are computed from fields."""

    @property
    def components(self) -> tuple[Field[Any], ...]:
        """The fields from which they are computed."""

    def attributes(self, values: Mapping[str, Any]) -> Mapping[str, Attribute | None]:
        """Return the attributes for these values of the components; None for one that must be absent."""


class Expiry:
    """``_ttl``, the time at which an item expires, in seconds since 1970; computed from the model's ``ttl`` field."""

    __slots__ = ("components",)

    def __init__(self, field: Field[Any]) -> None:
        self.components: tuple[Field[Any], ...] = (field,)

    def attributes(self, values: Mapping[str, Any]) -> Mapping[str, Attribute | None]:
        """Return ``_ttl``; it is absent if the item does not expire."""
        moment = values[self.components[0].name]
        if moment is None:
            return {TTL: None}
        if isinstance(moment, datetime) and moment.utcoffset() is None:
            raise self.components[0].refusal(
                "the time at which the item expires must have a time zone", hint="use datetime.now(UTC)"
            )
        return {
            TTL: {"N": str(epoch_seconds(moment)) if isinstance(moment, datetime) else number_text(moment)}
        }


def epoch_seconds(moment: datetime) -> int:
    """Return the seconds since 1970, rounded up, so that nothing expires too early."""
    return -int(-moment.timestamp() // 1)
