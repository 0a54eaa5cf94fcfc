"""Turns: within one process, contenders for the same names go one at a time, threads and tasks alike.

A contender joins the lines of all its names at once; the run that began first is in front. Its turn begins when it is
first in each line and no other turn is under way there. All lines have the same order, so contenders cannot deadlock. A
turn ends with `Turn.end`, or expires after `LONGEST` seconds: the next contender then no longer waits for it, so code
that waits for another contender during its turn loses time, and nothing else. A line exists only while a contender is
in it.

**Fork.** A child has no waiting contenders: its lines start empty, and ending an inherited turn there changes nothing.
"""

from __future__ import annotations

import math
import threading
import time
from bisect import insort
from collections.abc import Callable
from datetime import datetime
from operator import attrgetter

from holdall.backends.fork import call_after_fork

LONGEST = 2.0


class Turn:
    """One contender's place in the lines of its names: waiting, under way or over."""

    __slots__ = ("_turns", "call", "last_moment", "names", "over", "since")

    def __init__(
        self, turns: Turns, names: frozenset[str], since: datetime, call: Callable[[], object]
    ) -> None:
        self._turns = turns
        self.names = names
        self.since = since
        self.call = call
        self.last_moment = math.inf
        self.over = False

    @property
    def is_waiting(self) -> bool:
        """Whether other contenders go first."""
        return self.last_moment == math.inf and not self.over

    def end(self) -> None:
        """Pass the turn on, or leave the lines; safe to call twice."""
        self._turns.end(self)


class _Line:
    __slots__ = ("under_way", "waiting")

    def __init__(self) -> None:
        self.under_way: Turn | None = None
        self.waiting: list[Turn] = []


class Turns:
    """The lines of one database in this process, by name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: dict[str, _Line] = {}
        call_after_fork(self.after_fork)

    @property
    def is_empty(self) -> bool:
        """Whether no contender has a turn or waits for one."""
        return not self._lines

    def join(self, names: frozenset[str], since: datetime, call: Callable[[], object]) -> Turn:
        """Join the lines; ``call`` is called, from any thread, when the turn begins."""
        turn = Turn(self, names, since, call)
        with self._lock:
            for name in names:
                insort(self._lines.setdefault(name, _Line()).waiting, turn, key=attrgetter("since"))
            self._begin(turn)
        return turn

    def compute_wait(self, turn: Turn, until: float) -> float:
        """How many seconds to wait before checking again; 0 when the turn began, or it is too late to wait for it."""
        with self._lock:
            now = time.monotonic()
            for each in self._under_way_before(turn):
                if now >= each.last_moment:
                    self._remove(each)
            if turn.is_waiting and now >= until:
                self._remove(turn)
            if not turn.is_waiting:
                return 0.0
            moments = [each.last_moment for each in self._under_way_before(turn)]
            return max(0.001, min([until, now + LONGEST, *moments]) - now)

    def end(self, turn: Turn) -> None:
        """Take a turn out of its lines."""
        with self._lock:
            self._remove(turn)

    def _begin(self, turn: Turn) -> None:
        """Begin a waiting turn, if it is first everywhere."""
        lines = [self._lines[name] for name in turn.names]
        if any(line.under_way is not None or line.waiting[0] is not turn for line in lines):
            return
        for line in lines:
            line.under_way = line.waiting.pop(0)
        turn.last_moment = time.monotonic() + LONGEST
        try:
            turn.call()
        except RuntimeError:  # its event loop is closed: no contender is left to take the turn
            self._remove(turn)

    def _remove(self, turn: Turn) -> None:
        turn.over = True
        for name in turn.names:
            line = self._lines.get(name)
            if line is None:
                continue
            if line.under_way is turn:
                line.under_way = None
            elif turn in line.waiting:
                line.waiting.remove(turn)
            if line.under_way is None and not line.waiting:
                del self._lines[name]
        for name in turn.names:
            line = self._lines.get(name)
            if line is not None and line.under_way is None:
                self._begin(line.waiting[0])

    def _under_way_before(self, turn: Turn) -> set[Turn]:
        """The turns that must end before a waiting one begins."""
        if not turn.is_waiting:
            return set()
        under_way = (self._lines[name].under_way for name in turn.names)
        return {each for each in under_way if each is not None}

    def after_fork(self) -> None:
        """Start with empty lines in a forked child."""
        self._lock = threading.Lock()
        self._lines = {}
