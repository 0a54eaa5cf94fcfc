"""What the log hears of the wire: that a call was throttled, and nothing of what it was about."""

from __future__ import annotations

import logging

import pytest
from scripted_server import refuses, says, serve_script
from wire_rig import COLOURS, Colour, client, describe_things

from holdall.core.requests import GetItem

MARK = "m4rk"


@pytest.mark.parametrize("colour", COLOURS)
def test_a_call_that_is_throttled_and_sent_again_is_told_without_its_data(
    colour: Colour, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="holdall")
    throttled = refuses("ThrottlingException", f"too much of {MARK}")
    failed = refuses("InternalServerError", MARK, status=500)
    script = [describe_things(), throttled, failed, throttled, says({})]
    with serve_script(*script) as server, client(colour, server.url) as ours:
        ours.ask(GetItem("things", {"pk": {"S": MARK}}))
    records = [record for record in caplog.records if record.name.startswith("holdall")]
    assert [(record.name, record.levelname) for record in records] == [("holdall.dynamodb", "WARNING")] * 2
    assert [record.getMessage().partition(";")[0] for record in records] == [
        "GetItem was throttled on attempt 1",
        "GetItem was throttled on attempt 3",
    ]
    assert MARK not in "".join(str(record.__dict__) for record in records)
