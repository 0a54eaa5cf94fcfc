"""Credentials of a container's role: an endpoint that ECS, EKS or a Lambda-like host names in the environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdall.backends.aws.address import Address, parse_address
from holdall.backends.aws.form import credentials_from_document, fits_a_header
from holdall.backends.aws.metadata import Unanswered, answer_in_tries
from holdall.backends.aws.signer import Credentials
from holdall.errors import CredentialsError

_RELATIVE = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
_FULL = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
_TOKEN = "AWS_CONTAINER_AUTHORIZATION_TOKEN"
_TOKEN_FILE = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"

_ECS = "http://169.254.170.2"
_PLAIN_HOSTS = frozenset({"localhost", "169.254.170.2", "169.254.170.23", "fd00:ec2::23"})
_TIMEOUT = 2.0
_TRIES = 3


def container_credentials(environment: Mapping[str, str], *, ecs: str = _ECS) -> Credentials | str:
    """The role's credentials, or why there can be none; `CredentialsError` when there should be.

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
        raise CredentialsError(f"{variable} holds no usable URL: {error}") from None


def _refuse_strangers(address: Address) -> None:
    """Refuse to show the token, without TLS, to a host that is not certainly this machine or its container agent."""
    if address.scheme == "https" or address.host in _PLAIN_HOSTS or _is_loopback(address.host):
        return
    raise CredentialsError(
        f"{_FULL} names {address.host}, which is not asked for credentials over plain http",
        hint=f"use https, a loopback address, or one of: {', '.join(sorted(_PLAIN_HOSTS))}",
    )


def _is_loopback(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _token(environment: Mapping[str, str]) -> str | None:
    """The token to show; its file is read every time, because it is rotated."""
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
        raise CredentialsError(f"{_TOKEN_FILE if file else _TOKEN} holds what cannot be a token")
    return token
