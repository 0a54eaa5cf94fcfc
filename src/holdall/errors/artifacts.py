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
    """The name or version of an artifact is invalid, or an object is not a manifest."""

    code = "invalid-artifact"


class InvalidAliasError(InvalidRequestError):
    """The name of an alias is reserved, or its split between versions is impossible."""

    code = "invalid-alias"


class InvalidWeightError(InvalidAliasError, TypeError):
    """A weight is missing or not a whole number."""

    code = "invalid-weight"


class ArtifactNotFoundError(HoldallError, LookupError):
    """The artifact or the version does not exist, or was deleted."""

    code = "artifact-not-found"


class AliasNotFoundError(HoldallError, LookupError):
    """The artifact has no alias with this name."""

    code = "alias-not-found"


class ArtifactChangedError(HoldallError):
    """An artifact or alias differs from what the caller expected (``expect_…=``). Nothing was changed."""

    code = "artifact-changed"


class ArtifactInUseError(HoldallError):
    """Aliases serve the version that the caller wants to delete; ``aliases`` are their names."""

    code = "artifact-in-use"

    def __init__(self, message: str, *, aliases: Sequence[str] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.aliases = tuple(aliases)


class ProtectedAliasError(HoldallError, PermissionError):
    """The alias is protected: it can be changed or deleted only with ``allow_protected=True``."""

    code = "protected-alias"


class VersionsExhaustedError(HoldallError, OverflowError):
    """The artifact has used all 999,999 version numbers."""

    code = "versions-exhausted"


class RolloutError(HoldallError):
    """A staged rollout does not exist, has ended, or is in the wrong state for the call."""

    code = "rollout"
