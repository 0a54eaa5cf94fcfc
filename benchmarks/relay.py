"""A relay to a server on the same machine that counts the requests that pass through it.

It only recognizes where a request begins: at the start of a connection, or after the last bytes of a reply. That is
correct for clients that wait for each reply on a connection, as all clients here do.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from select import select
from urllib.parse import urlsplit

__all__ = ["Relay", "open_relay"]

_BLOCK = 256 * 1024
_LINE = re.compile(rb"([A-Z]+) (\S+) HTTP/1\.[01]\r\n")


class Relay:
    """A running relay, which listens at ``url``."""

    def __init__(self, to: str) -> None:
        place = urlsplit(to)
        self._server = (place.hostname, place.port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self._lock = threading.Lock()
        self._seen: list[str] = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def take_methods(self) -> list[str]:
        """Return the methods of the requests since the last call."""
        with self._lock:
            seen, self._seen = self._seen, []
        return seen

    def close(self) -> None:
        """Stop accepting connections."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._converse, args=(client,), daemon=True).start()

    def _converse(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._server) as server:
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            may_begin = True  # whether the client's next bytes begin a request
            while True:
                for end in select([client, server], [], [])[0]:
                    try:
                        data = end.recv(_BLOCK)
                        if not data:
                            return
                        if end is client and may_begin:
                            self._count(data)
                        may_begin = end is server
                        (server if end is client else client).sendall(data)
                    except ConnectionError:
                        return  # either side may close the connection

    def _count(self, data: bytes) -> None:
        line = _LINE.match(data)
        if line is not None:  # otherwise it is a body that the server requested
            with self._lock:
                self._seen.append(line[1].decode())


@contextmanager
def open_relay(to: str) -> Iterator[Relay]:
    """Run a relay to a server until the block ends."""
    relay = Relay(to)
    try:
        yield relay
    finally:
        relay.close()
