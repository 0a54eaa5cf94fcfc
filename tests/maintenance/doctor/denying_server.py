"""A proxy in front of a server that denies some of the requests, as AWS does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

Need = tuple[str, str]
"""An action and its resource: a table, ``table/index/name`` or a bucket."""


class DenyingServer(ThreadingHTTPServer):
    """The proxy. ``denied`` contains actions such as ``dynamodb:PutItem``, or pairs of an action and its resource.

    ``allowed`` contains all permitted actions; None permits all. ``seen`` records the needs of all requests. With
    ``naming``, S3 names the action that it denies, as it does within an account. With ``encrypted``, the objects are
    encrypted with a KMS key. S3 answers every request with the error code ``refused``, if it is set.
    """

    daemon_threads = True

    def __init__(self, server: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = urlsplit(server).netloc
        self.seen: set[Need] = set()
        self.permit_all()

    def permit_all(self) -> None:
        self.denied: set[str | Need] = set()
        self.allowed: set[str] | None = None
        self.naming = self.encrypted = False
        self.refused: str | None = None

    def denies(self, need: Need) -> bool:
        listed = self.allowed is None or need[0] in self.allowed
        return not listed or need[0] in self.denied or need in self.denied

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: DenyingServer

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        target = self.headers.get("x-amz-target")
        bucket = urlsplit(self.path).path.split("/")[1]
        if target is not None:
            needs = needs_of_table(target.partition(".")[2], json.loads(body))
        else:
            needs = {
                (f"s3:{action}", bucket) for action in needs_of_object(self.command, self.path, self.headers)
            }
        self.server.seen |= needs
        if self.server.refused is not None and target is None:
            self._deny(("", ""), self.server.refused)
            return
        for need in sorted(needs):
            if self.server.denies(need):
                self._deny(need)
                return
        connection = HTTPConnection(self.server.behind, timeout=60)
        connection.request(self.command, self.path, body, dict(self.headers))
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        if ("s3:GetObject", bucket) in needs or ("s3:GetObjectTagging", bucket) in needs:
            later = ("kms:Decrypt", "key") if reply.status < 300 else ("s3:ListBucket", bucket)
            known = self.server.encrypted if reply.status < 300 else reply.status == 404
            if known and self.server.denies(later):
                self._deny(later)
                return
        self.send_response(reply.status)
        for name, value in reply.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                self.send_header(name, value)
        length = reply.getheader("content-length") if self.command == "HEAD" else None
        self.send_header("content-length", length or str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815

    def _deny(self, need: Need, code: str = "AccessDenied") -> None:
        named = f"User: arn:aws:iam::1:user/me is not authorized to perform: {need[0]} on resource: {need[1]}"
        words = named if self.server.naming or self.headers.get("x-amz-target") else code
        content = f"<Error><Code>{code}</Code><Message>{words}</Message></Error>".encode()
        status = 403
        if self.headers.get("x-amz-target") is not None:
            kind = "com.amazon.coral.service#AccessDeniedException"
            content, status = json.dumps({"__type": kind, "Message": words}).encode(), 400
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""


_OF_PARTS = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
    "Get": "GetItem",
}


def needs_of_table(operation: str, body: Mapping[str, Any]) -> set[Need]:
    """The permissions that a request to DynamoDB needs."""
    if operation in ("TransactWriteItems", "TransactGetItems"):
        parts = [part for each in body["TransactItems"] for part in each.items()]
        return {(f"dynamodb:{_OF_PARTS[kind]}", part["TableName"]) for kind, part in parts}
    if operation in ("BatchGetItem", "BatchWriteItem"):
        return {(f"dynamodb:{operation}", table) for table in body["RequestItems"]}
    index = f"/index/{body['IndexName']}" if "IndexName" in body else ""
    return {(f"dynamodb:{operation}", body["TableName"] + index)}


def needs_of_object(method: str, path: str, headers: Message) -> set[str]:
    """The actions that a request to S3 needs. A condition on an object's etag needs permission to read the object."""
    query = parse_qs(urlsplit(path).query, keep_blank_values=True)
    if "list-type" in query:
        return {"ListBucket"}
    if "tagging" in query:
        return {"GetObjectTagging" if method == "GET" else "PutObjectTagging"}
    if "uploads" in query:
        return {"ListBucketMultipartUploads" if method == "GET" else "PutObject"}
    if "uploadId" in query:
        return {
            {"GET": "ListMultipartUploadParts", "DELETE": "AbortMultipartUpload"}.get(method, "PutObject")
        }
    if "delete" in query or method == "DELETE":
        needs = {"DeleteObject"}
    else:
        needs = {"PutObject" if method in ("PUT", "POST") else "GetObject"}
    more = {"if-match": "GetObject", "x-amz-acl": "PutObjectAcl", "x-amz-tagging": "PutObjectTagging"}
    return needs | {action for name, action in more.items() if headers.get(name) is not None}


@contextmanager
def serve_denials(server: str) -> Iterator[DenyingServer]:
    """Serve a proxy in front of the server while the block runs."""
    with DenyingServer(server) as found:
        thread = Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield found
        finally:
            found.shutdown()
            thread.join()
