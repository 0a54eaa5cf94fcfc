"""How long a call may take: one deadline for waiting, connecting, all bytes and all attempts.

Sync and async calls use the same deadline, and a server that sends a byte now and then cannot extend it. When the
caller of an async call is cancelled (`holdall.backends.port.notice`), the deadline moves nearer: to now while no part
of the request has been sent, otherwise to the end of the grace period.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from holdall.backends.port.notice import GRACE_SECONDS, Notice
from holdall.core.frozen import dataclass, replace
from holdall.core.settings import Settings

SLOWEST = 64 * 1024
"""Bytes per second: a large body extends its call's deadline by the time that it takes at this rate."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits on a service's connections and calls."""

    connect_timeout: float = 5.0
    read_timeout: float = 30.0
    total_timeout: float = 60.0
    max_attempts: int = 12
    max_connections: int = 64


NAMES = ("connect_timeout", "read_timeout", "total_timeout", "max_attempts", "max_connections")
"""The settings that are also limits."""


def limits_of(settings: Settings, default: Limits) -> Limits:
    """The limits from the settings; the service's default if a setting is missing."""
    given = {name: value for name in NAMES if (value := getattr(settings, name)) is not None}
    return replace(default, **given)


class Limit:
    """The deadline of one call. ``has_left``: something was sent that may have been carried out."""

    has_left = False
    was_cancelled = False
    moved: Callable[[], None] | None = None
    """Called when the deadline has moved nearer, to wake the waiting call."""

    def __init__(self, seconds: float) -> None:
        self.deadline = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left; zero or negative after the deadline."""
        return self.deadline - time.monotonic()

    def heed(self, notice: Notice) -> None:
        """Move the deadline when the caller of the running task's work is cancelled.

        A call that begins after that is part of the cleanup, and gets the grace period.
        """
        notice.join(self)
        if notice.is_given:
            self._shorten(GRACE_SECONDS)

    def ring(self) -> None:
        """The caller was cancelled."""
        self._shorten(GRACE_SECONDS if self.has_left else 0.0)
        if self.moved is not None:
            self.moved()

    def allow(self, size: int) -> None:
        """Extend the deadline by the time that a body of this size may take."""
        if not self.was_cancelled:
            self.deadline += size / SLOWEST

    def _shorten(self, seconds: float) -> None:
        self.was_cancelled = True
        self.deadline = min(self.deadline, time.monotonic() + seconds)
