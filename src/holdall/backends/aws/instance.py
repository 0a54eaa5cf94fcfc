"""Credentials of an EC2 instance's role, from its metadata service. Version 2 only: with a session token.

A service that gives no token is not asked without one: that older way lets an attacker who can make the machine fetch a
URL have its credentials.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from urllib.parse import quote

from holdall.backends.aws.address import Address, parse_address
from holdall.backends.aws.form import credentials_from_document, fits_a_header
from holdall.backends.aws.metadata import Unanswered, answer_in_tries
from holdall.backends.aws.profile import Profile
from holdall.backends.aws.signer import Credentials
from holdall.core.frozen import dataclass, replace
from holdall.errors import ConfigurationError, CredentialsError

_ENDPOINTS = {"ipv4": "http://169.254.169.254/", "ipv6": "http://[fd00:ec2::254]/"}
_TOKEN = "latest/api/token"
_ROLES = "latest/meta-data/iam/security-credentials/"
_TOKEN_HEADER = "x-aws-ec2-metadata-token"
_TOKEN_SECONDS = "21600"


def instance_credentials(
    environment: Mapping[str, str], profile: Profile, clock: Callable[[], float]
) -> Credentials | str:
    """The role's credentials, or why there are none: most machines are no instances."""
    if environment.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        return "switched off by AWS_EC2_METADATA_DISABLED"
    service = _service(environment, profile)
    where = f"the instance's metadata service {service.base.authority}"
    try:
        document = service.document()
        return _find_profile_setting(credentials_from_document(where, document), clock())
    except Unanswered as trouble:
        return f"{service.base.authority} {trouble}"
    except CredentialsError as error:
        return error.message


def _find_profile_setting(found: Credentials, now: float) -> Credentials:
    """When the service behind the metadata is down, it hands out credentials past their date, which AWS honours.

    They are then used for a while of random length, so that not all instances ask again at the same moment.
    """
    if found.expires is None or found.expires > now:
        return found
    return replace(found, expires=now + random.uniform(300, 600))


@dataclass(frozen=True, slots=True)
class _Service:
    base: Address
    timeout: float
    tries: int

    def document(self) -> bytes:
        # One try for the first question: on a machine that is not an instance it is never answered.
        token = self._ask("PUT", _TOKEN, {f"{_TOKEN_HEADER}-ttl-seconds": _TOKEN_SECONDS}, self.tries)
        shown = {_TOKEN_HEADER: self._one_word(token, "token")}
        more = max(self.tries, 2)
        role = self._one_word(self._ask("GET", _ROLES, shown, more), "role")
        return self._ask("GET", _ROLES + quote(role, safe=""), shown, more)

    def _ask(self, method: str, path: str, headers: Mapping[str, str], tries: int) -> bytes:
        target = f"{self.base.target.rstrip('/')}/{path}"
        return answer_in_tries(tries, method, replace(self.base, target=target), headers, self.timeout)

    @staticmethod
    def _one_word(given: bytes, what: str) -> str:
        lines = given.decode("latin-1").split()
        if not lines or not fits_a_header(lines[0]):
            raise Unanswered(f"gave no {what}", passing=False)
        return lines[0]


def _service(environment: Mapping[str, str], profile: Profile) -> _Service:
    url = profile.find_setting("ec2_metadata_service_endpoint", environment)
    if url is None:
        mode = (profile.find_setting("ec2_metadata_service_endpoint_mode", environment) or "ipv4").lower()
        url = _ENDPOINTS.get(mode, "")
    try:
        base = parse_address(url)
        timeout = float(profile.find_setting("metadata_service_timeout", environment) or 1)
        tries = int(profile.find_setting("metadata_service_num_attempts", environment) or 1)
    except ValueError:
        base, timeout, tries = None, 0.0, 0
    if base is None or not 0 < timeout < 3600 or tries < 1:
        raise ConfigurationError(
            "the settings of the instance metadata service are malformed",
            hint="check AWS_EC2_METADATA_SERVICE_ENDPOINT (a URL) and …_ENDPOINT_MODE (ipv4 or ipv6), "
            "AWS_METADATA_SERVICE_TIMEOUT and …_NUM_ATTEMPTS (numbers), and the same in the profile",
        )
    return _Service(base, timeout, tries)
