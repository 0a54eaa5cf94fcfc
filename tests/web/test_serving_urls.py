"""Signed URLs of files on disk and in memory, served by the application: their contract, over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from httpx import Client, Response
from rig.files import bucket_service
from serving_rig import SECRET, Place, open_place
from web_rig import ask_app, serve_asgi

from holdall import Database
from holdall.backends.disk import DiskService
from holdall.backends.memory import MemoryService
from holdall.core.object_url import PUT
from holdall.core.signature import sign
from holdall.testing.file_contract import run_service_check, service_checks
from holdall.testing.file_contract.check import NAME, md5_of
from holdall.web import create_app

SERVED = [each for each in service_checks() if "served_urls" in each.requires]


@pytest.fixture(scope="module", params=["disk", "memory"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A service whose URLs lead to an application in this process."""

    def base_url() -> str:
        return f"{url}/attachments/disk"

    service: Any = MemoryService(secret=[SECRET], base_url=base_url)
    if request.param == "disk":
        service = DiskService(tmp_path_factory.mktemp("files"), secret=[SECRET], base_url=base_url)
    with Database("memory:", files={NAME: service}, secret=SECRET) as db, serve_asgi(create_app(db)) as url:
        yield service


@pytest.mark.parametrize("check", SERVED, ids=str)
def test_signed_urls_keep_the_contract(service: Any, check: Any) -> None:
    assert len(SERVED) == 8
    run_service_check(check, service, "blocking")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with open_place(tmp_path_factory.mktemp("serving")) as found:
        yield found


