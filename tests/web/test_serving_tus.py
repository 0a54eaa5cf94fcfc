"""Resumable uploads over HTTP: the requests and replies of tus 1.0.0, and rejected requests."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from datetime import timedelta
from email.utils import parsedate_to_datetime
from hashlib import md5, sha1, sha256
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from httpx import Response
from rig.clock import Clock, TimedPort
from rig.recorder import Recorder
from serving_rig import SECRET, Place, open_place
from web_rig import ask_app, serve_asgi

from holdall import Database, Key, Model, has_one_attached
from holdall.attachments import Accept
from holdall.backends.memory import MemoryService
from holdall.core.frozen import replace
from holdall.core.objects import PutObject, UploadPart
from holdall.web import create_app

UPLOADS = "/attachments/uploads"
DATA = b"GIF89a, and more of what is in a picture"
SIZE = len(DATA)
BODY_TYPE = "application/offset+octet-stream"
METADATA = (
    f"filename {b64encode('ä.gif'.encode()).decode()},empty,filetype {b64encode(b'image/png').decode()}"
)


class Album(Model):
    """A model with an attachment."""

    name: Key[str]
    cover = has_one_attached()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    limits = Accept(types=["image/*"], max_bytes=1_000_000)
    with open_place(tmp_path_factory.mktemp("tus"), accept=limits) as found:
        yield found


def ask(place: Place, method: str, url: str, body: Any = b"", *, app: Any = None, **headers: Any) -> Response:
    """Send a request with the protocol's version; a header whose value is None is not sent."""
    given: dict[str, Any] = {"Tus-Resumable": "1.0.0"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    sent = {name: str(value) for name, value in given.items() if value is not None}
    response = ask_app(app or place.app, method, url, content=body, headers=sent)
    assert response.headers["Tus-Resumable"] == "1.0.0"
    return response


def create(place: Place, size: Any = SIZE, **headers: Any) -> Response:
    return ask(place, "POST", UPLOADS, **{"Upload_Length": size, "Upload_Metadata": METADATA} | headers)


def patch(place: Place, url: str, offset: Any, body: Any, **headers: Any) -> Response:
    named = {"Upload_Offset": offset, "Content_Type": BODY_TYPE}
    return ask(place, "PATCH", url, body, **named | headers)


def test_options_reports_what_the_server_supports(place: Place) -> None:
    for url in (UPLOADS, f"{UPLOADS}/anything"):
        response = ask(place, "OPTIONS", url, Tus_Resumable=None)
        assert (response.status_code, response.headers["Tus-Version"]) == (204, "1.0.0")
        assert response.headers["Tus-Max-Size"] == "1000000"
        assert response.headers["Tus-Checksum-Algorithm"] == "md5,sha1,sha256"
        assert set(response.headers["Tus-Extension"].split(",")) == {
            *("creation", "creation-with-upload", "expiration", "checksum", "termination"),
        }


def test_a_file_is_uploaded_in_several_requests_and_attached_by_its_signed_id(place: Place) -> None:
    created = create(place)
    url = created.headers["Location"]
    assert (created.status_code, created.headers["Upload-Offset"]) == (201, "0")
    assert url.startswith(f"{UPLOADS}/")
    for at, end in ((0, 6), (6, 7), (7, len(DATA))):
        response = patch(place, url, at, DATA[at:end])
        assert (response.status_code, response.headers["Upload-Offset"]) == (204, str(end))
        looked = ask(place, "HEAD", url)
        assert (looked.status_code, looked.headers["Upload-Offset"]) == (200, str(end))
        assert looked.headers["Upload-Length"] == str(len(DATA))
        assert looked.headers["Upload-Metadata"] == METADATA
        assert looked.headers["Cache-Control"] == "no-store"
        for reply in (response, looked):
            assert ("Upload-Expires" in reply.headers) is (end < len(DATA))
            assert ("Holdall-Signed-Id" in reply.headers) is (end == len(DATA))
    with place.db.transaction() as tx:
        album = tx.create(Album, name="a")
        album.cover = response.headers["Holdall-Signed-Id"]
    blob = album.cover.blob
    assert blob is not None
    assert (str(blob.filename), blob.content_type) == ("ä.gif", "image/gif")
    assert place.get(place.proxy_url(blob)).content == DATA


def test_a_small_file_is_uploaded_with_its_creation(place: Place) -> None:
    created = ask(
        place,
        "POST",
        UPLOADS,
        DATA,
        Upload_Length=len(DATA),
        Upload_Metadata=METADATA,
        Content_Type=BODY_TYPE,
    )
    assert (created.status_code, created.headers["Upload-Offset"]) == (201, str(len(DATA)))
    blob = place.db.blobs.find_signed(created.headers["Holdall-Signed-Id"], purpose="attach")
    assert blob is not None
    assert blob.checksum == b64encode(md5(DATA).digest()).decode()
    assert place.db.blobs.download(blob) == DATA
    assert "Holdall-Signed-Id" in create(place, 0).headers


def test_an_invalid_creation_is_rejected(place: Place) -> None:
    wrong: list[tuple[int, dict[str, Any]]] = [
        *((400, {"Upload_Length": size}) for size in (None, "", "-1", "many", "9" * 30)),
        (400, {"Upload_Length": None, "Upload_Defer_Length": 1}),
        *(
            (400, {"Upload_Metadata": metadata})
            for metadata in ("name %", "a YQ==,a YQ==", "a YQ==,", "a YQ", "x" * 9000)
        ),
        (400, {"Upload_Metadata": f"filetype {b64encode(b'image/png' + bytes([10])).decode()}"}),
        (413, {"Upload_Length": 1_000_001}),
        (415, {"Upload_Metadata": f"type {b64encode(b'text/html').decode()}"}),
        (403, {"Sec_Fetch_Site": "cross-site"}),
    ]
    for status, headers in wrong:
        assert create(place, **headers).status_code == status, headers
    response = create(place, Tus_Resumable="0.2.2")
    assert (response.status_code, response.headers["Tus-Version"]) == (412, "1.0.0")


def test_a_hook_decides_which_uploads_are_created(place: Place) -> None:
    requested = []

    def decide(request: Any, wanted: Any) -> bool:
        requested.append((wanted.action, wanted.filename, wanted.content_type, wanted.byte_size))
        return bool(wanted.byte_size < 10)

    app = create_app(place.db, authorize=decide)
    assert [create(place, size, app=app).status_code for size in (9, 10)] == [201, 403]
    assert requested == [("upload", "ä.gif", "image/png", size) for size in (9, 10)]


def test_bytes_at_a_wrong_offset_or_past_the_end_are_rejected_and_not_kept(place: Place) -> None:
    url = create(place).headers["Location"]
    patch(place, url, 0, DATA[:10])
    for status, offset, body, headers in (
        (409, 0, DATA[:10], {}),
        (409, 11, DATA[11:], {}),
        (400, None, DATA[10:], {}),
        (400, "-1", DATA[10:], {}),
        (415, 10, DATA[10:], {"Content_Type": "application/octet-stream"}),
        (415, 10, DATA[10:], {"Content_Type": None}),
        (412, 10, DATA[10:], {"Tus_Resumable": None}),
        (413, 10, DATA[10:] + b"more", {}),
        (413, 10, iter([DATA[10:], b"more"]), {}),
    ):
        content = send_pieces(body) if isinstance(body, Iterator) else body
        response = patch(place, url, offset, content, **headers)
        assert response.status_code == status, (offset, headers)
        if status == 409:
            assert response.headers["Upload-Offset"] == "10"
        assert ask(place, "HEAD", url).headers["Upload-Offset"] == "10"
    assert patch(place, url, 10, DATA[10:]).headers["Upload-Offset"] == str(len(DATA))


async def send_pieces(pieces: Iterator[bytes]) -> Any:
    for piece in pieces:
        yield piece


def test_bytes_with_a_wrong_checksum_are_not_kept(place: Place) -> None:
    url = create(place).headers["Location"]
    right = b64encode(sha1(DATA[:20]).digest()).decode()
    wrong = b64encode(sha1(b"others").digest()).decode()
    for status, checksum in ((460, f"sha1 {wrong}"), (400, f"crc32 {right}"), (400, "sha1 %"), (400, "sha1")):
        assert patch(place, url, 0, DATA[:20], Upload_Checksum=checksum).status_code == status
        assert ask(place, "HEAD", url).headers["Upload-Offset"] == "0"
    assert patch(place, url, 0, DATA[:20], Upload_Checksum=f"sha1 {right}").status_code == 204
    last = b64encode(sha256(DATA[20:]).digest()).decode()
    done = patch(place, url, 20, DATA[20:], Upload_Checksum=f"sha256 {last}")
    blob = place.db.blobs.find_signed(done.headers["Holdall-Signed-Id"], purpose="attach")
    assert blob is not None
    assert place.db.blobs.download(blob) == DATA


def test_a_terminated_upload_is_gone(place: Place) -> None:
    url = create(place).headers["Location"]
    patch(place, url, 0, DATA[:10])
    before = len(list(place.db.files.list()))
    assert ask(place, "DELETE", url).status_code == 204
    assert len(list(place.db.files.list())) == before - 1
    for method in ("HEAD", "PATCH", "DELETE"):
        response = ask(place, method, url, Upload_Offset=10, Content_Type=BODY_TYPE)
        assert (response.status_code, "Upload-Offset" in response.headers) == (404, False)


def test_a_head_request_completes_an_upload_whose_server_died_after_the_last_byte(place: Place) -> None:
    upload = place.db.blobs.start_upload(filename="a.gif", byte_size=SIZE)

    def die() -> Iterator[bytes]:
        yield DATA
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        place.db.blobs.continue_upload(upload, 0, die())
    assert not place.db.blobs.find_upload(upload.id).is_complete
    looked = ask(place, "HEAD", f"{UPLOADS}/{place.db.blobs.signed_id(upload.id, purpose='upload')}")
    blob = place.db.blobs.find_signed(looked.headers["Holdall-Signed-Id"], purpose="attach")
    assert blob is not None
    assert place.db.blobs.download(blob) == DATA


def test_a_header_can_override_the_method(place: Place) -> None:
    url = create(place).headers["Location"]
    named = {"Upload_Offset": 0, "Content_Type": BODY_TYPE, "X_HTTP_Method_Override": "PATCH"}
    assert ask(place, "POST", url, DATA, **named).status_code == 204
    assert ask(place, "POST", url).status_code == 405


def test_another_signed_id_is_not_the_url_of_an_upload(place: Place) -> None:
    blob = place.store(DATA, "a.gif")
    for wrong in (
        "nonsense",
        blob.id,
        place.db.blobs.signed_id(blob, purpose="attach"),
        place.db.blobs.signed_id(blob, purpose="upload"),
    ):
        for method in ("HEAD", "DELETE"):
            assert ask(place, method, f"{UPLOADS}/{wrong}").status_code == 404
    assert place.db.blobs.download(blob) == DATA


def test_an_upload_expires_at_the_time_that_its_replies_announce(tmp_path: Path) -> None:
    clock = Clock(ticking=True)
    with open_place(tmp_path) as place:
        aio = place.db.aio
        aio._context = replace(aio._context, port=TimedPort(aio._context.port, clock))
        app = create_app(aio)
        url = create(place, app=app).headers["Location"]
        response = patch(place, url, 0, DATA[:10], app=app)
        until = parsedate_to_datetime(response.headers["Upload-Expires"])
        assert timedelta(hours=23, minutes=59) < until - clock.now() <= timedelta(days=1)
        clock.forward((until - clock.now()).total_seconds() - 60)
        assert ask(place, "HEAD", url, app=app).status_code == 200
        clock.forward(61)
        assert ask(place, "HEAD", url, app=app).status_code == 404
        assert patch(place, url, 10, DATA[10:], app=app).status_code == 404


def test_a_large_request_is_stored_in_parts_and_a_broken_one_keeps_what_arrived() -> None:
    mebibyte = bytes(1024**2)
    service = Recorder(MemoryService())
    with (
        Database("memory:", files=service, secret=SECRET) as db,
        serve_asgi(create_app(db)) as server,
    ):
        upload = db.blobs.start_upload(filename="a.bin", byte_size=26 * 1024**2)
        url = f"{UPLOADS}/{db.blobs.signed_id(upload.id, purpose='upload')}"
        address = urlsplit(server)
        connection = HTTPConnection(str(address.hostname), address.port)
        begin_patch(connection, url, 0, 26 * 1024**2)
        for _ in range(19):
            connection.send(mebibyte)
        connection.close()
        connection = HTTPConnection(str(address.hostname), address.port)
        for _ in range(5000):  # until the server notices the disconnect
            connection.request("HEAD", url, headers={"Tus-Resumable": "1.0.0"})
            response = connection.getresponse()
            response.read()
            if response.headers["Upload-Offset"] == str(19 * 1024**2):
                break
        begin_patch(connection, url, 19 * 1024**2, 7 * 1024**2)
        for _ in range(7):
            connection.send(mebibyte)
        response = connection.getresponse()
        assert (response.status, response.headers["Upload-Offset"]) == (204, str(26 * 1024**2))
        connection.close()
        assert db.blobs.download(upload.id) == mebibyte * 26
    sizes = [len(request.body) for request in service.list_sent(PutObject, UploadPart)]
    assert max(sizes) == 8 * 1024**2


def test_a_client_that_stops_sending_times_out(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdall.web.serving.body.IDLE", 0.1)
    with serve_asgi(place.app) as server:
        url = create(place, 900_000).headers["Location"]
        address = urlsplit(server)
        connection = HTTPConnection(str(address.hostname), address.port)
        begin_patch(connection, url, 0, 800_000)
        connection.send(DATA)
        assert connection.getresponse().status == 408
        connection.close()
    assert ask(place, "HEAD", url).headers["Upload-Offset"] == str(SIZE)


def begin_patch(connection: HTTPConnection, url: str, offset: int, size: int) -> None:
    """Send the head of a PATCH request; the caller sends the body."""
    connection.putrequest("PATCH", url)
    for name, value in {
        "Tus-Resumable": "1.0.0",
        "Upload-Offset": offset,
        "Content-Type": BODY_TYPE,
        "Content-Length": size,
    }.items():
        connection.putheader(name, str(value))
    connection.endheaders()
