"""Our own S3 service for tests: real connections, sync and async, a clock that advances only in sleeps, and a scripted
server that stands in for S3, announced bodies (``Expect: 100-continue``) included.
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

from scripted_server import ReceivedRequest, ScriptedServer, Step, http
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
    "IGNORE_ANNOUNCEMENT",
    "ASK_FOR_BODY",
    "BucketServer",
    "Client",
    "bucket",
    "client",
    "make_error_reply",
    "make_reply",
    "make_object_reply",
    "line_of",
    "md5_of",
    "query_of",
    "sha256_of",
    "make_document_reply",
]

T = TypeVar("T")
R = TypeVar("R")

BUCKET = "things"
ETAG = "0123456789abcdef0123456789abcdef"
WHEN = "Sat, 15 Nov 2025 05:40:00 GMT"

ASK_FOR_BODY = Step((b"HTTP/1.1 100 Continue\r\n\r\n",))
"""The server asks for an announced body; the next step answers the request."""

IGNORE_ANNOUNCEMENT = Step()
"""The server does not react to an announced body; the next step answers the request."""


# --- replies ----------------------------------------------------------------------------------------------


def make_reply(status: int = 200, headers: Mapping[str, object] | None = None, body: bytes = b"") -> Step:
    """A reply as S3 sends it."""
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
    """A reply with an object."""
    return make_reply(status, {"Last-Modified": WHEN, **(headers or {})}, body)


def make_document_reply(
    document: str, status: int = 200, headers: Mapping[str, object] | None = None
) -> Step:
    """A reply with an XML document."""
    return make_reply(
        status, {"Content-Type": "application/xml", "ETag": None, **(headers or {})}, document.encode()
    )


def make_error_reply(
    code: str, status: int = 400, *, headers: Mapping[str, object] | None = None, **more: str
) -> Step:
    """An error as S3 sends it."""
    fields = {"Code": code, "Message": f"about {code}", **more}
    lines = "".join(f"<{name}>{text}</{name}>" for name, text in fields.items())
    return make_document_reply(
        f'<?xml version="1.0" encoding="UTF-8"?>\n<Error>{lines}</Error>', status, headers
    )


def md5_of(body: bytes) -> str:
    return b64encode(md5(body).digest()).decode()


def sha256_of(body: bytes) -> str:
    return b64encode(sha256(body).digest()).decode()


# --- requests ---------------------------------------------------------------------------------------------


def line_of(received: ReceivedRequest) -> tuple[str, str]:
    """The method and the target of a request."""
    method, target, _ = received.head.decode("latin-1").split(" ", 2)
    return method, target


def query_of(received: ReceivedRequest) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(line_of(received)[1]).query, keep_blank_values=True))


class BucketServer(ScriptedServer):
    """A server that reads the head of a request, and can answer it, before it reads an announced body."""

    def _converse(self, connection: socket.socket, number: int) -> None:
        with connection.makefile("rb") as reader:
            while head := _head(reader):
                received = ReceivedRequest(head, b"", number)
                length = int(received.headers.get("content-length", "0"))
                step = None
                if received.headers.get("expect") == "100-continue" and length:
                    step = self._record(received)
                    if step.end == "keep" and all(map(_is_interim, step.parts)):
                        self.requests.pop()
                        self._play(connection, step)
                        step = None
                if step is None:
                    body = reader.read(length)
                    if len(body) < length:
                        return
                    step = self._record(ReceivedRequest(head, body, number))
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
    *steps: Step, answer: Callable[[ReceivedRequest], Step] | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[BucketServer]:
    """Run a server for the block; at the end of the block, check that it used the whole script."""
    server = BucketServer(*steps, answer=answer, tls=tls)
    try:
        yield server
        server.assert_finished()
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
        """``host`` is the name of the endpoint if it differs from the server's."""
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
