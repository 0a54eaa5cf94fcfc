"""What every route is given: the database, and what the application that mounts it has said."""

from __future__ import annotations

from dataclasses import dataclass

from holdall import AsyncDatabase
from holdall.attachments import Accept
from holdall.web.serving.access import Access


@dataclass(frozen=True, slots=True)
class Site:
    """The database, who may do what, and which files clients may upload."""

    db: AsyncDatabase
    access: Access
    accept: Accept
