"""Credentials that are renewed before they expire, once for all threads.

A quarter of an hour before the end the first to ask starts a renewal in the background, and everybody goes on with
the old ones. Ten minutes before the end everybody waits for one and the same renewal. One that fails is tried again
a little later; until the old credentials have expired, they stay in use.

**Fork.** The thread that renews does not live on in a child, and a lock may be held by one that does not: the child
begins with a new lock and no renewal under way.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from math import inf

from holdall.backends.aws.signer import Credentials
from holdall.backends.fork import call_after_fork
from holdall.core.frozen import dataclass
from holdall.errors import CredentialsError

_EARLY = 15 * 60.0
_LATE = 10 * 60.0
_PAUSE = 30.0
"""Between a renewal that failed and the next, so that a dead endpoint does not delay every request."""


@dataclass(frozen=True, slots=True)
class _Held:
    """The credentials in use; from ``early`` on they are renewed beside the work, from ``late`` on before it."""

    credentials: Credentials
    early: float
    late: float


class _Renewal:
    """One loading under way, that others can wait for."""

    __slots__ = ("ended", "error", "result")

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.result: Credentials | None = None
        self.error: Exception | None = None


class RenewedCredentials:
    """What ``load`` gives, kept while it is good. Safe to share between threads, and to keep over a fork.

    ``forget`` is called before a load that must not come from a cache: after the service rejected what we had, or
    in the child of a fork that happened in the middle of a load.
    """

    def __init__(
        self,
        load: Callable[[], Credentials],
        *,
        forget: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._load = load
        self._forget = forget
        self._clock = clock
        self._held: _Held | None = None
        self._lock = threading.Lock()
        self._renewal: _Renewal | None = None
        self._distrust = False
        call_after_fork(self.after_fork)

    def peek(self) -> Credentials | None:
        """The credentials to sign with now, if they are at hand; otherwise None."""
        held = self._held
        if held is None:
            return None
        now = self._clock()
        if now < held.early:
            return held.credentials
        if now < held.late:
            self._renew_beside()
            return held.credentials
        return None

    def current(self) -> Credentials:
        """Credentials to sign with now. If none are at hand, load them, or wait for the thread that does."""
        return self.peek() or self._wait_for_renewal()

    def renew(self, rejected: Credentials) -> None:
        """Drop these credentials, which the service would not take; those that replaced them already stay."""
        with self._lock:
            if self._held is not None and self._held.credentials == rejected:
                self._held = None
                self._distrust = True

    def _renew_beside(self) -> None:
        with self._lock:
            if self._renewal is not None:
                return
            renewal = self._renewal = _Renewal()
        try:
            threading.Thread(
                target=self._perform, args=(renewal,), name="holdall-credentials", daemon=True
            ).start()
        except RuntimeError:  # no threads to be had now: later, those who need new ones load them themselves
            self._end(renewal)

    def _wait_for_renewal(self) -> Credentials:
        while True:
            with self._lock:
                held = self._held
                if held is not None and self._clock() < held.late:
                    return held.credentials
                ours = self._renewal is None
                renewal = self._renewal = self._renewal or _Renewal()
            if ours:
                self._perform(renewal)
            else:
                renewal.ended.wait()
            if renewal.error is not None:
                raise renewal.error
            if renewal.result is not None:
                return renewal.result
            # the thread that loaded was interrupted: another one has to load

    def _perform(self, renewal: _Renewal) -> None:
        try:
            if self._distrust:
                self._distrust = False
                self._forget()
            loaded = self._load()
            held = self._hold(loaded)
            with self._lock:
                self._held = held
            renewal.result = loaded
        except Exception as error:  # noqa: BLE001 - it goes to all who wait, or the old credentials do
            renewal.result = self._keep_on(error)
            renewal.error = error if renewal.result is None else None
        finally:
            self._end(renewal)

    def _end(self, renewal: _Renewal) -> None:
        with self._lock:
            if self._renewal is renewal:
                self._renewal = None
        renewal.ended.set()

    def _hold(self, loaded: Credentials) -> _Held:
        if loaded.expires is None:
            return _Held(loaded, inf, inf)
        now = self._clock()
        left = loaded.expires - now
        if left <= 0:
            raise CredentialsError(
                f"the credentials that were loaded had expired {-left:.0f} seconds before",
                hint="check this machine's clock, and the source of the credentials",
            )
        if left > _EARLY:
            return _Held(loaded, loaded.expires - _EARLY, loaded.expires - _LATE)
        # Born short-lived, or handed out again: asking at every request would not make them any fresher.
        return _Held(loaded, now + left / 2, now + left * 3 / 4)

    def _keep_on(self, error: Exception) -> Credentials | None:
        """The old credentials if they are still good, with the next attempt put off; otherwise None."""
        with self._lock:
            held = self._held
            if held is None or held.credentials.expires is None:
                return None
            now = self._clock()
            end = held.credentials.expires
            if now >= end:
                return None
            again = min(now + _PAUSE, end)
            self._held = _Held(held.credentials, again, max(held.late, again))
        import logging  # only where there is something to say

        logging.getLogger(__name__).warning(
            "renewing the AWS credentials failed (%s); those in use are good for another %.0f seconds",
            error.message if isinstance(error, CredentialsError) else type(error).__name__,
            end - now,
        )
        return held.credentials

    def after_fork(self) -> None:
        """Begin anew in a child: the other threads, and what they were doing, are not here."""
        self._lock = threading.Lock()
        if self._renewal is not None:
            self._renewal = None
            self._distrust = True
