"""What both ports share: the backends, time and random numbers, and the rule for users' streams."""

from __future__ import annotations

from datetime import datetime
from os import urandom
from typing import Any

from holdall.backends import clock
from holdall.backends.port.turn import Turns
from holdall.core.port import Backend
from holdall.errors import InvalidOptionsError


class World:
    """The backends of a database, and the clock, new ids and random numbers of this process."""

    def __init__(self, backend: Backend, services: Backend | None = None, turns: Turns | None = None) -> None:
        self._backend = backend
        self._services = services
        self._turns = Turns() if turns is None else turns

    def now(self) -> datetime:
        """The time, in UTC."""
        return clock.now()

    def new_id(self) -> str:
        """A new random id of 36 characters: a UUID of version 4, without loading the module, which takes a while."""
        text = urandom(16).hex()
        variant = "89ab"[int(text[16], 16) & 3]
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"

    def random(self) -> float:
        """A random number from 0 up to 1."""
        from random import random

        return random()


def require_bytes(data: Any, source: Any) -> bytes:
    """What a user's stream returned, unless it is not bytes."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidOptionsError(
            f"{type(source).__name__}.read must return bytes, not {type(data).__name__}",
            hint="open the file in binary mode",
        )
    return bytes(data)
