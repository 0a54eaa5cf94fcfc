"""Credentials that take more than reading a file: assumed roles, SSO, web identities, processes. botocore finds them.

Only its public interface is used, and it is imported only here and only when it is needed. It reads the environment
of this process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from holdall.backends.aws.form import credentials_from_parts
from holdall.backends.aws.signer import Credentials
from holdall.errors import CredentialsError

INSTALL = 'install it with: pip install "holdall[aws]"'

_FARTHEST = 1 << 22
"""Seconds, about 48 days: credentials that last longer count as permanent."""

_TELLING = frozenset(
    {
        "ConnectTimeoutError",
        "EndpointConnectionError",
        "EndpointResolutionError",
        "InfiniteLoopConfigError",
        "InvalidConfigError",
        "MissingDependencyException",
        "NoRegionError",
        "PartialCredentialsError",
        "ProfileNotFound",
        "RefreshWithMFAUnsupportedError",
        "SSOTokenLoadError",
        "TokenRetrievalError",
        "UnauthorizedSSOTokenError",
    }
)
"""botocore's errors whose text is useful and cannot contain a secret. Others quote files, processes and replies."""


class BotocoreChain:
    """botocore's chain, used again whenever credentials are due. Not safe for two threads at once."""

    def __init__(
        self,
        profile: str | None = None,
        region: str | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._profile = profile
        self._region = region
        self._clock = clock
        self._found: Any = None

    def load(self, why: str) -> Credentials:
        """The credentials that botocore finds. ``why`` it is needed begins every error."""
        frozen, trouble = self._ask()
        if trouble:
            hint = INSTALL if trouble is _MISSING else None
            raise CredentialsError(f"{why}; {trouble}", hint=hint)
        left = _seconds_left(self._found)
        return credentials_from_parts(
            f"{why}; botocore",
            frozen.access_key,
            frozen.secret_key,
            frozen.token,
            None if left is None else self._clock() + left,
        )

    def account(self) -> str | None:
        """The ID of the account that the credentials belong to, if it is known."""
        frozen, trouble = self._ask()
        return None if trouble else getattr(frozen, "account_id", None)

    def forget(self) -> None:
        """Make the next load start from scratch."""
        self._found = None

    def _ask(self) -> tuple[Any, str]:
        """The credentials, or what went wrong; not raised here, so that the error does not chain botocore's."""
        try:
            import botocore.session
            from botocore.exceptions import BotoCoreError, ClientError
        except ModuleNotFoundError:
            return None, _MISSING
        try:
            if self._found is None:
                self._found = self._session(botocore.session.Session).get_credentials()
            if self._found is None:
                return None, "botocore found no credentials"
            return self._found.get_frozen_credentials(), ""
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "an error")
            return None, f"{error.operation_name} answered {code}"
        except (
            BotoCoreError,
            OSError,
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            RuntimeError,
        ) as error:
            # the errors after BotoCoreError are caused by odd output of a process or an unreadable token file
            return None, describe_error(error)

    def _session(self, kind: Callable[..., Any]) -> Any:
        session = kind(profile=self._profile)
        if session.get_config_variable("region") is None:
            session.set_config_variable("region", self._region or os.environ.get("AWS_REGION"))
        return session


def describe_error(error: Exception) -> str:
    """A description of an error from botocore that reveals no secret."""
    name = type(error).__name__
    return f"botocore failed: {error}" if name in _TELLING else f"botocore failed with {name}"


_MISSING = "this needs botocore, which is not installed"


def _seconds_left(found: Any) -> int | None:
    """How long the credentials last, rounded up. botocore does not report it, but it reports whether a refresh is
    needed for a given number of seconds to be left."""
    needed = getattr(found, "refresh_needed", None)
    if needed is None or not needed(refresh_in=_FARTHEST):
        return None
    few, many = 0, _FARTHEST
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if needed(refresh_in=middle) else (middle, many)
    return many
