"""Tags of objects in S3: how they are sent and read."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import pytest
from s3_rig import (
    BUCKET,
    bucket,
    client,
    line_of,
    make_document_reply,
    make_error_reply,
    make_object_reply,
    make_reply,
)
from wire_rig import COLOURS, Colour

from holdall.core.objects import BeginUpload, GetTags, ObjectRequest, PutObject
from holdall.errors import AccessDeniedError, ConfigurationError, MalformedReplyError, ObjectNotFoundError

TAGS = {"colour": "red", "a b": "1 + 1 = 2", "ü/@:._-": ""}
BEGUN = make_document_reply("<R><UploadId>u1</UploadId></R>")


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest) -> Colour:
    given: Colour = request.param
    return given


@pytest.mark.parametrize(
    ("request_", "step"),
    [
        (PutObject("", "a", b"words", tags=TAGS), make_reply()),
        (PutObject("", "a", b"words", if_absent="mine", tags=TAGS), make_reply()),
        (PutObject("", "a", b"words", if_match="old", tags=TAGS), make_reply()),
        (BeginUpload("", "a", tags=TAGS), BEGUN),
    ],
    ids=["put", "creation", "replacement", "upload"],
)
def test_tags_are_sent_as_a_query(colour: Colour, request_: ObjectRequest[Any], step: Any) -> None:
    with bucket(step) as server, client(colour, server) as ours:
        ours.ask(request_)
    sent = server.requests[0].headers["x-amz-tagging"]
    assert sent == "colour=red&a%20b=1%20%2B%201%20%3D%202&%C3%BC%2F%40%3A._-="
    assert dict(parse_qsl(sent, keep_blank_values=True)) == TAGS


def test_without_tags_there_is_no_header(colour: Colour) -> None:
    with bucket(make_reply(), BEGUN) as server, client(colour, server) as ours:

        async def flow() -> None:
            await ours.send(PutObject("", "a", b"words"))
            await ours.send(BeginUpload("", "a"))

        ours.finish(flow)
    assert not [received for received in server.requests if "x-amz-tagging" in received.headers]


@pytest.mark.parametrize("namespace", ["", ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'])
def test_tags_are_read_from_their_document(colour: Colour, namespace: str) -> None:
    document = (
        f"<Tagging{namespace}><TagSet><Tag><Key>colour</Key><Value>red</Value></Tag>"
        "<Tag><Key>a &lt; ü</Key><Value></Value></Tag><Tag><Key>b</Key><Value/></Tag></TagSet></Tagging>"
    )
    with bucket(make_document_reply(document)) as server, client(colour, server, prefix="p/") as ours:
        assert ours.ask(GetTags("", "a b")) == {"colour": "red", "a < ü": "", "b": ""}
    assert line_of(server.requests[0]) == ("GET", f"/{BUCKET}/p/a%20b?tagging=")


def test_an_object_without_tags_has_none(colour: Colour) -> None:
    for document in ("<Tagging><TagSet/></Tagging>", "<Tagging/>"):
        with bucket(make_document_reply(document)) as server, client(colour, server) as ours:
            assert ours.ask(GetTags("", "a")) == {}


def test_tags_that_cannot_be_read_are_an_error(colour: Colour) -> None:
    for step, error in (
        (make_error_reply("NoSuchKey", 404), ObjectNotFoundError),
        (make_error_reply("AccessDenied", 403), AccessDeniedError),
        (make_error_reply("NotImplemented", 501), ConfigurationError),
        (
            make_document_reply("<Tagging><TagSet><Tag><Value>red</Value></Tag></TagSet></Tagging>"),
            MalformedReplyError,
        ),
    ):
        with bucket(step) as server, client(colour, server) as ours, pytest.raises(error):
            ours.ask(GetTags("", "a"))


@pytest.mark.parametrize("body", [b"", b"words", b"<words/>", b"\xff\x00"])
def test_a_server_that_returns_the_object_instead_does_not_support_tags(colour: Colour, body: bytes) -> None:
    with (
        bucket(make_object_reply(body)) as server,
        client(colour, server) as ours,
        pytest.raises(ConfigurationError, match="does not support tags"),
    ):
        ours.ask(GetTags("", "a"))
