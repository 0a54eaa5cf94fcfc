"""Every listed deviation still exists, and its entry alone recognizes it."""

from __future__ import annotations

import pytest
from deviations import SERVERS, Deviation
from differential_pair import open_checked_wire, open_pair, open_unchecked_wire

from holdall.core.requests import CreateTable, DeleteTable, Request

LISTED = [(name, deviation) for name, server in SERVERS.items() for deviation in server.deviations]


@pytest.mark.parametrize(
    ("name", "deviation"), LISTED, ids=[f"{name}: {known.reason[:60]}" for name, known in LISTED]
)
def test_a_listed_deviation_is_still_there(name: str, deviation: Deviation) -> None:
    server, example = SERVERS[name], deviation.example
    with open_checked_wire(name) as checked, open_unchecked_wire(name) as raw:

        def send(request: Request[object]) -> object:
            return (checked if isinstance(request, CreateTable | DeleteTable) else raw)(request)

        with open_pair(example.schema, send, server.normalize, example.stored) as pair:
            for request in example.earlier:
                assert pair.compare(request) is None
            seen = pair.compare(example.request)
    assert seen is not None, f"{name} no longer deviates; remove this entry: {deviation.reason}"
    assert server.excuse(seen) is deviation, str(seen)
