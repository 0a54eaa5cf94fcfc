"""What a check of a database found: its findings, and the figures of each model. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "notice"]
"""``error``: something cannot be read, or is wrong. ``warning``: something will fail. ``notice``: litter, or a hint."""

CheckName: TypeAlias = Literal[
    "configuration",
    "permissions",
    "tables",
    "items",
    "unique",
    "blobs",
    "archive",
    "artifacts",
    "jobs",
    "orphans",
]
"""A part of the check, for ``only``."""


class DoctorFinding(NamedTuple):
    """Something that is wrong. ``subject`` is the thing that it concerns, ``message`` describes the fault.

    ``repair`` is what a repair does, None if a person has to decide. ``repaired`` is whether this call has done it.
    """

    check: CheckName
    severity: Severity
    subject: str
    message: str
    repair: str | None = None
    repaired: bool = False


class UntriedAction(NamedTuple):
    """An action that features need on a table or a file service (``subject``), and why it was not tried."""

    action: str
    subject: str
    reason: str


class ModelFigure(NamedTuple):
    """How many items a model had when they were counted, and how many bytes these had in the table."""

    model: str
    items: int
    bytes: int
    counted_at: datetime


class DoctorReport(NamedTuple):
    """What a check has found so far.

    ``findings`` are the first thousand; ``found`` counts all of them, and ``repaired`` those that were repaired.
    ``scanned`` is how many items of tables were read. ``figures`` has the models that were given, once all items have
    been read. ``untried`` has the permissions that could not be checked.
    """

    findings: tuple[DoctorFinding, ...]
    found: int
    repaired: int
    scanned: int
    figures: tuple[ModelFigure, ...]
    untried: tuple[UntriedAction, ...] = ()

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is wrong, or everything that was wrong has been repaired."""
        return self.found == self.repaired
