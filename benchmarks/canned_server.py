"""A local server that answers DynamoDB's calls with canned replies as fast as it can, the same for all clients.

``python -m benchmarks.canned_server`` prints its port and serves until its standard input ends.
"""

from __future__ import annotations

import json
import re
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

from benchmarks import model_items
from benchmarks.wire_items import COUNT, TABLE, document, documents

__all__ = ["serve_canned"]

HERE = Path(__file__).parent

_CHUNK = 64 * 1024
_OPERATION = re.compile(rb"\r\nx-amz-target: ?DynamoDB_20120810\.(\w+)\r\n", re.IGNORECASE)
_LENGTH = re.compile(rb"\r\ncontent-length: ?(\d+)\r\n", re.IGNORECASE)
_MODEL = f'"{model_items.TABLE}"'.encode()
_NUMBER = re.compile(rb'"sk": ?{"S": ?"0*(\d+)"}')


@contextmanager
def serve_canned() -> Iterator[str]:
    """Run the server in another process until the block ends; yield its URL."""
    command = [sys.executable, "-m", "benchmarks.canned_server"]
    with subprocess.Popen(
        command, cwd=HERE.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"


def _reply(payload: dict[str, Any]) -> bytes:
    body = json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode()
    head = (
        "HTTP/1.1 200 OK\r\n"
        "Server: Server\r\n"
        "Date: Sat, 15 Nov 2025 05:40:00 GMT\r\n"
        "Content-Type: application/x-amz-json-1.0\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Connection: keep-alive\r\n"
        "x-amzn-RequestId: ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZ\r\n"
        f"x-amz-crc32: {crc32(body)}\r\n\r\n"
    )
    return head.encode() + body


def _table(name: str) -> bytes:
    keys = {"pk": "HASH", "sk": "RANGE"}
    return _reply(
        {
            "Table": {
                "TableName": name,
                "TableStatus": "ACTIVE",
                "KeySchema": [{"AttributeName": key, "KeyType": kind} for key, kind in keys.items()],
                "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"} for key in keys],
                "ItemCount": COUNT,
                "TableSizeBytes": 0,
            }
        }
    )


_ONE = {"ConsumedCapacity": {"TableName": TABLE, "CapacityUnits": 1.0}}
_PAGE = {**_ONE, "Count": COUNT, "ScannedCount": COUNT}
_REPLIES = {
    b"GetItem": _reply({**_ONE, "Item": document(0)}),
    b"PutItem": _reply(_ONE),
    b"UpdateItem": _reply(_ONE),
    b"BatchWriteItem": _reply({"UnprocessedItems": {}, "ConsumedCapacity": [_ONE["ConsumedCapacity"]]}),
    b"TransactWriteItems": _reply({"ConsumedCapacity": [_ONE["ConsumedCapacity"]]}),
    b"Query": _reply({**_PAGE, "Items": documents()}),
    b"DescribeTable": _table(TABLE),
}
_NOTHING = {b"GetItem": _reply(_ONE), b"Query": _reply({**_ONE, "Count": 0, "ScannedCount": 0, "Items": []})}
_UPDATED = _reply({**_ONE, "Attributes": document(0)})

_ORDERS = [_reply({**_ONE, "Item": order}) for order in model_items.documents()]
_REPLIES_TO_MODELS = _REPLIES | {
    **dict.fromkeys((b"Query", b"Scan"), _reply({**_PAGE, "Items": model_items.documents()})),
    b"DescribeTable": _table(model_items.TABLE),
    b"DescribeTimeToLive": _reply({"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}),
}


def _answer_to(operation: bytes, body: bytes) -> bytes:
    if _MODEL not in body:
        return _UPDATED if operation == b"UpdateItem" and b'"ALL_NEW"' in body else _REPLIES[operation]
    if b'"holdall#' in body and operation in _NOTHING:  # a run's checkpoint: none is stored
        return _NOTHING[operation]
    number = _NUMBER.search(body) if operation == b"GetItem" else None
    return _REPLIES_TO_MODELS[operation] if number is None else _ORDERS[int(number[1])]


class _Connection:
    """Collects whole requests and sends canned replies."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connected
        self._data = b""

    def answer(self) -> bool:
        """Answer the requests that have arrived; return False if the client has closed the connection."""
        try:
            arrived = self._socket.recv(_CHUNK)
        except ConnectionResetError:
            arrived = b""
        if not arrived:
            self._socket.close()
            return False
        self._data += arrived
        end = self._data.find(b"\r\n\r\n") + 4
        if end >= 4:
            self._answer(self._data[: end - 2], end)
        return True

    def _answer(self, head: bytes, end: int) -> None:
        length = _LENGTH.search(head)
        operation = _OPERATION.search(head)
        assert length is not None, head
        assert operation is not None, head
        whole = end + int(length[1])
        if len(self._data) >= whole:
            body, self._data = self._data[end:whole], self._data[whole:]
            self._socket.sendall(_answer_to(operation[1], body))


def _serve() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    print(listener.getsockname()[1], flush=True)
    waiting = select.epoll()
    waiting.register(listener, select.EPOLLIN)
    waiting.register(sys.stdin, select.EPOLLIN)
    connections: dict[int, _Connection] = {}
    while True:
        for number, _ in waiting.poll():
            if number == sys.stdin.fileno():
                return
            if number == listener.fileno():
                connected, _ = listener.accept()
                connections[connected.fileno()] = _Connection(connected)
                waiting.register(connected, select.EPOLLIN)
            elif not connections[number].answer():
                del connections[number]


if __name__ == "__main__":
    _serve()
