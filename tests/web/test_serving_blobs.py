"""Blobs over HTTP: redirects, and bytes sent by the application, with ranges, conditions and caching headers."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from PIL import Image
from serving_rig import SECRET, Place, open_place
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.routing import Mount

from holdall import AsyncDatabase, Database, Key, Model, has_one_attached
from holdall.attachments import AttachmentSettings, Blob, Representation, Variant
from holdall.attachments.blob.signed_id import sign_id
from holdall.web import create_app
from holdall.web.serving.range import LIMIT, parse_range

WORDS = b"0123456789" * 60_000  # more than one piece


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with open_place(tmp_path_factory.mktemp("serving")) as found:
        yield found


class Reader(Model):
    """A person with a picture."""

    name: Key[str]
    avatar = has_one_attached()


# --- redirected and proxied -------------------------------------------------------------------------------


def test_a_blob_is_redirected_to_a_fresh_url_of_its_service(place: Place) -> None:
    blob = place.store(WORDS, "ä b.png", content_type="image/png", identify=False)
    reply = place.get(place.url(blob))
    assert (reply.status_code, reply.headers["cache-control"]) == (302, "private, max-age=300")
    again = place.get(reply.headers["location"])
    assert (again.status_code, again.content) == (200, WORDS)
    assert again.headers["content-type"] == "image/png"
    assert again.headers["content-disposition"].startswith("inline; filename=")
    assert again.headers["content-disposition"].endswith("filename*=UTF-8''%C3%A4%20b.png")


def test_a_proxied_blob_is_sent_with_caching_and_security_headers(place: Place) -> None:
    blob = place.store(WORDS, "a.png", content_type="image/png", identify=False)
    reply = place.get(place.proxy_url(blob))
    assert (reply.status_code, reply.content) == (200, WORDS)
    headers = reply.headers
    assert headers["cache-control"] == "public, max-age=3153600000, immutable"
    assert headers["content-length"] == str(len(WORDS))
    assert headers["accept-ranges"] == "bytes"
    assert blob.created_at is not None
    modified = datetime.strptime(headers["last-modified"], "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)
    assert modified == blob.created_at.replace(microsecond=0)
    assert headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in headers["content-security-policy"]
    assert "default-src 'none'" in headers["content-security-policy"]
    head = place.get(place.proxy_url(blob), "HEAD")
    assert (head.status_code, head.content) == (200, b"")
    assert dict(head.headers) == dict(headers)


def test_no_cache_keeps_a_file_longer_than_its_url_is_valid(place: Place) -> None:
    blob = place.store()
    expires = datetime.now(UTC) + timedelta(seconds=100)
    for url, others in ((place.proxy_url(blob, expires=expires), 3), (place.url(blob, expires=expires), 2)):
        parts = place.get(url).headers["cache-control"].split(", ")
        assert len(parts) == others
        assert 0 < int(parts[1].removeprefix("max-age=")) <= 100
    with Database(
        "memory:", secret=SECRET, attachments=AttachmentSettings(signed_ids="rails"), files="memory:"
    ) as db:
        rails = Place(db, place.files, create_app(db))
        parts = (
            rails.get(rails.proxy_url(rails.store(), expires=expires)).headers["cache-control"].split(", ")
        )
        assert 0 < int(parts[1].removeprefix("max-age=")) <= 100


def test_an_empty_blob_is_served(place: Place) -> None:
    blob = place.store(b"", "empty.txt")
    reply = place.get(place.proxy_url(blob))
    assert (reply.status_code, reply.content, reply.headers["content-length"]) == (200, b"", "0")
    assert place.get(place.proxy_url(blob), Range="bytes=0-").status_code == 416


def test_the_application_can_be_mounted_at_its_path_or_at_the_root(tmp_path: Path) -> None:
    settings = AttachmentSettings(path="/media/files")
    with Database("memory:", files=f"file:{tmp_path}", secret=SECRET, attachments=settings) as db:
        with db.transaction() as tx:
            tx.create(Reader, name="Ada").avatar.attach(b"picture", filename="ada.gif")
        reader = db.get_one(Reader, "Ada", include=["avatar"])
        fastapi, alone = FastAPI(), create_app(db.aio)
        fastapi.mount("/media/files", create_app(db))
        inner = Starlette(routes=[Mount("/files", create_app(db))])
        for app in (
            fastapi,
            alone,
            Starlette(routes=[Mount("/media", inner)]),
            Starlette(routes=[Mount("/", alone)]),
        ):
            where = Place(db, tmp_path, app)
            for proxied in (False, True):
                url = reader.avatar.url(proxied=proxied)
                assert url is not None
                reply = where.get(url)
                if not proxied:
                    assert reply.headers["location"].startswith("/media/files/disk/")
                    reply = where.get(reply.headers["location"])
                assert (reply.status_code, reply.content) == (200, b"picture"), (app, proxied)


def test_urls_of_a_rails_application_lead_to_the_same_files(tmp_path: Path) -> None:
    own = AttachmentSettings(signed_ids="rails", variation_digest="rails", path="/rails/active_storage")
    with Database("memory:", files=f"file:{tmp_path}", secret="a" * 64, attachments=own) as db:
        place = Place(db, tmp_path, create_app(db))
        blob = place.store(make_picture(), "red.png")
        signed_id = sign_id(["a" * 64], blob.id, purpose="blob", form="rails")
        variation = sign_id(["a" * 64], {"resize_to_limit": [8, 8]}, purpose="variation", form="rails")
        for kind, rest in (("blobs", signed_id), ("representations", f"{signed_id}/{variation}")):
            moved, proxied = (
                place.get(f"/rails/active_storage/{kind}/{mode}/{rest}/red.png")
                for mode in ("redirect", "proxy")
            )
            assert (moved.status_code, proxied.status_code) == (302, 200)
            assert place.get(moved.headers["location"]).content == proxied.content
            assert (proxied.content == make_picture()) is (kind == "blobs")


# --- invalid requests and failures ------------------------------------------------------------------------


def list_invalid_urls(place: Place) -> dict[str, str]:
    """URLs that do not lead to a file, by the reason."""
    blob = place.store()
    url, viewing = place.proxy_url(blob), place.db.blobs.signed_id(blob)
    attaching = place.db.blobs.signed_id(blob, purpose="attach")
    gone = place.store(b"gone")
    place.db.blobs.delete(gone)
    late = place.proxy_url(blob, expires=datetime.now(UTC) - timedelta(seconds=1))
    return {
        "changed": url.replace(viewing, viewing[:-2] + ("AA" if viewing[-2:] != "AA" else "BB")),
        "for attaching": url.replace(viewing, attaching),
        "of another secret": url.replace(viewing, "eyJfIjoxfQ.AAAA"),
        "expired": late,
        "of a deleted blob": place.proxy_url(gone),
        "without a name": url.rpartition("/")[0],
        "with more parts": f"{url}/more",
        "an unsigned variation": f"/attachments/representations/{viewing}/{viewing}/a.png",
        "nonsense": "/attachments/blobs/%00/..%2f..%2fetc/passwd",
    }


def test_an_invalid_or_expired_url_is_a_404_and_not_cached(place: Place) -> None:
    for why, url in list_invalid_urls(place).items():
        reply = place.get(url)
        assert (reply.status_code, reply.headers["cache-control"]) == (404, "no-store"), why


def test_a_missing_file_is_a_404_a_damaged_one_a_500_and_neither_is_cached(place: Place) -> None:
    blob, damaged = place.store(b"soon gone"), place.store(b"to be damaged")
    place.path_of(blob).unlink()
    place.path_of(damaged).write_bytes(b"other")
    for method in ("GET", "HEAD"):
        for url, status in ((place.proxy_url(blob), 404), (place.proxy_url(damaged), 500)):
            reply = place.get(url, method)
            assert (reply.status_code, reply.headers["cache-control"]) == (status, "no-store")
            assert b"damaged" not in reply.content


def test_an_unsupported_method_is_a_405(place: Place) -> None:
    assert place.get(place.proxy_url(place.store()), "POST").status_code == 405


# --- ranges and conditions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "bytes_"),
    [
        ("bytes=0-0", range(0, 1)),
        ("bytes=2-4", range(2, 5)),
        ("bytes=9-", range(9, 10)),
        ("bytes=8-100", range(8, 10)),
        ("bytes=-3", range(7, 10)),
        ("bytes=-30", range(0, 10)),
        ("bytes= 1-2 ", range(1, 3)),
    ],
)
def test_a_single_range_is_parsed(header: str, bytes_: range) -> None:
    assert parse_range(header, 10) == bytes_


UNSUPPORTED_RANGES = [
    "bytes=10-",
    "bytes=5-4",
    "bytes=-0",
    "bytes=-",
    "bytes=",
    "bytes",
    "",
    "bytes=a-b",
    "bytes=1-2,4-5",
]
UNSUPPORTED_RANGES += [
    "items=0-1",
    "bytes=0-0,",
    "bytes=--1",
    "bytes=0-9" + "9" * 30,
    "bytes=²-3",
    "bytes=0-0," * 1000,
]


@pytest.mark.parametrize("header", UNSUPPORTED_RANGES)
def test_malformed_and_multiple_ranges_are_rejected(header: str) -> None:
    assert parse_range(header, 10) is None


def test_a_range_of_100_mebibytes_is_rejected_unless_it_is_open_ended() -> None:
    assert LIMIT == 100 * 1024**2
    huge = 10 * LIMIT
    assert parse_range(f"bytes=0-{LIMIT - 1}", huge) is None
    assert parse_range(f"bytes=-{LIMIT}", huge) is None
    assert parse_range(f"bytes=1-{LIMIT - 1}", huge) == range(1, LIMIT)
    assert parse_range("bytes=7-", huge) == range(7, huge)


def test_a_range_is_sent_and_an_invalid_one_is_rejected_with_the_size(place: Place) -> None:
    url = place.proxy_url(place.store(WORDS))
    for first, last in ((0, 0), (3, 299_999), (255 * 1024, len(WORDS) - 1)):
        reply = place.get(url, Range=f"bytes={first}-{last}")
        assert (reply.status_code, reply.content) == (206, WORDS[first : last + 1])
        assert reply.headers["content-range"] == f"bytes {first}-{last}/{len(WORDS)}"
        assert reply.headers["content-length"] == str(last + 1 - first)
    for header in ("bytes=0-1,3-4", "bytes=" + "0-0," * 5000 + "1-1", f"bytes={len(WORDS)}-", "lines=1"):
        reply = place.get(url, Range=header)
        assert (reply.status_code, reply.headers["content-range"]) == (416, f"bytes */{len(WORDS)}")
        assert reply.headers["cache-control"] == "no-store"


def test_conditional_requests_are_answered_as_http_defines(place: Place) -> None:
    blob = place.store()
    url = place.proxy_url(blob)
    headers = place.get(url).headers
    etag, modified = headers["etag"], headers["last-modified"]
    later = "Fri, 01 Jan 2100 00:00:00 GMT"
    earlier = "Sat, 01 Jan 2000 00:00:00 GMT"
    conditions: list[tuple[dict[str, str], int]] = [
        ({"If-None-Match": etag}, 304),
        ({"If-None-Match": f'"other", W/{etag}'}, 304),
        ({"If-None-Match": "*"}, 304),
        ({"If-None-Match": '"other"'}, 200),
        ({"If-None-Match": '"other"', "If-Modified-Since": later}, 200),
        ({"If-Modified-Since": modified}, 304),
        ({"If-Modified-Since": later}, 304),
        ({"If-Modified-Since": earlier}, 200),
        ({"If-Modified-Since": "yesterday"}, 200),
        ({"Range": "bytes=0-1", "If-Range": etag}, 206),
        ({"Range": "bytes=0-1", "If-Range": modified}, 206),
        ({"Range": "bytes=0-1", "If-Range": f"W/{etag}"}, 200),
        ({"Range": "bytes=0-1", "If-Range": later}, 200),
        ({"Range": "bytes=0-1", "If-Range": '"other"'}, 200),
    ]
    for given, status in conditions:
        reply = place.get(url, **given)
        assert reply.status_code == status, given
        assert reply.headers["etag"] == etag
        assert reply.headers["cache-control"].startswith("public")
        if status == 304:
            assert reply.content == b""


# --- content types and dispositions -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "query", "served", "how"),
    [
        ("image/png", "", "image/png", "inline"),
        ("image/png", "?disposition=attachment", "image/png", "attachment"),
        ("image/png", "?disposition=floating", "image/png", "inline"),
        ("application/pdf", "", "application/pdf", "inline"),
        ("text/plain", "?disposition=inline", "text/plain", "attachment"),
        ("video/mp4", "?disposition=inline", "video/mp4", "attachment"),
        ("text/html", "?disposition=inline", "application/octet-stream", "attachment"),
        (
            "image/svg+xml",
            "?disposition=inline&content_type=image/svg%2Bxml",
            "application/octet-stream",
            "attachment",
        ),
    ],
)
def test_a_query_of_the_client_never_makes_a_file_less_safe(
    place: Place, kind: str, query: str, served: str, how: str
) -> None:
    blob = place.store(b"<script>alert(1)</script>", "a.html", content_type=kind, identify=False)
    for url in (place.proxy_url(blob) + query, place.get(place.url(blob) + query).headers["location"]):
        for changed in (url, f"{url}{'&' if '?' in url else '?'}response-content-type=text/html"):
            headers = place.get(changed).headers
            assert headers["content-type"] == served
            assert headers["content-disposition"].partition(";")[0] == how
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["content-security-policy"].startswith("default-src 'none'")


# --- hooks and sessions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_the_application_decides_who_can_see_a_blob(place: Place, colour: str) -> None:
    seen: list[Any] = []

    def decide(request: Any, asked: Any) -> bool:
        seen.append((asked.action, asked.blob, asked.representation))
        return bool(request.headers.get("x-user") == "ada")

    async def decide_async(request: Any, asked: Any) -> bool:
        return decide(request, asked)

    blob = place.store()
    app = create_app(place.db, authorize=decide if colour == "sync" else decide_async)
    for url in (place.url(blob), place.proxy_url(blob)):
        assert place.get(url, app=app).status_code == 403
    reply = place.get(place.proxy_url(blob), app=app, x_user="ada")
    assert (reply.status_code, reply.headers["cache-control"].split(",")[0]) == (200, "private")
    assert seen == [("view", blob, None)] * 3


def test_a_reply_to_which_a_session_adds_a_cookie_is_private(place: Place) -> None:
    """Starlette sets the cookie on the first reply after the session changed."""

    class Visit:
        def __init__(self, app: Any) -> None:
            self.app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            scope["session"]["visits"] = 1
            await self.app(scope, receive, send)

    session = Middleware(SessionMiddleware, secret_key="x")
    url = place.proxy_url(place.store())
    routes = [Mount("/", place.app)]
    quiet = place.get(url, app=Starlette(routes=routes, middleware=[session]))
    assert "set-cookie" not in quiet.headers
    assert quiet.headers["cache-control"].startswith("public")
    loud = place.get(url, app=Starlette(routes=routes, middleware=[session, Middleware(Visit)]))
    assert "set-cookie" in loud.headers
    assert loud.headers["cache-control"].startswith("private")


def test_an_async_database_can_be_served(tmp_path: Path) -> None:
    db = AsyncDatabase("memory:", files=f"file:{tmp_path}", secret=SECRET)
    with db.sync as twin:
        place = Place(twin, tmp_path, create_app(db))
        assert place.get(place.proxy_url(place.store())).content == b"words"


def make_picture(size: tuple[int, int] = (64, 48)) -> bytes:
    """A PNG."""
    drawn = io.BytesIO()
    Image.new("RGB", size, (200, 30, 30)).save(drawn, "PNG")
    return drawn.getvalue()


def variant_of(place: Place, blob: Blob, variant: Variant, **options: Any) -> str:
    """The URL of a variant."""
    return Representation(place.db._context.settings, blob, variant).url(**options)


def test_a_variant_is_made_on_request_and_served_like_a_blob(place: Place) -> None:
    blob = place.store(make_picture(), "red.png")
    small = Variant(resize_to_limit=(16, 16), format="webp")
    reply = place.get(variant_of(place, blob, small, proxied=True))
    assert (reply.status_code, reply.headers["content-type"]) == (200, "image/webp")
    assert Image.open(io.BytesIO(reply.content)).size == (16, 12)
    assert reply.headers["cache-control"].startswith("public")
    moved = place.get(variant_of(place, blob, small))
    assert moved.status_code == 302
    assert place.get(moved.headers["location"]).content == reply.content


def test_a_variant_of_a_file_that_is_not_a_picture_is_a_422(place: Place) -> None:
    small = Variant(resize_to_limit=(16, 16))
    text, broken = place.store(b"text"), place.store(make_picture()[:60], "broken.png")
    for blob in (text, broken):
        reply = place.get(variant_of(place, blob, small, proxied=True))
        assert (reply.status_code, reply.headers["cache-control"]) == (422, "no-store")


def test_a_variant_with_a_forged_signature_is_not_made(place: Place) -> None:
    blob = place.store(b"x", "a.png", content_type="image/png", identify=False)
    start, variation, name = variant_of(place, blob, Variant(resize_to_limit=(10, 10))).rsplit("/", 2)
    other = variant_of(place, blob, Variant(resize_to_limit=(9999, 9999))).rsplit("/", 2)[1]
    forged = f"{other.partition('.')[0]}.{variation.partition('.')[2]}"
    assert place.get(f"{start}/{forged}/{name}").status_code == 404
