"""When an object that was uploaded in parts is read completely, its bytes are compared with the MD5s of the parts."""

from __future__ import annotations

import asyncio
from hashlib import md5

import pytest
from s3_rig import (
    ASK_FOR_BODY,
    ETAG,
    WHEN,
    bucket,
    line_of,
    make_document_reply,
    make_object_reply,
    make_reply,
    query_of,
)
from scripted_server import ReceivedRequest, Step, http
from wire_rig import COLOURS, KEYS, Colour

from holdall import AsyncDatabase, Database
from holdall.errors import IntegrityError

MEBIBYTE = 1024 * 1024
DATA = bytes(range(256)) * (11 * MEBIBYTE // 256)


class Bucket:
    """A stand-in for S3 with one object in parts, which it can damage."""

    def __init__(self, *parts: bytes, reports_part_sizes: bool = True) -> None:
        self.parts = dict(enumerate(parts, 1))
        self.reports_part_sizes = reports_part_sizes
        self.etag = self._etag()
        self.damaged = False

    def _etag(self) -> str:
        digests = b"".join(md5(part).digest() for _, part in sorted(self.parts.items()))
        return f"{md5(digests).hexdigest()}-{len(self.parts)}"

    def answer(self, received: ReceivedRequest) -> Step:
        method, _ = line_of(received)
        query = query_of(received)
        if method == "PUT":
            if not received.body:
                return ASK_FOR_BODY
            self.parts[int(query["partNumber"])] = received.body
            return make_reply(headers={"ETag": f'"{md5(received.body).hexdigest()}"'})
        if "uploads" in query:
            return make_document_reply(
                "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"
            )
        if method == "POST":
            self.etag = self._etag()
            return make_document_reply(
                f"<CompleteMultipartUploadResult><ETag>{self.etag}</ETag></CompleteMultipartUploadResult>"
            )
        whole = b"".join(part for _, part in sorted(self.parts.items()))
        headers: dict[str, object] = {"ETag": f'"{self.etag}"'}
        if method == "HEAD":
            length = len(whole)
            if "partNumber" in query and self.reports_part_sizes:
                length = len(self.parts[int(query["partNumber"])])
                headers["x-amz-mp-parts-count"] = len(self.parts)
            headers |= {"Content-Length": length, "Last-Modified": WHEN, "Date": WHEN}
            return Step((http(200, headers),))
        if self.damaged:
            whole = whole[:-9] + b"?" + whole[-8:]
        start, _, end = received.headers["range"].removeprefix("bytes=").partition("-")
        last = min(int(end), len(whole) - 1)
        headers["Content-Range"] = f"bytes {start}-{last}/{len(whole)}"
        return make_object_reply(whole[int(start) : last + 1], headers, 206)


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in KEYS.items():
        monkeypatch.setenv(name, text)


def get(colour: Colour, files: str, *, put: bytes | None = None, verify: bool = True) -> bytes:
    async def get_awaiting() -> bytes:
        async with AsyncDatabase("memory:", files=files) as db:
            if put is not None:
                await db.files.put("large", put)
            return await db.files.get("large", verify=verify)

    if colour == "awaiting":
        return asyncio.run(get_awaiting())
    with Database("memory:", files=files) as db:
        if put is not None:
            db.files.put("large", put)
        return db.files.get("large", verify=verify)


@pytest.mark.parametrize("colour", COLOURS)
def test_a_damaged_object_is_noticed(colour: Colour) -> None:
    place = Bucket()
    with bucket(answer=place.answer) as server:
        files = f"s3://things?endpoint={server.url}&region=us-east-1"
        assert get(colour, files, put=DATA) == DATA
        assert sorted(map(len, place.parts.values())) == [MEBIBYTE, 5 * MEBIBYTE, 5 * MEBIBYTE]
        place.damaged = True
        with pytest.raises(IntegrityError, match="etag"):
            get(colour, files, put=DATA)
        assert get(colour, files, put=DATA, verify=False) != DATA


def test_parts_of_unexpected_sizes_are_not_taken_for_damage() -> None:
    place = Bucket()
    with (
        bucket(answer=place.answer) as server,
        Database("memory:", files=f"s3://things?endpoint={server.url}&region=us-east-1") as db,
    ):
        db.files.put("large", DATA)  # shows that this server's etags are digests
        place.parts = {1: DATA[: 6 * MEBIBYTE], 2: DATA[6 * MEBIBYTE :]}
        place.etag = place._etag()
        assert db.files.head("large").parts == 2
        assert db.files.get("large") == DATA
        numbers = [
            query_of(each)["partNumber"]
            for each in server.requests
            if line_of(each)[0] == "HEAD" and query_of(each)
        ]
        assert numbers == ["1"]  # a single request is enough


@pytest.mark.parametrize("etag", [f"{ETAG}-3", "opaque"])
def test_etags_that_are_not_digests_are_ignored(etag: str) -> None:
    place = Bucket()
    place._etag = lambda: etag  # type: ignore[method-assign]
    with bucket(answer=place.answer) as server:
        files = f"s3://things?endpoint={server.url}&region=us-east-1"
        assert get("blocking", files, put=DATA) == DATA


def test_without_the_sizes_of_the_parts_the_bytes_are_not_checked() -> None:
    place = Bucket(reports_part_sizes=False)
    with bucket(answer=place.answer) as server:
        place.damaged = True
        files = f"s3://things?endpoint={server.url}&region=us-east-1"
        assert len(get("blocking", files, put=DATA)) == len(DATA)
