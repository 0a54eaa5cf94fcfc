"""Sessions: the signed cookie of a person who has signed in, and the CSRF token of their forms.

The signing key is made of the console's token. So every process with the same token accepts the same cookies, and a new
token ends all sessions. The cookie's name is made of it, too: browsers send cookies to every port of a host, and two
consoles with different tokens must not replace each other's.
"""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

COOKIE = "holdall_console"
"""How the name of a session's cookie begins."""
_MOST_ENDED = 10_000


@dataclass(frozen=True, slots=True)
class Session:
    """A person who has signed in. ``csrf`` is the token that their forms contain."""

    id: str
    until: datetime
    csrf: str


class Sessions:
    """Begins, recognizes and ends sessions. A session that ended in another process lasts until its cookie expires."""

    def __init__(self, token: str, lifetime: timedelta) -> None:
        self._token = token.encode()
        self._key = sha256(b"holdall console\x00" + self._token).digest()
        self.lifetime = lifetime
        self.cookie = f"{COOKIE}_{self.seal('cookie', '')[:12]}"
        self._ended: dict[str, None] = {}

    def is_token(self, text: str) -> bool:
        """Whether a text is the token to sign in with."""
        return hmac.compare_digest(text.strip().encode(), self._token)

    def begin(self) -> str:
        """Begin a session; return the value of its cookie."""
        until = int((datetime.now(UTC) + self.lifetime).timestamp())
        body = f"{os.urandom(16).hex()}.{until}"
        return f"{body}.{self.seal('session', body)}"

    def read(self, cookie: str) -> Session | None:
        """Return the session of a cookie; None if it is forged, has expired or was ended."""
        id, _, rest = cookie.partition(".")
        text, _, mac = rest.partition(".")
        if not self.is_sealed("session", f"{id}.{text}", mac) or id in self._ended:
            return None
        until = datetime.fromtimestamp(int(text), UTC)
        return Session(id, until, self.seal("csrf", id)) if datetime.now(UTC) < until else None

    def end(self, session: Session) -> None:
        """End a session before its cookie expires."""
        self._ended[session.id] = None
        if len(self._ended) > _MOST_ENDED:
            del self._ended[next(iter(self._ended))]

    def seal(self, purpose: str, text: str) -> str:
        """Return the signature of a text for one purpose."""
        return hmac.digest(self._key, f"{purpose}\x00{text}".encode(errors="replace"), "sha256").hex()

    def is_sealed(self, purpose: str, text: str, mac: str) -> bool:
        """Whether a signature is that of a text."""
        return hmac.compare_digest(self.seal(purpose, text).encode(), mac.encode(errors="replace"))
