"""What every route gets: the database, and the options of the application that mounts it."""

from __future__ import annotations

from dataclasses import dataclass

from holdall import AsyncDatabase
from holdall.attachments import Accept
from holdall.web.serving.access import Access
from holdall.web.serving.picture import Pictures


@dataclass(frozen=True, slots=True)
class Site:
    """The database and its pictures, who may do what, and which files clients may upload."""

    db: AsyncDatabase
    pictures: Pictures
    access: Access
    accept: Accept
