"""Errors of artifacts, aliases and rollouts."""

from __future__ import annotations

from collections.abc import Sequence

from holdall.errors.core import HoldallError, InvalidRequestError

__all__ = [
    "InvalidArtifactError",
    "InvalidAliasError",
    "InvalidWeightError",
    "ArtifactNotFoundError",
    "AliasNotFoundError",
    "ArtifactChangedError",
    "ArtifactInUseError",
    "ProtectedAliasError",
    "VersionsExhaustedError",
    "RolloutError",
]


class InvalidArtifactError(InvalidRequestError):
    """An invalid name or version of an artifact, or an object that is not a manifest."""

    code = "invalid-artifact"


class InvalidAliasError(InvalidRequestError):
    """An alias with a reserved name, or with an impossible split."""

    code = "invalid-alias"


class InvalidWeightError(InvalidAliasError, TypeError):
    """A weight that is missing or not a whole number."""

    code = "invalid-weight"


class ArtifactNotFoundError(HoldallError, LookupError):
    """There is no such artifact or version, or it was deleted."""

    code = "artifact-not-found"


class AliasNotFoundError(HoldallError, LookupError):
    """The artifact has no such alias."""

    code = "alias-not-found"


class ArtifactChangedError(HoldallError):
    """An artifact or alias is not as the caller expected (``expect_…=``). Nothing was done."""

    code = "artifact-changed"


class ArtifactInUseError(HoldallError):
    """Aliases serve the version that the caller wants to delete; ``aliases`` are their names."""

    code = "artifact-in-use"

    def __init__(self, message: str, *, aliases: Sequence[str] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.aliases = tuple(aliases)


class ProtectedAliasError(HoldallError, PermissionError):
    """A protected alias is changed, moved or deleted only with an explicit option."""

    code = "protected-alias"


class VersionsExhaustedError(HoldallError, OverflowError):
    """An artifact has had 999,999 versions; no number is left."""

    code = "versions-exhausted"


class RolloutError(HoldallError):
    """A staged rollout does not exist, has ended, or is in the wrong state for the call."""

    code = "rollout"
