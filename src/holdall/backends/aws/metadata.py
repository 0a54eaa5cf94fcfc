"""Credentials of the role of a container or an EC2 instance, from its local endpoint, never through a proxy.

Redirects are not followed. Errors repeat neither the request nor the reply, because both can contain secrets.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

from holdall.backends.aws.address import Address, parse_address
from holdall.backends.aws.form import credentials_from_document, fits_a_header
from holdall.backends.aws.profile import Profile
from holdall.backends.aws.signer import Credentials
from holdall.core.frozen import dataclass, replace
from holdall.errors import ConfigurationError, CredentialsError

_LONGEST_ANSWER = 64 * 1024


class Unanswered(Exception):
    """There was no usable reply; the text says why. ``passing`` if trying again could help."""

    def __init__(self, why: str, *, passing: bool) -> None:
        super().__init__(why)
        self.passing = passing


def answer(method: str, address: Address, headers: Mapping[str, str], timeout: float) -> bytes:
    """The body of a 200; anything else is `Unanswered`."""
    import http.client  # loaded only if there may be such an endpoint

    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(address.host, address.port, timeout=timeout)
    try:
        connection.request(method, address.target, headers={"Accept": "application/json", **headers})
        response = connection.getresponse()
        status = response.status
        body = response.read(_LONGEST_ANSWER + 1)
        if len(body) < min(int(response.getheader("content-length", 0)), _LONGEST_ANSWER):
            raise http.client.IncompleteRead(b"")  # a bounded read does not raise it by itself
    except TimeoutError:
        why = f"did not answer within {timeout:g} s"
    except OSError as error:
        why = f"cannot be reached ({error.strerror or type(error).__name__})"
    except (http.client.HTTPException, ValueError) as error:
        why = f"sent an incomplete or invalid reply ({type(error).__name__})"
    else:
        if status != 200:
            raise Unanswered(f"answered {status}", passing=status == 429 or status >= 500)
        if len(body) > _LONGEST_ANSWER:
            raise Unanswered("sent a reply of more than 64 KB", passing=False)
        return body
    finally:
        connection.close()
    raise Unanswered(why, passing=True)


def answer_in_tries(
    tries: int, method: str, address: Address, headers: Mapping[str, str], timeout: float
) -> bytes:
    """The same, repeated if that could help."""
    import time

    for attempt in range(1, tries):
        try:
            return answer(method, address, headers, timeout)
        except Unanswered as trouble:
            if not trouble.passing:
                raise
        time.sleep(0.1 * attempt)
    return answer(method, address, headers, timeout)


_RELATIVE = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
_FULL = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
_TOKEN = "AWS_CONTAINER_AUTHORIZATION_TOKEN"
_TOKEN_FILE = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"

_ECS = "http://169.254.170.2"
_PLAIN_HOSTS = frozenset({"localhost", "169.254.170.2", "169.254.170.23", "fd00:ec2::23"})
_TIMEOUT = 2.0
_TRIES = 3


def container_credentials(environment: Mapping[str, str], *, ecs: str = _ECS) -> Credentials | str:
    """The role's credentials, or why there are none; `CredentialsError` if there should be some.

    ``ecs`` is where a relative URI leads.
    """
    relative, full = environment.get(_RELATIVE), environment.get(_FULL)
    if relative:
        address = _address(_RELATIVE, ecs + relative if relative.startswith("/") else "")
    elif full:
        address = _address(_FULL, full)
        _refuse_strangers(address)
    else:
        return f"{_RELATIVE} and {_FULL} are not set"
    token = _token(environment)
    headers = {} if token is None else {"Authorization": token}
    where = f"the container's credentials endpoint {address.authority}"
    try:
        document = answer_in_tries(_TRIES, "GET", address, headers, _TIMEOUT)
    except Unanswered as trouble:
        raise CredentialsError(f"{where} {trouble}") from None
    return credentials_from_document(where, document)


def _address(variable: str, url: str) -> Address:
    try:
        return parse_address(url)
    except ValueError as error:
        raise CredentialsError(f"{variable} is not a valid URL: {error}") from None


def _refuse_strangers(address: Address) -> None:
    """Refuse to send the token, without TLS, to a host that may not be this machine or its container agent."""
    if address.scheme == "https" or address.host in _PLAIN_HOSTS or _is_loopback(address.host):
        return
    raise CredentialsError(
        f"{_FULL} names {address.host}, and credentials are not requested from it over plain http",
        hint=f"use https, a loopback address, or one of: {', '.join(sorted(_PLAIN_HOSTS))}",
    )


def _is_loopback(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _token(environment: Mapping[str, str]) -> str | None:
    """The token to send; its file is read every time, because it is rotated."""
    file = environment.get(_TOKEN_FILE)
    if file:
        try:
            token = Path(file).read_text(encoding="utf-8")
        except OSError as error:
            raise CredentialsError(
                f"the file that {_TOKEN_FILE} names cannot be read: {error.strerror}"
            ) from None
        except UnicodeDecodeError:
            token = ""
    else:
        token = environment.get(_TOKEN) or ""
    token = token.strip()
    if not token and not file:
        return None
    if not fits_a_header(token.replace(" ", "")):  # "Bearer …" has one
        raise CredentialsError(f"{_TOKEN_FILE if file else _TOKEN} does not contain a valid token")
    return token


_ENDPOINTS = {"ipv4": "http://169.254.169.254/", "ipv6": "http://[fd00:ec2::254]/"}
_TOKEN_PATH = "latest/api/token"
_ROLES = "latest/meta-data/iam/security-credentials/"
_TOKEN_HEADER = "x-aws-ec2-metadata-token"
_TOKEN_SECONDS = "21600"


def instance_credentials(
    environment: Mapping[str, str], profile: Profile, clock: Callable[[], float]
) -> Credentials | str:
    """The role's credentials, or why there are none: most machines are not instances.

    The service is not used without a token: the older protocol lets an attacker who can make the machine fetch a URL
    obtain its credentials.
    """
    if environment.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        return "disabled by AWS_EC2_METADATA_DISABLED"
    service = _service(environment, profile)
    where = f"the instance's metadata service {service.base.authority}"
    try:
        document = service.document()
        return _extend_expired(credentials_from_document(where, document), clock())
    except Unanswered as trouble:
        return f"{service.base.authority} {trouble}"
    except CredentialsError as error:
        return error.message


def _extend_expired(found: Credentials, now: float) -> Credentials:
    """Credentials past their expiry, which the metadata service returns during an outage and which AWS accepts.

    They are used for a random time, so that not all instances ask again at the same moment.
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
        # by default, the first request is tried once: on a machine that is not an instance it is never answered
        token = self._ask("PUT", _TOKEN_PATH, {f"{_TOKEN_HEADER}-ttl-seconds": _TOKEN_SECONDS}, self.tries)
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
            raise Unanswered(f"returned no {what}", passing=False)
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
            "the settings for the instance metadata service are not valid",
            hint="check AWS_EC2_METADATA_SERVICE_ENDPOINT (a URL) and …_ENDPOINT_MODE (ipv4 or ipv6), "
            "AWS_METADATA_SERVICE_TIMEOUT and …_NUM_ATTEMPTS (numbers), and the same in the profile",
        )
    return _Service(base, timeout, tries)
