"""Credentials that are renewed before they expire, once for all threads.

From 15 minutes before the expiry on, the first caller starts a renewal in the background, and all callers continue with
the old credentials. From 10 minutes before on, all callers wait for one common renewal. A renewal that fails is
repeated a little later; the old credentials stay in use until they have expired.

**Fork.** A forked child has neither the renewing thread nor a thread that may have held the lock, so it starts with a
new lock and without a renewal in progress.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Any

from holdall.backends.aws.signer import Credentials
from holdall.backends.fork import call_after_fork
from holdall.backends.port.once import BlockingOnce, Flight, Memo
from holdall.core.frozen import dataclass
from holdall.core.port import run
from holdall.core.telemetry import warn
from holdall.errors import CredentialsError

_EARLY = 15 * 60.0
_LATE = 10 * 60.0
_PAUSE = 30.0
"""Seconds between a failed renewal and the next, so that an unreachable endpoint does not delay every request."""


@dataclass(frozen=True, slots=True)
class _Held:
    """The credentials in use; from ``early`` on they are renewed in the background, from ``late`` on callers wait."""

    credentials: Credentials
    early: float
    late: float


class _Unkept(Memo):
    """Forgets the outcome of each flight, because credentials are kept only for as long as they are valid."""

    def keep(self, flight: Flight[Any]) -> None:
        """Keep nothing."""


class RenewedCredentials:
    """The result of ``load``, kept while it is valid. Safe to share between threads, and across a fork.

    ``forget`` is called before a load that must not come from a cache: after the service has rejected the credentials,
    or in a child that was forked during a load.
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
        self._once = BlockingOnce(_Unkept())
        self._is_loading = self._is_beside = self._distrust = False
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
        return self.peek() or run(self._once.get(self._perform))

    def renew(self, rejected: Credentials) -> None:
        """Drop these credentials, which the service rejected; if they have already been replaced, keep the new ones."""
        with self._lock:
            if self._held is not None and self._held.credentials == rejected:
                self._held = None
                self._distrust = True

    def _renew_beside(self) -> None:
        with self._lock:
            if self._is_beside:
                return
            self._is_beside = True
        try:
            threading.Thread(target=self._renew, name="holdall-credentials", daemon=True).start()
        except RuntimeError:  # no thread can be started: later callers load the credentials themselves
            self._is_beside = False

    def _renew(self) -> None:
        try:
            with suppress(Exception):  # callers that wait for this renewal get the error
                run(self._once.get(self._perform))
        finally:
            self._is_beside = False

    async def _perform(self) -> Credentials:
        """Load the credentials, unless another caller has just done so."""
        held = self._held
        if held is not None and self._clock() < held.early:
            return held.credentials
        self._is_loading = True
        try:
            if self._distrust:
                self._distrust = False
                self._forget()
            loaded = self._load()
            held = self._hold(loaded)
            with self._lock:
                self._held = held
            return loaded
        except Exception as error:
            found = self._keep_on(error)
            if found is None:
                raise
            return found
        finally:
            self._is_loading = False

    def _hold(self, loaded: Credentials) -> _Held:
        if loaded.expires is None:
            return _Held(loaded, inf, inf)
        now = self._clock()
        left = loaded.expires - now
        if left <= 0:
            raise CredentialsError(
                f"the loaded credentials expired {-left:.0f} seconds ago",
                hint="check this machine's clock, and the source of the credentials",
            )
        if left > _EARLY:
            return _Held(loaded, loaded.expires - _EARLY, loaded.expires - _LATE)
        # short-lived, or the same as before: loading them for every request would not make them fresher
        return _Held(loaded, now + left / 2, now + left * 3 / 4)

    def _keep_on(self, error: Exception) -> Credentials | None:
        """The old credentials if they are still valid, and the next attempt is postponed; otherwise None."""
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
        warn(
            "backends.aws.renewal",
            "renewing the AWS credentials failed (%s); the current ones are valid for another %.0f seconds",
            error.message if isinstance(error, CredentialsError) else type(error).__name__,
            end - now,
        )
        return held.credentials

    def after_fork(self) -> None:
        """Start afresh in a forked child, which has none of the other threads and their work."""
        self._lock = threading.Lock()
        self._is_beside = False
        if self._is_loading:
            self._is_loading, self._distrust = False, True
