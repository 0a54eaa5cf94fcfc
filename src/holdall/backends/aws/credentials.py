"""Where credentials come from, in the same order as for AWS tools, and what the backends need from a source.

The environment, keys in the shared files, and the container and instance endpoints are read here, without loading an
SDK; botocore handles everything else. No secret appears in a repr, a log, an error, or the errors chained to it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from holdall.backends.aws.botocore_chain import BotocoreChain
from holdall.backends.aws.form import credentials_from, credentials_from_parts
from holdall.backends.aws.renewal import RenewedCredentials
from holdall.backends.aws.signer import Credentials
from holdall.errors import AwaitableRefused, CredentialsError

if TYPE_CHECKING:
    from holdall.backends.aws.profile import Profile, Settings

__all__ = ["CallableCredentials", "CredentialSource", "Credentials", "find_credentials"]

_ACCESS_KEY = "aws_access_key_id"
_BEFORE_KEYS = ("role_arn", "web_identity_token_file", "sso_role_name", "sso_account_id")
_AFTER_KEYS = ("login_session", "credential_process")
_TOKENS = ("aws_security_token", "aws_session_token")
_OLD_FILES = ("AWS_CREDENTIAL_FILE", "BOTO_CONFIG")


class CredentialSource(Protocol):
    """Provides credentials, and renews them. Safe to share between threads."""

    def peek(self) -> Credentials | None:
        """The credentials to sign with now, if they are known without any I/O; otherwise None."""

    def current(self) -> Credentials:
        """The credentials to sign with now; it may do I/O and wait."""

    def renew(self, rejected: Credentials) -> None:
        """The service rejected these credentials: the next `current` looks for others."""


def find_credentials(
    *,
    profile: str | None = None,
    region: str | None = None,
    environment: Mapping[str, str] = os.environ,
    clock: Callable[[], float] = time.time,
) -> CredentialSource:
    """The credentials of this machine. Nothing is read before the first `current`.

    In order: keys in the environment (unless ``profile`` is given); the profile's role, web identity or SSO; its keys
    in the credentials file; its process; its keys in the config file; the container's endpoint; the instance's.
    Credentials are looked up again before they expire. ``region`` is where roles are assumed unless a setting names
    another region.
    """
    chain = _Chain(profile or None, region, environment, clock)
    return RenewedCredentials(chain.load, forget=chain.forget, clock=clock)


class CallableCredentials(RenewedCredentials):
    """Credentials that your function returns.

    It returns `Credentials`, a tuple (access key, secret key, session token or None, expiry or None) or a mapping with
    ``access_key``, ``secret_key``, ``token`` and ``expires``; an expiry is a datetime, ISO text or seconds since 1970.
    It is called for the first credentials, before they expire (then in a separate thread), and after the service has
    rejected them; never by two threads at once. Its exceptions reach the caller that needed the credentials.
    """

    def __init__(self, function: Callable[[], Any], *, clock: Callable[[], float] = time.time) -> None:
        def load() -> Credentials:
            given = function()
            if isinstance(given, Awaitable):
                if hasattr(given, "close"):
                    given.close()
                raise AwaitableRefused(
                    "the credentials function must not be async",
                    hint="pass a plain function; it is called in a thread",
                )
            return credentials_from("the credentials function", given)

        super().__init__(load, clock=clock)


class _Chain:
    """Looks through all sources, once per load."""

    def __init__(
        self,
        profile: str | None,
        region: str | None,
        environment: Mapping[str, str],
        clock: Callable[[], float],
    ) -> None:
        self._profile = profile
        self._environment = environment
        self._clock = clock
        self._botocore = BotocoreChain(profile, region, clock=clock)

    def load(self) -> Credentials:
        """The first credentials found; `CredentialsError` lists the places without any, and why."""
        found = self._in_environment()
        if isinstance(found, Credentials):
            return found
        from holdall.backends.aws.metadata import (
            container_credentials,  # not loaded if the environment has keys
            instance_credentials,
        )
        from holdall.backends.aws.profile import read_profile

        looked = [("environment", found)]
        profile = read_profile(self._profile, self._environment)
        for place, look in (
            (f"profile {profile.name}", self._in_profile),
            ("container", lambda _: container_credentials(self._environment)),
            ("instance", lambda profile: instance_credentials(self._environment, profile, self._clock)),
        ):
            found = look(profile)
            if isinstance(found, Credentials):
                return found
            looked.append((place, found))
        raise CredentialsError(
            "no AWS credentials were found\n" + "\n".join(f"  {place}: {why}" for place, why in looked),
            hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile that has credentials",
        )

    def forget(self) -> None:
        """Make the next load start from scratch."""
        self._botocore.forget()

    def _in_environment(self) -> Credentials | str:
        if self._profile is not None:
            return "ignored, because a profile was named"
        given = self._environment
        access_key = given.get("AWS_ACCESS_KEY_ID")
        if not access_key:
            return "AWS_ACCESS_KEY_ID is not set"
        secret_key = given.get("AWS_SECRET_ACCESS_KEY")
        if not secret_key:
            raise CredentialsError(
                "AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not", hint="set both, or unset both"
            )
        token = given.get("AWS_SECURITY_TOKEN") or given.get("AWS_SESSION_TOKEN")
        expiry = given.get("AWS_CREDENTIAL_EXPIRATION")
        return credentials_from_parts("the environment", access_key, secret_key, token, expiry)

    def _in_profile(self, profile: Profile) -> Credentials | str:
        """The profile's keys, or the credentials that botocore gets from its settings, in botocore's order."""
        if self._profile is None and self._environment.get("AWS_WEB_IDENTITY_TOKEN_FILE"):
            return self._botocore.load("AWS_WEB_IDENTITY_TOKEN_FILE is set")
        for setting in _BEFORE_KEYS:
            if profile.get(setting):
                return self._botocore.load(f"profile {profile.name} has a {setting}")
        if _ACCESS_KEY in profile.credentials:
            return _keys(profile, profile.credentials, "the credentials file")
        for setting in _AFTER_KEYS:
            if profile.get(setting):
                return self._botocore.load(f"profile {profile.name} has a {setting}")
        if _ACCESS_KEY in profile.config:
            return _keys(profile, profile.config, "the config file")
        for variable in _OLD_FILES:
            if self._environment.get(variable):
                return self._botocore.load(f"{variable} is set")
        return "; ".join(profile.notes) or "it has neither keys nor a setting to obtain credentials"


def _keys(profile: Profile, section: Settings, file: str) -> Credentials:
    token = next((section[name] for name in _TOKENS if section.get(name)), None)
    where = f"profile {profile.name} in {file}"
    return credentials_from_parts(where, section[_ACCESS_KEY], section.get("aws_secret_access_key"), token)
