"""An alias: a name that serves one version, or splits traffic between several.

Pure; `resolve` picks a version and writes nothing. One version, or two of which the second has a weight from 0 to 99,
are stored exactly as versioned stores them. Further arms are stored in Holdall's own note beside the alias.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeAlias

from holdall.artifacts.alias.traffic import Split
from holdall.artifacts.name import (
    LATEST,
    check_alias,
    check_name,
    display_version,
    encode_alias_pk,
    encode_version_sk,
)
from holdall.core.frozen import dataclass
from holdall.core.internal import internal
from holdall.errors import InvalidAliasError, InvalidOptionsError, InvalidWeightError

Version: TypeAlias = int | str
"""A version as callers may write it: 5, "5", "000005" or "LATEST"."""

Arms: TypeAlias = tuple[tuple[str, int], ...]
"""Versions, as sort keys, and the weight of each; the primary first."""

_WHOLE = 100
_MOST_ARMS = 20
_HEAVIEST = 1_000_000


class Dice:
    """The random generator for picks without a key: a function that returns numbers from 0 up to 1.

    All dice are equal, so that aliases with the same content are.
    """

    __slots__ = ("roll",)

    def __init__(self, roll: Callable[[], float] | None = None) -> None:
        self.roll = roll

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dice)

    def __hash__(self) -> int:
        return 1

    def __repr__(self) -> str:
        return "Dice()"


@dataclass(frozen=True, slots=True)
class Alias:
    """An alias of an artifact: the versions that it serves, and their weights.

    ``pk``, ``sk``, ``update_at``, ``version``, ``secondary_version`` (both with six digits, as stored) and
    ``secondary_version_weight`` are the fields of the package versioned, in the same form; if there are more than two
    versions, ``version`` is the one with the highest weight. ``arms`` are all versions with their weights. ``revision``
    changes with every change. If ``protected``, the alias can be changed only with ``allow_protected=True``.
    """

    pk: str
    sk: str
    update_at: datetime
    version: str
    secondary_version: str | None = None
    secondary_version_weight: int | None = None
    arms: Arms = ()
    protected: bool = False
    revision: str | None = None
    dice: Dice = Dice()

    @classmethod
    @internal
    def new(
        cls,
        name: str,
        alias: str,
        version: Version | None = None,
        secondary_version: Version | None = None,
        secondary_version_weight: int | None = None,
        *,
        weights: Mapping[Version, int] | None = None,
        now: datetime | None = None,
    ) -> Alias:
        """Make an alias that is not stored; without a version, it serves LATEST."""
        arms = arms_of(version, secondary_version, secondary_version_weight, weights)
        moment = datetime.now(UTC) if now is None else now  # the flow that writes an alias passes the time
        return cls(encode_alias_pk(check_name(name)), check_alias(alias), moment, *two_arms(arms), arms)

    @property
    def name(self) -> str:
        """The name of the artifact."""
        return self.pk[2 : -len("-alias")]

    @property
    def alias(self) -> str:
        """The name of the alias."""
        return self.sk

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions that it serves, without leading zeros, the primary first."""
        return tuple(display_version(sk) for sk, _ in self.arms)

    @property
    def shares(self) -> dict[str, float]:
        """The share of the traffic that each version gets, from 0 to 1."""
        return _split_of(self.arms).shares

    def resolve(
        self,
        key: str | int | None = None,
        *,
        salt: str | None = None,
        random: Callable[[], float] | None = None,
        override: Version | None = None,
    ) -> str:
        """Pick the version to serve; this neither reads nor writes anything.

        With a ``key``, for example a user's id, the result is the same each time; when weights change, only as many
        keys move as necessary, and only to versions that grow. ``salt`` is the alias's name by default: with equal
        salts and versions, keys are distributed alike; with different salts, independently. Without a key, the version
        is random; ``random`` is a function that returns numbers from 0 up to 1, like ``random.random``. ``override``
        demands one of the alias's versions.
        """
        if override is not None:
            return self._check_served(override)
        split = _split_of(self.arms)
        if key is not None:
            return split.pick(key, self.sk if salt is None else salt)
        roll = random or self.dice.roll
        if roll is None:
            raise InvalidOptionsError(
                "an alias that was not read from a database cannot pick a version at random",
                hint="pass key=..., or random=random.random",
            )
        return split.pick_random(roll)

    def _check_served(self, version: Version) -> str:
        wanted = display_version(encode_version_sk(version))
        if wanted not in self.versions:
            raise InvalidAliasError(
                f"the alias {self.alias!r:.60} of {self.name!r:.60} does not serve version {wanted}",
                hint=f"it serves {', '.join(self.versions)}",
            )
        return wanted

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the package versioned, with versions without leading zeros.

        `describe` returns everything.
        """
        second = self.secondary_version
        return {
            "name": self.name,
            "alias": self.alias,
            "update_at": self.update_at,
            "version": display_version(self.version),
            "secondary_version": None if second is None else display_version(second),
            "secondary_version_weight": self.secondary_version_weight,
        }

    def describe(self) -> dict[str, Any]:
        """Return everything known about the alias, as JSON-compatible values; times are in ISO 8601."""
        return {
            **self.to_dict(),
            "update_at": self.update_at.isoformat(),
            "weights": {display_version(sk): weight for sk, weight in self.arms},
            "shares": self.shares,
            "protected": self.protected,
            "revision": self.revision,
        }


@lru_cache(1024)
def _split_of(arms: Arms) -> Split:
    return Split(tuple((display_version(sk), weight) for sk, weight in arms))


def arms_of(
    version: Version | None,
    secondary_version: Version | None,
    secondary_version_weight: int | None,
    weights: Mapping[Version, int] | None = None,
) -> Arms:
    """Check a caller's versions and weights, and return them as arms."""
    if weights is not None:
        if (version, secondary_version, secondary_version_weight) != (None, None, None):
            raise InvalidAliasError(
                "weights cannot be combined with a version",
                hint="name all versions in weights, or leave it out",
            )
        return _weigh(weights)
    primary = encode_version_sk(version)
    if secondary_version is None:
        if secondary_version_weight is not None:
            raise InvalidAliasError(
                "secondary_version_weight needs a secondary_version",
                hint="pass both or neither",
            )
        return ((primary, _WHOLE),)
    weight = secondary_version_weight
    if isinstance(weight, bool) or not isinstance(weight, int):
        raise InvalidWeightError(
            f"secondary_version_weight must be a whole number from 0 to 99, not {weight!r:.60}",
            hint="a secondary_version needs a weight: its percentage of the traffic",
        )
    if not 0 <= weight < _WHOLE:
        raise InvalidAliasError(f"secondary_version_weight must be a whole number from 0 to 99, not {weight}")
    secondary = encode_version_sk(secondary_version)
    return _check_arms(((primary, _WHOLE - weight), (secondary, weight)))


