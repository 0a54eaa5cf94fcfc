"""The log of the wire: it reports throttled calls without their data."""

from __future__ import annotations

import logging

import pytest
from scripted_server import refuse_with, reply_with, serve_script
from wire_rig import COLOURS, Colour, client, describe_things

from holdall.core.requests import GetItem

MARK = "m4rk"


@pytest.mark.parametrize("colour", COLOURS)
def test_a_throttled_call_is_logged_without_its_data(
    colour: Colour, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="holdall")
    throttled = refuse_with("ThrottlingException", f"too much of {MARK}")
    failed = refuse_with("InternalServerError", MARK, status=500)
    script = [describe_things(), throttled, failed, throttled, reply_with({})]
    with serve_script(*script) as server, client(colour, server.url) as ours:
        ours.ask(GetItem("things", {"pk": {"S": MARK}}))
    records = [record for record in caplog.records if record.name.startswith("holdall")]
    assert [(record.name, record.levelname) for record in records] == [("holdall.dynamodb", "WARNING")] * 2
    assert [record.getMessage().partition(";")[0] for record in records] == [
        "GetItem was throttled on attempt 1",
        "GetItem was throttled on attempt 3",
    ]
    assert MARK not in "".join(str(record.__dict__) for record in records)
