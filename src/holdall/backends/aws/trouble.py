"""Explains why no connection could be made. Pure.

Nothing is imported on demand: a process without file descriptors could not import it.
"""

from __future__ import annotations

import errno
import socket
import sys
from typing import Any

from holdall.backends.aws.proxy import ProxyRefusal

__all__ = ["Unsent", "explain_trouble"]

_HINT = "check the endpoint, the region, the network and any proxy"
_EXPIRED, _NOT_YET, _WRONG_NAMES = 10, 9, (62, 63, 64)
_UNKNOWN_ISSUERS = (2, 18, 19, 20, 21, 24, 27)


class Unsent(Exception):
    """No connection was made, so nothing of the request has left. ``lasting`` if trying again cannot help."""

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
            hint="raise the limit on open files (ulimit -n), lower max_connections, or close what is open",
        )
    if isinstance(error, TimeoutError):
        return Unsent("timed out")
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
        why, hint = f"is for another host ({words})", "check the endpoint's name"
    elif code in _UNKNOWN_ISSUERS:
        why, hint = (
            f"has an unknown issuer ({words})",
            "set AWS_CA_BUNDLE to a file with the issuer's certificate",
        )
    else:
        why, hint = f"was refused ({words})", "check the endpoint and AWS_CA_BUNDLE"
    return Unsent(f"the server's certificate {why}", lasting=True, hint=hint)
