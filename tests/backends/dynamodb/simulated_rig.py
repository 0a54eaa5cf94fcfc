"""Helpers of the simulations: their length and seed, a backend, the initial table, and its state at the end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest
from rig.servers import ENVIRONMENT, GIVEN, start_server
from simulated_writes import KINDS, Contents, decode_items, schema

from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import resolve_endpoint
from holdall.backends.dynamodb.backend import DynamoBackend
from holdall.core.requests import CreateTable, DeleteTable, PutItem, Scan
from holdall.core.settings import SingleWrites
from holdall.core.values import encode_item

__all__ = ["ROUNDS", "SEED", "open_backend", "plain_url", "prepare_table", "read_contents"]

SEED = os.environ.get("HOLDALL_SEED", "20261115")
ROUNDS = int(os.environ.get("HOLDALL_TORTURE_ROUNDS", "4"))


def plain_url(server: str) -> str:
    """Start the server and return its URL; skip the test if the server uses TLS."""
    url = start_server(server)
    if not url.startswith("http://"):
        pytest.skip(f"{server} speaks TLS, which the lossy proxy cannot read")
    return url


@contextmanager
def open_backend(server: str, url: str, single_writes: SingleWrites = "auto") -> Iterator[DynamoBackend]:
    environment = os.environ if server == GIVEN else ENVIRONMENT
    endpoint = resolve_endpoint("dynamodb", endpoint=url, environment=environment)
    opened = DynamoBackend(endpoint, find_credentials(environment=environment), single_writes=single_writes)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def prepare_table(direct: DynamoBackend) -> Iterator[str]:
    """Create a table with the initial items of every kind of write."""
    table = f"holdall-simulation-{uuid4().hex}"
    direct.send_blocking(CreateTable(schema(table)))
    try:
        for kind in KINDS:
            for item in kind.start():
                direct.send_blocking(PutItem(table, encode_item(item)))
        yield table
    finally:
        direct.send_blocking(DeleteTable(table))


def read_contents(direct: DynamoBackend, table: str) -> Contents:
    """Return all items, read without the lossy network."""
    pages = [direct.send_blocking(Scan(table, consistent=True))]
    while pages[-1].last_key is not None:
        pages.append(direct.send_blocking(Scan(table, start_after=pages[-1].last_key, consistent=True)))
    return decode_items(item for page in pages for item in page.items)
