"""Opening a connection: where to, through which proxy, with which certificates, and why it failed.

Sync and async code share everything here but the I/O, which a `Dialler` does. Nothing is imported while a failure is
explained: a process without file descriptors could not import it.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from holdall.backends.aws.limit import Limit, Limits
from holdall.backends.aws.message import Stream
from holdall.backends.aws.proxy import Proxy, ProxyRefusal, find_proxy, open_tunnel
from holdall.core.frozen import dataclass
from holdall.errors import ConfigurationError

if TYPE_CHECKING:
    import ssl  # at run time only for TLS: it takes a while to load

CHUNK = 64 * 1024
"""The most that is received at once; memory for more would be mapped and unmapped each time."""

Address: TypeAlias = tuple[int, int, int, str, Any]
"""One result of ``getaddrinfo``."""

S_co = TypeVar("S_co", covariant=True)
S = TypeVar("S")

_HINT = "check the endpoint, the region, the network and any proxy"
_EXPIRED, _NOT_YET, _WRONG_NAMES = 10, 9, (62, 63, 64)
_UNKNOWN_ISSUERS = (2, 18, 19, 20, 21, 24, 27)


@dataclass(frozen=True, slots=True)
class Target:
    """Where to connect, through which proxy, how long to wait, and the TLS context (None: plain)."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    connect_timeout: float = 5.0
    read_timeout: float = 30.0
    max_connections: int = 64
    proxy: Proxy | None = None


def target_of(scheme: str, host: str, port: int, limits: Limits) -> Target:
    """The target for an endpoint, with the certificates and the proxy that the environment names."""
    return Target(
        host,
        port,
        tls_context() if scheme == "https" else None,
        limits.connect_timeout,
        limits.read_timeout,
        limits.max_connections,
        find_proxy(scheme, host, port, os.environ),
    )


def tls_context() -> ssl.SSLContext:
    """A TLS context that verifies the endpoint, with the certificates of ``AWS_CA_BUNDLE`` if it is set."""
    import ssl

    bundle = os.environ.get("AWS_CA_BUNDLE")
    try:
        context = ssl.create_default_context(cafile=bundle or None)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"the certificates in AWS_CA_BUNDLE cannot be read: {error}",
            hint="set it to a file of PEM certificates, or unset it",
        ) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def make_poll(connected: socket.socket) -> select.poll:
    """A poll object: ``poll(0)`` returns whether there is anything to receive."""
    watch = select.poll()
    watch.register(connected, select.POLLIN)
    return watch


class Dialler(Protocol[S_co]):
    """The steps of opening a connection that wait."""

    async def look_up(self, host: str, port: int) -> Sequence[Address]:
        """The host's addresses."""

    async def dial(self, plain: socket.socket, address: Any, seconds: float) -> None:
        """Connect the socket."""

    def bare_stream(self, plain: socket.socket, limit: Limit) -> Stream:
        """The socket as a stream, to talk to a proxy."""

    async def finish(self, plain: socket.socket, target: Target, limit: Limit) -> S_co:
        """The connection, after the TLS handshake if there is one."""


async def open_connection(target: Target, dialler: Dialler[S], limit: Limit) -> S:
    """A connection over the first of the host's addresses that answers; each gets its share of the time."""
    proxy = target.proxy
    host, port = (target.host, target.port) if proxy is None else (proxy.host, proxy.port)
    addresses = await dialler.look_up(host, port)
    trouble: OSError = TimeoutError("timed out")
    plain: socket.socket | None = None
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        share = limit.left / (len(addresses) - number)
        if share <= 0:
            break
        try:
            plain = socket.socket(family, kind, protocol)
            await dialler.dial(plain, address, share)
            break
        except BaseException as error:
            if plain is not None:
                plain.close()
            if not isinstance(error, OSError):
                raise
            trouble, plain = error, None
    if plain is None:
        raise trouble
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if proxy is not None and target.tls is not None:  # otherwise it forwards single requests
            await open_tunnel(dialler.bare_stream(plain, limit), proxy, target.host, target.port)
        return await dialler.finish(plain, target, limit)
    except BaseException:
        plain.close()
        raise


# --- why it failed ---


class Unsent(Exception):
    """No connection was made, so no part of the request was sent. ``lasting`` if trying again cannot help."""

    def __init__(self, why: str, *, lasting: bool = False, hint: str = _HINT) -> None:
        super().__init__(why)
        self.lasting = lasting
        self.hint = hint


def explain_trouble(error: OSError | UnicodeError) -> Unsent:
    """What went wrong, whether it will happen again, and what to do about it."""
    ssl: Any = sys.modules.get("ssl")  # if it is not loaded, this is not a TLS error
    if ssl is not None and isinstance(error, ssl.SSLCertVerificationError):
        return _explain_certificate(error)
    if ssl is not None and isinstance(error, ssl.SSLError):
        dropped = isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError)
        return Unsent(
            f"TLS failed: {error.reason or error}",
            lasting=not dropped,
            hint="check that the endpoint, its port and any proxy speak TLS 1.2 or newer",
        )
    if isinstance(error, ProxyRefusal):
        hint = "check HTTPS_PROXY, HTTP_PROXY and NO_PROXY, and the user name and password in them"
        return Unsent(str(error), lasting=error.lasting, hint=hint)
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return Unsent(
            "this process has no file descriptors left",
            hint="raise the limit on open files (ulimit -n), lower max_connections, or close files that are open",
        )
    if isinstance(error, TimeoutError):
        return Unsent("the connection timed out")
    lasting = isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME
    return Unsent(str(error) or type(error).__name__, lasting=lasting)


def _explain_certificate(error: Any) -> Unsent:
    """The common reasons, each with a hint; OpenSSL's own words for the rest."""
    code, words = error.verify_code, error.verify_message
    if code == _EXPIRED:
        why, hint = "has expired", "renew it, or check this machine's clock"
    elif code == _NOT_YET:
        why, hint = "is not valid yet", "check this machine's clock"
    elif code in _WRONG_NAMES:
        why, hint = f"is for another host ({words})", "check the host name in the endpoint"
    elif code in _UNKNOWN_ISSUERS:
        why, hint = (
            f"has an unknown issuer ({words})",
            "set AWS_CA_BUNDLE to a file with the issuer's certificate",
        )
    else:
        why, hint = f"was refused ({words})", "check the endpoint and AWS_CA_BUNDLE"
    return Unsent(f"the server's certificate {why}", lasting=True, hint=hint)