def put(place: Place, url: str, body: bytes, **headers: str) -> Response:
    return ask_app(
        place.app, "PUT", url, content=body, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


def test_only_an_upload_that_matches_its_url_is_accepted(place: Place) -> None:
    files, body = place.db.files, b"0123456789" * 1_000_000  # more than one part
    bound: dict[str, Any] = {"size": len(body), "md5": md5_of(body), "content_type": "image/png"}
    signed = files.upload_url("a/ü", **bound, metadata={"colour": "red"}, disposition="attachment")
    assert signed.url.startswith("/attachments/disk/")
    for wrong in (body[:-1], body + b"x", b"x" + body[1:]):
        assert put(place, signed.url, wrong, **signed.headers).status_code == 422
    assert put(place, signed.url, body, Content_Type="text/html").status_code == 422
    assert put(place, signed.url, body).status_code == 422
    assert not files.exists("a/ü")
    done = put(place, signed.url, body, **signed.headers)
    assert (done.status_code, done.content, done.headers["cache-control"]) == (204, b"", "no-store")
    info = files.head("a/ü")
    assert (info.size, info.md5, info.headers.content_type) == (len(body), md5_of(body), "image/png")
    assert (dict(info.headers.metadata), info.headers.disposition) == ({"colour": "red"}, "attachment")
    assert place.get(files.url("a/ü"), Range="bytes=9999995-").content == b"56789"


def test_an_invalid_token_is_a_404_and_an_invalid_key_a_422(place: Place) -> None:
    assert place.get("/attachments/disk/nonsense").status_code == 404
    assert put(place, "/attachments/disk/nonsense", b"").status_code == 404
    assert put(place, place.db.files.url("a"), b"").status_code == 404
    for key in ("../../etc/passwd", "a/../b", "", "a\x00b"):
        token = sign([SECRET], PUT, {"key": key, "service_name": place.db.files.service, "content_length": 5})
        assert put(place, f"/attachments/disk/{token}", b"words").status_code == 422
    assert {each.name for each in place.files.parent.iterdir()} <= {"files"}  # the first upload creates it


def test_a_file_is_revalidated_and_sent_again_once_replaced(place: Place) -> None:
    files = place.db.files
    files.put("it", b"first")
    url = files.url("it", content_type="text/plain")
    first = place.get(url)
    assert (first.content, first.headers["cache-control"]) == (b"first", "private, no-cache")
    assert first.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in first.headers["content-security-policy"]
    tag = {"If-None-Match": first.headers["etag"]}
    assert place.get(url, **tag).status_code == 304
    files.put("it", b"second")
    assert place.get(url, **tag).content == b"second"


@pytest.mark.parametrize("how", ["gone", "stuck"])
def test_an_upload_that_breaks_off_stores_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The client sends part of the announced bytes, then disconnects or stops sending."""
    monkeypatch.setattr("holdall.web.serving.body.IDLE", 60 if how == "gone" else 0.01)
    with open_place(tmp_path) as place:
        token = place.db.files.upload_url("it", size=20_000_000).url
        messages = [
            {"type": "http.request", "body": b"x" * 9_000_000, "more_body": True},
            {"type": "http.disconnect"},
        ]
        scope = {
            "type": "http",
            "method": "PUT",
            "path": token,
            "headers": [],
            "query_string": b"",
            "root_path": "",
        }
        sent: list[Any] = []

        async def receive() -> Any:
            if len(messages) == 1 and how == "stuck":
                await asyncio.Event().wait()
            return messages.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(place.app(scope, receive, send))
        assert sent[0]["status"] == (400 if how == "gone" else 408)
        assert list(place.db.files.list()) == []
        assert [
            each for each in place.files.rglob("*") if each.is_file() and each.stat().st_size > 1000
        ] == []


def test_pages_of_other_origins_can_upload_to_a_signed_url(place: Place) -> None:
    """A signed URL alone grants access, as S3's do, so an application under another host name can use it."""
    signed = place.db.files.upload_url("from afar", size=5)
    sent = put(place, signed.url, b"words", Origin="https://elsewhere.example", Sec_Fetch_Site="cross-site")
    assert sent.status_code == 204


def test_a_service_in_memory_is_served_over_http() -> None:
    with (
        Database("memory:", secret=SECRET) as db,
        serve_asgi(create_app(db)) as url,
        closing(Client(base_url=url, trust_env=False)) as client,
    ):
        db.files.put("it", b"0123456789" * 100_000, content_type="text/plain")
        reply = client.get(db.files.url("it"))
        assert (len(reply.content), reply.headers["content-type"]) == (1_000_000, "text/plain")


def test_clients_use_the_urls_of_a_bucket_or_the_application_as_a_proxy() -> None:
    """Redirected clients talk to S3 directly; a proxied blob's bytes come in pieces, several at a time."""
    body = b"0123456789" * 300_000
    with Database("memory:", files=bucket_service(f"web/{uuid4().hex}"), secret=SECRET) as db:
        place = Place(db, Path("nowhere"), create_app(db))
        stated = {
            "filename": "a.bin",
            "byte_size": len(body),
            "checksum": md5_of(body),
            "content_type": "image/png",
        }
        direct = ask_app(place.app, "POST", "/attachments/direct_uploads", json={"blob": stated}).json()
        upload = direct["direct_upload"]
        assert {name.lower() for name in upload["headers"]} == {"content-type", "content-md5"}
        with Client(trust_env=False) as client:
            assert client.put(upload["url"], content=body, headers=upload["headers"]).status_code == 200
            blob = db.blobs.find(direct["id"])
            moved = place.get(place.url(blob))
            assert moved.status_code == 302
            found = client.get(moved.headers["location"])
            assert (found.content, found.headers["content-type"]) == (body, "image/png")
        assert place.get(place.proxy_url(blob)).content == body
        part = place.get(place.proxy_url(blob), Range="bytes=1000000-2500000")
        assert (part.status_code, part.content) == (206, body[1_000_000:2_500_001])
        empty = place.store(b"", "empty.txt")
        assert place.get(place.proxy_url(empty)).content == b""
        db.files.delete(blob.key)
        assert place.get(place.proxy_url(blob)).status_code == 404
