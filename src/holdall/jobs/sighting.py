"""Sightings: when a lease that others hold is over.

Pure. No two machines have the same clock, and one that is wrong must neither keep a job for ever nor have it taken
from a living worker. So a lease is over when it has been seen unchanged for as long as it was to last, by the
watcher's own steady clock: a living worker changes it three times as often. For a watcher that never stays so long,
one that is started for a moment to drain a queue, the clock on the wall counts, with a margin for how far clocks may be
apart.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from holdall.jobs.record import JobRecord

MARGIN = timedelta(seconds=30)
"""How far the clocks of two machines may be apart before a lease counts as over too early."""

_MANY = 1000


class Sightings:
    """The leases that one worker has seen, each since when it has looked the same. ``brief``: it will not stay."""

    def __init__(self, *, brief: bool = False) -> None:
        self._brief = brief
        self._seen: dict[str, tuple[str, float, float]] = {}
        self._many = _MANY

    def is_over(self, record: JobRecord, steady: float, now: datetime) -> bool:
        """Whether a leased job may be taken; ``steady`` is a clock of seconds that never jumps."""
        lease = record.lease
        assert lease is not None
        if self._brief and now >= lease.until + MARGIN:
            return True
        known = self._seen.get(record.id)
        since = known[1] if known is not None and known[0] == lease.token else steady
        self._seen[record.id] = lease.token, since, steady
        if len(self._seen) > self._many:
            self._sweep(steady, lease.seconds)
        return steady - since >= lease.seconds

    def _sweep(self, steady: float, seconds: float) -> None:
        """Forget what has not been seen for so long that it must be gone."""
        oldest = steady - 10 * seconds
        self._seen = {id: seen for id, seen in self._seen.items() if seen[2] >= oldest}
        self._many = max(_MANY, 2 * len(self._seen))
