"""The options of the console: which models it shows, who may sign in, and whether it may change anything."""

from __future__ import annotations

import os
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from threading import Lock
from urllib.parse import urlencode

from holdall import Model
from holdall.errors import ConfigurationError

__all__ = ["Console"]

_SHORTEST_TOKEN = 16
_LINK_LIFETIME = timedelta(minutes=15)


class Console:
    """The console of `create_app`: ``create_app(db, console=Console(models=[Order]))``.

    ``models`` are the models whose items it shows. ``token`` is what people sign in with, at least 16 characters; by
    default a random one is made, which only this object knows. All processes of an application need the same token.
    ``read_only=False`` permits changes. ``path`` is where the pages are, below the path of the application.
    ``session`` is how long a person stays signed in.
    """

    def __init__(
        self,
        *,
        models: Sequence[type[Model]] = (),
        token: str | None = None,
        read_only: bool = True,
        path: str = "/console",
        session: timedelta = timedelta(hours=12),
    ) -> None:
        if token is not None and len(token) < _SHORTEST_TOKEN:
            raise ConfigurationError(
                f"the console's token must have at least {_SHORTEST_TOKEN} characters, not {len(token)}",
                hint="use a long random text, or leave it out to get one",
            )
        if not path.startswith("/") or path.endswith("/"):
            raise ConfigurationError(
                f"the console's path must begin with a slash and not end with one, not {path!r:.60}",
                hint="as in /console",
            )
        if session < timedelta(minutes=1):
            raise ConfigurationError(f"a session of the console must last at least a minute, not {session}")
        self.models = tuple(dict.fromkeys(models))
        self.token = make_token() if token is None else token
        self.read_only = read_only
        self.path = path
        self.session = session
        self.links = SignInLinks()

    def sign_in_link(self, address: str) -> str:
        """Return a URL that signs in one person, once, within 15 minutes, in this process.

        ``address`` is the URL of the application, such as ``http://127.0.0.1:8000``.
        """
        return f"{address.rstrip('/')}{self.path}/sign-in?{urlencode({'once': self.links.issue()})}"


class SignInLinks:
    """The tokens of sign-in links that are still unused."""

    def __init__(self) -> None:
        self._unused: dict[str, datetime] = {}
        self._lock = Lock()

    def issue(self) -> str:
        """Return a new token."""
        token = make_token()
        with self._lock:
            self._unused[token] = datetime.now(UTC) + _LINK_LIFETIME
        return token

    def take(self, token: str) -> bool:
        """Use a token; return whether it was valid. It is not valid again."""
        with self._lock:
            until = self._unused.pop(token, None)
        return until is not None and datetime.now(UTC) < until


def make_token() -> str:
    """Return a random text of 32 characters."""
    return urlsafe_b64encode(os.urandom(24)).decode()
