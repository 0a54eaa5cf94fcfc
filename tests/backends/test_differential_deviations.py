"""The list of deviations is true: each is still to be seen, and each is told from the others."""

from __future__ import annotations

import pytest
from deviations import SERVERS, Deviation
from differential_pair import check_wire, open_pair, raw_wire

from holdall.core.requests import CreateTable, DeleteTable, Request

LISTED = [(name, deviation) for name, server in SERVERS.items() for deviation in server.deviations]


@pytest.mark.parametrize(
    ("name", "deviation"), LISTED, ids=[f"{name}: {known.reason[:60]}" for name, known in LISTED]
)
def test_a_listed_deviation_is_still_there(name: str, deviation: Deviation) -> None:
    server, example = SERVERS[name], deviation.example
    with check_wire(name) as checked, raw_wire(name) as raw:

        def send(request: Request[object]) -> object:
            return (checked if isinstance(request, CreateTable | DeleteTable) else raw)(request)

        with open_pair(example.schema, send, server.look, example.stored) as pair:
            for request in example.earlier:
                assert pair.ask(request) is None
            seen = pair.ask(example.request)
    assert seen is not None, f"{name} does as DynamoDB does now; take this off the list: {deviation.reason}"
    assert server.excuse(seen) is deviation, str(seen)