def _weigh(weights: Mapping[Version, int]) -> Arms:
    if not isinstance(weights, Mapping) or not 1 <= len(weights) <= _MOST_ARMS:
        raise InvalidAliasError(
            f"weights must be a mapping of 1 to {_MOST_ARMS} versions to their weights, not {weights!r:.60}",
            hint="as in {1: 90, 2: 10}",
        )
    arms = []
    for version, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int):
            raise InvalidWeightError(
                f"the weight of version {version!r:.20} must be a whole number, not {weight!r:.60}"
            )
        if not 0 <= weight <= _HEAVIEST:
            raise InvalidAliasError(
                f"the weight of version {version!r:.20} must be from 0 to {_HEAVIEST:,}, not {weight}"
            )
        arms.append((encode_version_sk(version), weight))
    if not any(weight for _, weight in arms):
        raise InvalidAliasError("all weights are 0", hint="give at least one version a weight above 0")
    ordered = tuple(sorted(arms, key=lambda arm: -arm[1]))
    return _check_arms(ordered)


def _check_arms(arms: Arms) -> Arms:
    versions = [sk for sk, _ in arms]
    if len(set(versions)) < len(versions):
        twice = next(sk for sk in versions if versions.count(sk) > 1)
        raise InvalidAliasError(
            f"version {display_version(twice)} appears twice in the split",
            hint="each version may appear only once",
        )
    if LATEST in versions and len(versions) > 1:
        raise InvalidAliasError(
            "LATEST cannot be part of a split, because it changes with every put",
            hint="publish it, and use the number of the new version",
        )
    return arms


def two_arms(arms: Arms) -> tuple[str, str | None, int | None]:
    """A split as versioned can store it: all of it, if it has one arm or two that sum to 100; else the heaviest arm."""
    if is_plain(arms) and len(arms) == 2:
        return arms[0][0], arms[1][0], arms[1][1]
    return max(arms, key=lambda arm: arm[1])[0], None, None


def is_plain(arms: Arms) -> bool:
    """Whether versioned's fields can express the whole split."""
    if len(arms) == 1:
        return True
    return len(arms) == 2 and arms[0][1] + arms[1][1] == _WHOLE and arms[1][1] < _WHOLE
