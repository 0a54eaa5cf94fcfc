"""Time and random numbers: what both ports provide without waiting."""

from __future__ import annotations

from datetime import datetime

from holdall.backends import clock


class World:
    """The clock, new ids and random numbers of this process."""

    def now(self) -> datetime:
        """The time, in UTC."""
        return clock.now()

    def new_id(self) -> str:
        """A new random id of 36 characters."""
        from uuid import uuid4  # takes a while to load, and reads do not need it

        return str(uuid4())

    def random(self) -> float:
        """A random number from 0 up to 1."""
        from random import random

        return random()
