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
from math import inf

from holdall.backends.aws.signer import Credentials
from holdall.backends.fork import call_after_fork
from holdall.core.frozen import dataclass
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


class _Renewal:
    """A renewal in progress, for which other threads can wait."""

    __slots__ = ("ended", "error", "result")

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.result: Credentials | None = None
        self.error: Exception | None = None


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
        """Drop these credentials, which the service rejected; if they have already been replaced, keep the new ones."""
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
        except RuntimeError:  # no thread can be started: later callers load the credentials themselves
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
            # the loading thread was interrupted: another one must load

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
        except Exception as error:  # noqa: BLE001 - all waiting callers get it, or the old credentials
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
        import logging  # loaded only if there is something to log

        logging.getLogger(__name__).warning(
            "renewing the AWS credentials failed (%s); the current ones are valid for another %.0f seconds",
            error.message if isinstance(error, CredentialsError) else type(error).__name__,
            end - now,
        )
        return held.credentials

    def after_fork(self) -> None:
        """Start afresh in a forked child, which has none of the other threads and their work."""
        self._lock = threading.Lock()
        if self._renewal is not None:
            self._renewal = None
            self._distrust = True
