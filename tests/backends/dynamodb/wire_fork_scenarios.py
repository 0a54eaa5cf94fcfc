"""A program that forks while it uses a backend: ``python wire_fork_scenarios.py scenario url``. It prints nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from contextlib import suppress

from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import resolve_endpoint
from holdall.backends.dynamodb.backend import DynamoBackend
from holdall.core.requests import GetItem
from holdall.errors import HoldallError

KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"}


def ask_for(name: str) -> GetItem:
    return GetItem("things", {"pk": {"S": name}})


def in_a_child(backend: DynamoBackend) -> None:
    """Use the backend in a forked child, which must succeed within ten seconds."""
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        code = 1
        try:
            for number in range(5):
                reply = backend.send_blocking(ask_for(f"child-{number}"))
                assert reply.item == {"pk": {"S": f"child-{number}"}}
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the child ended with status {status}"


def keep_connection(backend: DynamoBackend) -> None:
    backend.send_blocking(ask_for("parent-1"))
    in_a_child(backend)
    backend.send_blocking(ask_for("parent-2"))


def discovery_under_way(backend: DynamoBackend) -> None:
    """Fork while another thread describes a table and may hold locks."""

    def describe() -> None:
        with suppress(HoldallError):
            backend.send_blocking(GetItem("parents", {"pk": {"S": "a"}}))

    threading.Thread(target=describe, daemon=True).start()
    while not any(frame.f_code.co_name == "receive" for frame in sys._current_frames().values()):
        time.sleep(0.001)  # until the thread waits for the reply, which does not come
    in_a_child(backend)


def inside_an_event_loop(backend: DynamoBackend) -> None:
    async def main() -> None:
        await backend.send_awaiting(ask_for("parent-1"))
        in_a_child(backend)
        await backend.send_awaiting(ask_for("parent-2"))

    asyncio.run(main())


def main(scenario: str, url: str) -> None:
    endpoint = resolve_endpoint("dynamodb", endpoint=url, environment=KEYS)
    backend = DynamoBackend(endpoint, find_credentials(environment=KEYS))
    scenarios = {
        "keep_connection": keep_connection,
        "discovery_under_way": discovery_under_way,
        "inside_an_event_loop": inside_an_event_loop,
    }
    scenarios[scenario](backend)
    backend.close()
    os._exit(0)  # a thread may still wait for a reply that does not come


if __name__ == "__main__":
    main(*sys.argv[1:])
