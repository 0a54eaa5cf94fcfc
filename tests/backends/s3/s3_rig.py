"""An S3 service of ours for tests: real connections in either colour, time that passes only when a test waits, and a
server that plays S3 by script, announced bodies included.
"""

from __future__ import annotations

import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import md5, sha256
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from scripted_server import Asked, ScriptedServer, Step, http
from wire_rig import KEYS, Colour, TimedClient, target_of

from holdall.backends.aws.credentials import CredentialSource, find_credentials
from holdall.backends.aws.endpoint import Endpoint
from holdall.backends.aws.limit import Limits
from holdall.backends.s3.call import Calls
from holdall.backends.s3.creation import Claims
from holdall.backends.s3.delivery import Delivery
from holdall.backends.s3.flow import S3Flow
from holdall.backends.s3.header import Storage
from holdall.backends.s3.place import Style, place_of
from holdall.backends.s3.service import LIMITS
from holdall.core.objects import ServiceTraits

__all__ = [
    "BUCKET",
    "ETAG",
    "UNMOVED",
    "WANTED",
    "BucketServer",
    "Client",
    "bucket",
    "client",
    "denies",
    "make_reply",
    "make_object_reply",
    "line_of",
    "md5_of",
    "query_of",
    "sha256_of",
    "tells",
]

T = TypeVar("T")
R = TypeVar("R")

BUCKET = "things"
ETAG = "0123456789abcdef0123456789abcdef"
WHEN = "Sat, 15 Nov 2025 05:40:00 GMT"

WANTED = Step((b"HTTP/1.1 100 Continue\r\n\r\n",))
"""An announced body is asked for; the next step answers the request."""

UNMOVED = Step()
"""Nothing is said about an announced body; the next step answers the request."""


# --- replies ----------------------------------------------------------------------------------------------


def make_reply(status: int = 200, headers: Mapping[str, object] | None = None, body: bytes = b"") -> Step:
    """A reply as S3 makes them."""
    complete = {
        "x-amz-request-id": "REQUEST-1",
        "Date": WHEN,
        "ETag": f'"{ETAG}"',
        "Content-Length": len(body),
        **(headers or {}),
    }
    return Step((http(status, {name: text for name, text in complete.items() if text is not None}, body),))


def make_object_reply(
    body: bytes = b"", headers: Mapping[str, object] | None = None, status: int = 200
) -> Step:
    """An object."""
    return make_reply(status, {"Last-Modified": WHEN, **(headers or {})}, body)


def tells(document: str, status: int = 200, headers: Mapping[str, object] | None = None) -> Step:
    """A document."""
    return make_reply(
        status, {"Content-Type": "application/xml", "ETag": None, **(headers or {})}, document.encode()
    )


def denies(code: str, status: int = 400, *, headers: Mapping[str, object] | None = None, **more: str) -> Step:
    """An error as S3 answers it."""
    fields = {"Code": code, "Message": f"about {code}", **more}
    lines = "".join(f"<{name}>{text}</{name}>" for name, text in fields.items())
    return tells(f'<?xml version="1.0" encoding="UTF-8"?>\n<Error>{lines}</Error>', status, headers)


def md5_of(body: bytes) -> str:
    return b64encode(md5(body).digest()).decode()


def sha256_of(body: bytes) -> str:
    return b64encode(sha256(body).digest()).decode()


# --- requests ---------------------------------------------------------------------------------------------


def line_of(asked: Asked) -> tuple[str, str]:
    """The method and the target of a request."""
    method, target, _ = asked.head.decode("latin-1").split(" ", 2)
    return method, target


def query_of(asked: Asked) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(line_of(asked)[1]).query, keep_blank_values=True))


class BucketServer(ScriptedServer):
    """A server that looks at the head of a request before it reads an announced body."""

    def _converse(self, connection: socket.socket, number: int) -> None:
        with connection.makefile("rb") as reader:
            while head := _head(reader):
                asked = Asked(head, b"", number)
                length = int(asked.headers.get("content-length", "0"))
                step = None
                if asked.headers.get("expect") == "100-continue" and length:
                    step = self._record(asked)
                    if step.end == "keep" and all(map(_is_interim, step.parts)):
                        self.requests.pop()
                        self._play(connection, step)
                        step = None
                if step is None:
                    body = reader.read(length)
                    if len(body) < length:
                        return
                    step = self._record(Asked(head, body, number))
                if not self._play(connection, step):
                    return

    def _play(self, connection: socket.socket, step: Step) -> bool:
        for part in step.parts:
            if isinstance(part, bytes):
                connection.sendall(part)
            else:
                part.wait(20.0)
        if step.end != "keep":
            return False
        with self._changed:
            self._done += 1
            self._changed.notify_all()
        return True


def _is_interim(part: bytes | threading.Event) -> bool:
    return isinstance(part, bytes) and part.startswith(b"HTTP/1.1 1")


def _head(reader: Any) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = reader.readline()
        if not line:
            return b""
        head += line
    return head


@contextmanager
def bucket(
    *steps: Step, answer: Callable[[Asked], Step] | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[BucketServer]:
    """A server for the block; at its end the script must have been played."""
    server = BucketServer(*steps, answer=answer, tls=tls)
    try:
        yield server
        server.assert_played()
    finally:
        server.stop()


# --- the client -------------------------------------------------------------------------------------------


class Client(TimedClient):
    """S3's client, with a clock of its own."""

    def __init__(
        self,
        colour: Colour,
        url: str,
        *,
        source: CredentialSource | None = None,
        prefix: str = "",
        style: Style = "auto",
        storage: Storage | None = None,
        traits: ServiceTraits | None = None,
        conditional_puts: bool | None = True,
        claims: Claims | None = None,
        tls: ssl.SSLContext | None = None,
        host: str | None = None,
        region: str = "us-east-1",
        read_timeout: float = 20.0,
        limits: Limits = LIMITS,
    ) -> None:
        """``host`` is the endpoint's name, where that is not the server's own."""
        target = target_of(url, tls=tls, read_timeout=read_timeout)
        endpoint = Endpoint("http" if tls is None else "https", host or target.host, target.port, region)
        self.place = place_of(BUCKET, endpoint, style)
        calls = Calls(BUCKET, prefix, (storage or Storage()).headers())
        source = source or find_credentials(environment=KEYS)
        self.delivery = Delivery(calls, self.place, source, target, limits)
        flow = S3Flow(self.delivery, traits or ServiceTraits(), conditional_puts, claims)
        super().__init__(colour, flow)


@contextmanager
def client(colour: Colour, server: BucketServer | str, **options: Any) -> Iterator[Client]:
    url = server if isinstance(server, str) else server.url
    opened = Client(colour, url, **options)
    try:
        yield opened
    finally:
        opened.delivery.close()
