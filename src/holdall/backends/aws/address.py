"""URLs of services, parsed strictly into what a socket, a request line and a Host header need.

Pure. Error messages never repeat the URL, which may contain a password or a secret path.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from holdall.core.frozen import dataclass

_DEFAULT_PORTS = {"http": 80, "https": 443}
_VISIBLE = re.compile(r"[!-~]+")
_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?")


@dataclass(frozen=True, slots=True)
class Address:
    """A host and port on the network, and the path and query to request there (``target``)."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """The host as in a Host header."""
        return authority(self.scheme, self.host, self.port)


def authority(scheme: str, host: str, port: int) -> str:
    """Host and port as in a Host header: no default port, IPv6 in brackets."""
    name = f"[{host}]" if ":" in host else host
    return name if port == _DEFAULT_PORTS[scheme] else f"{name}:{port}"


def parse_address(text: str) -> Address:
    """The parts of an ``http`` or ``https`` URL; the message of a ValueError states what is wrong with it."""
    if not _VISIBLE.fullmatch(text) or "\\" in text:
        raise ValueError("it has spaces or characters that are not allowed in a URL")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise ValueError("its host or port is malformed")
    if parts.scheme not in _DEFAULT_PORTS:
        raise ValueError("it does not start with http:// or https://")
    if "@" in parts.netloc:
        raise ValueError("it contains a user name")
    if parts.fragment:
        raise ValueError("it has a fragment (#)")
    host = parts.hostname or ""
    if not _is_host(host):
        raise ValueError("its host is malformed" if host else "it has no host")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Address(parts.scheme, host, port or _DEFAULT_PORTS[parts.scheme], target)


def _is_host(host: str) -> bool:
    if ":" not in host:
        return _NAME.fullmatch(host) is not None
    from ipaddress import IPv6Address  # only where there is one

    try:
        return not IPv6Address(host).scope_id
    except ValueError:
        return False
