"""A worker in its own process that prints each attempt before it begins, and then its result, until it is killed.

Arguments: endpoint, table, name, how single writes are sent. Lines: ``try <kind> <id>``, then
``<result> <kind> <id>``.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Sequence
from itertools import count
from typing import Any

from simulated_writes import Kind, await_result, kinds

from holdall.backends.aws import courier
from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import resolve_endpoint
from holdall.backends.dynamodb.backend import DynamoBackend
from holdall.core.port import run
from holdall.core.requests import Request
from holdall.core.settings import SingleWrites


async def work(open_backend: DynamoBackend, table: str, name: str, kinds: Sequence[Kind]) -> None:
    async def send(request: Request[Any]) -> Any:
        return open_backend.send_blocking(request)

    order = random.Random(name)
    for round in count():
        for kind in order.sample(kinds, len(kinds)):
            id = f"{name}.{round}"
            print("try", kind.name, id, flush=True)
            result = await await_result(kind.attempt(send, table, id))
            print(result, kind.name, id, flush=True)


def main(url: str, table: str, name: str, manner: str) -> None:
    courier.BASE_SECONDS /= 50
    courier.LONGEST_PAUSE /= 50
    endpoint = resolve_endpoint("dynamodb", endpoint=url, environment=os.environ)
    credentials = find_credentials(environment=os.environ)
    single_writes: SingleWrites = "token" if manner == "token" else "auto"
    open_backend = DynamoBackend(endpoint, credentials, single_writes=single_writes)
    run(work(open_backend, table, name, kinds(single_writes)))


if __name__ == "__main__":
    main(*sys.argv[1:])
