"""A server that passes requests on to another one, and denies some of them as AWS does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit


class Denying(ThreadingHTTPServer):
    """The server. ``denied`` has actions, such as ``dynamodb:PutItem``; ``seen`` has those of all requests."""

    daemon_threads = True

    def __init__(self, server: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = urlsplit(server).netloc
        self.denied: set[str] = set()
        self.seen: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Denying

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        actions = self._find_actions(body)
        self.server.seen |= actions
        if actions & self.server.denied:
            self._deny()
            return
        connection = HTTPConnection(self.server.behind, timeout=60)
        connection.request(self.command, self.path, body, dict(self.headers))
        reply = connection.getresponse()
        content = reply.read()
        self.send_response(reply.status)
        for name, value in reply.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                self.send_header(name, value)
        length = reply.getheader("content-length") if self.command == "HEAD" else None
        self.send_header("content-length", length or str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        connection.close()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815

    def _find_actions(self, body: bytes) -> set[str]:
        target = self.headers.get("x-amz-target")
        if target is not None:
            operation = target.partition(".")[2]
            if operation != "TransactWriteItems":
                return {f"dynamodb:{operation}"}
            kinds = {kind for action in json.loads(body)["TransactItems"] for kind in action}
            names = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem"}
            return {f"dynamodb:{names.get(kind, 'ConditionCheckItem')}" for kind in kinds}
        if "list-type" in parse_qs(urlsplit(self.path).query):
            return {"s3:ListBucket"}
        verbs = {"GET": "GetObject", "HEAD": "GetObject", "PUT": "PutObject", "DELETE": "DeleteObject"}
        return {f"s3:{verbs.get(self.command, 'PutObject')}"}

    def _deny(self) -> None:
        content = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
        status = 403
        if self.headers.get("x-amz-target") is not None:
            kind = "com.amazon.coral.service#AccessDeniedException"
            content, status = json.dumps({"__type": kind, "Message": "not authorized"}).encode(), 400
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Be silent."""


@contextmanager
def denying(server: str) -> Iterator[Denying]:
    """A server before that one, for the block."""
    with Denying(server) as found:
        thread = Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield found
        finally:
            found.shutdown()
            thread.join()
