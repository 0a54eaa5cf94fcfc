"""Traffic: which of several versions serves a key.

Pure. A `Split` is the arms of an alias, each a version with a weight. A key always gets the same arm while the weights
stay the same, on every machine, and nothing is stored for it. A change of weights moves as few keys as the new shares
require: an arm that grows only gains keys; one that shrinks or is removed only loses its own.

This is weighted rendezvous hashing: each arm draws a score for the key, and the lowest wins. The score of an arm
depends only on the salt, the key, and the arm's own version and weight. Applications rely on the rule for their users,
so it must never change (`docs/concepts/traffic.md` has it with golden vectors)::

    framed(text) = the length of the text's UTF-8 bytes, as 8 bytes, big-endian; then these bytes
    digest       = SHA-256 of framed(salt) + framed(version) + framed(key)
    h            = the first 8 bytes of the digest as a big-endian number, without its lowest 11 bits: 53 bits
    u            = (h + 0.5) / 2**53
    score        = -ln(u) / weight, all in double precision; of equal scores, that of the earlier arm wins

A key that is a whole number is treated as its decimal text. Invalid input raises `InvalidOptionsError`, whose message
never shows the key: it may be a person's name.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from hashlib import sha256
from itertools import accumulate
from math import inf, log
from struct import Struct
from typing import Any, NoReturn, TypeAlias

from holdall.errors import InvalidOptionsError

HEAVIEST = 2**53
"""The largest weight of an arm: up to here, a double represents every whole number."""

_SPAN = 2.0**53
_MANY_SALTS = 32
_first_number = Struct(">Q").unpack_from
_keep = object.__setattr__

_Contestant: TypeAlias = "tuple[str, float, Callable[[], Any]]"
"""An arm with a salt: its version, its weight, and a function that copies the hash of the salt and the version."""


class Split:
    """Versions and their weights: ``Split((("1", 95), ("2", 5)))``. Weights are relative; they need not sum to 100.

    Versions are distinct texts. A weight is a whole number from 0 to `HEAVIEST`; an arm with weight 0 is never picked.
    At least one arm must have a weight above 0.
    """

    __slots__ = ("_alive", "_contests", "_edges", "arms")

    arms: tuple[tuple[str, int], ...]
    _alive: tuple[tuple[str, int], ...]
    _edges: tuple[int, ...]
    _contests: dict[str, tuple[_Contestant, ...]]

    def __init__(self, arms: Iterable[tuple[str, int]]) -> None:
        checked = _check_arms(arms)
        alive = tuple(arm for arm in checked if arm[1])
        _keep(self, "arms", checked)
        _keep(self, "_alive", alive)
        _keep(self, "_edges", tuple(accumulate(weight for _, weight in alive)))
        _keep(self, "_contests", {})

    @property
    def shares(self) -> dict[str, float]:
        """The share of all keys that each version gets, in the order of the arms; the shares sum to 1."""
        total = self._edges[-1]
        return {version: weight / total for version, weight in self.arms}

    def pick(self, key: str | int, salt: str) -> str:
        """Pick the version for this key; it stays the same while salt, versions and weights do."""
        # even with one arm: a bad key must not first fail on the day of the first canary
        framed = _frame_key(key)
        try:
            contest = self._contests[salt]
        except (KeyError, TypeError):
            contest = self._prepare(salt)
        chosen = contest[0][0]
        if len(contest) == 1:
            return chosen
        lowest = inf
        for version, weight, begun in contest:
            digest = begun()
            digest.update(framed)
            score = -log(((_first_number(digest.digest())[0] >> 11) + 0.5) / _SPAN) / weight
            if score < lowest:
                lowest, chosen = score, version
        return chosen

    def pick_random(self, random: Callable[[], float]) -> str:
        """Pick a version at random, by weight; ``random`` returns numbers from 0 up to, but not including, 1."""
        if len(self._alive) == 1:
            return self._alive[0][0]
        drawn = random()
        if not 0 <= drawn < 1:
            raise InvalidOptionsError(
                f"random must return a number from 0 up to, but not including, 1; it returned {drawn!r:.60}",
                hint="pass a function such as random.random",
            )
        point = drawn * self._edges[-1]
        # leave out the last edge: rounding can put a point on it
        return self._alive[bisect_right(self._edges, point, 0, len(self._edges) - 1)][0]

    def _prepare(self, salt: str) -> tuple[_Contestant, ...]:
        """The arms with the beginnings of their hashes, cached for the next key with the same salt."""
        if not isinstance(salt, str):
            raise InvalidOptionsError(f"salt must be a string, not {type(salt).__name__}")
        begun = sha256(_frame(salt, "the salt"))
        contest = tuple(_contestant(version, weight, begun.copy()) for version, weight in self._alive)
        if len(self._contests) >= _MANY_SALTS:
            self._contests.clear()  # a caller that generates salts must not fill the memory
        self._contests[salt] = contest
        return contest

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a split is immutable: {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a split is immutable: {name} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Split):
            return NotImplemented
        return self.arms == other.arms

    def __hash__(self) -> int:
        return hash(self.arms)

    def __reduce__(self) -> tuple[Any, ...]:
        return Split, (self.arms,)  # unfinished hashes cannot be pickled

    def __repr__(self) -> str:
        return f"Split({self.arms!r})"


def _contestant(version: str, weight: int, begun: Any) -> _Contestant:
    begun.update(_frame(version, "a version"))
    return version, float(weight), begun.copy


def _frame_key(key: object) -> bytes:
    if isinstance(key, str):
        return _frame(key, "the key")
    if not isinstance(key, int) or isinstance(key, bool):
        raise InvalidOptionsError(
            f"key must be a string or a whole number, not {type(key).__name__}",
            hint="pass an id that stays the same for a user, as text; without one, leave out key to pick at random",
        )
    try:
        digits = int.__repr__(key)
    except ValueError:  # Python does not convert numbers with thousands of digits
        raise InvalidOptionsError(
            "key is a number with too many digits", hint="pass it as a string"
        ) from None
    return _frame(digits, "the key")


def _frame(text: str, what: str) -> bytes:
    """The text's bytes, preceded by their length, so that different sequences of texts never give the same bytes."""
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise InvalidOptionsError(
            f"{what} contains a lone surrogate, so it cannot be encoded in UTF-8"
        ) from None
    return len(encoded).to_bytes(8, "big") + encoded


def _check_arms(arms: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    checked: dict[str, int] = {}
    for arm in arms:
        version, weight = _check_arm(arm)
        if version in checked:
            raise InvalidOptionsError(
                f"version {version!r:.60} appears twice in the split",
                hint="name it once, with the sum of its weights",
            )
        checked[version] = weight
    if not any(checked.values()):
        raise InvalidOptionsError(
            "all weights of the split are 0" if checked else "a split needs at least one version"
        )
    return tuple(checked.items())


def _check_arm(arm: object) -> tuple[str, int]:
    match arm:
        case (str(version), int(weight)) if version and not isinstance(weight, bool):
            pass
        case _:
            raise InvalidOptionsError(
                f"{arm!r:.60} cannot be part of a split",
                hint='pass pairs of a version, as text, and its weight, a whole number: ("1", 95)',
            )
    if not 0 <= weight <= HEAVIEST:
        problem = "below 0" if weight < 0 else "too large"
        raise InvalidOptionsError(
            f"the weight of version {version!r:.60} is {problem}", hint=f"use a weight from 0 to {HEAVIEST}"
        )
    _frame(version, "a version")
    return version, weight
