"""Direct uploads: the requests and replies of Rails, rejected uploads, and Rails' own client in a browser."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest
from httpx import Response
from playwright.sync_api import FilePayload
from rig.browser import browser_package, open_browser
from serving_rig import Place, open_place
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse
from starlette.routing import Mount, Route
from web_rig import ask_app, serve_asgi

from holdall import Key, Model, has_many_attached, has_one_attached
from holdall.attachments import Accept
from holdall.errors import InvalidOptionsError, InvalidTokenError
from holdall.web import create_app

UPLOADS = "/attachments/direct_uploads"
BODY = b"\x89PNG\r\n\x1a\nnot much of a picture"


class Album(Model):
    """A model with attachments."""

    name: Key[str]
    cover = has_one_attached()
    pages = has_many_attached()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    limits = Accept(types=["image/*", "text/plain"], max_bytes=1_000_000)
    with open_place(tmp_path_factory.mktemp("serving"), accept=limits) as found:
        with found.db.transaction() as tx:
            tx.create(Album, name="a")
        yield found


def describe_file(**changes: Any) -> dict[str, Any]:
    """What a client states about a file."""
    checksum = b64encode(md5(BODY).digest()).decode()
    return {
        "filename": "ä.png",
        "content_type": "image/png",
        "byte_size": len(BODY),
        "checksum": checksum,
    } | changes


def post(place: Place, blob: Any, app: Any = None, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ask_app(app or place.app, "POST", UPLOADS, json={"blob": blob}, headers=named)


def test_the_reply_says_where_to_put_the_bytes_and_its_signed_id_attaches_the_blob(place: Place) -> None:
    reply = post(place, describe_file(metadata={"custom": {"mood": "good"}}))
    answer = reply.json()
    assert (reply.status_code, reply.headers["cache-control"]) == (200, "no-store")
    names = "id key filename content_type metadata service_name byte_size checksum created_at signed_id direct_upload"
    assert list(answer) == names.split()
    assert {name: answer[name] for name in describe_file()} == describe_file()
    assert answer["metadata"] == {"custom": {"mood": "good"}}
    assert answer["created_at"].endswith("Z")
    assert place.db.blobs.find(answer["id"]).key == answer["key"]
    direct = answer["direct_upload"]
    sent = ask_app(place.app, "PUT", direct["url"], content=BODY, headers=direct["headers"])
    assert sent.status_code == 204
    with place.db.transaction() as tx:
        tx.get_one(Album, "a").cover = answer["signed_id"]
    album = place.db.get_one(Album, "a", include=["cover"])
    assert album.cover.blob is not None
    assert (album.cover.blob.id, album.cover.blob.content_type) == (answer["id"], "image/png")
    url = album.cover.url(proxied=True)
    assert url is not None
    assert place.get(url).content == BODY


def test_metadata_and_attributes_reserved_for_the_server_are_dropped(place: Place) -> None:
    claims = {"analyzed": True, "identified": True, "composed": True, "custom": {"a": "b"}}
    answer = post(place, describe_file(metadata=claims)).json()
    assert answer["metadata"] == {"custom": {"a": "b"}}
    assert dict(place.db.blobs.find(answer["id"]).metadata) == {"custom": {"a": "b"}}
    smuggled = post(
        place, describe_file(key="../../x", service_name="other", id="mine", metadata={"identified": True})
    )
    found = smuggled.json()
    assert (len(found["key"]), found["service_name"], found["metadata"]) == (28, place.db.files.service, {})


@pytest.mark.parametrize(
    ("blob", "status"),
    [
        (describe_file(byte_size=1_000_001), 413),
        (describe_file(content_type="text/html"), 415),
        (describe_file(content_type=None), 415),
        (describe_file(byte_size=-1), 422),
        (describe_file(byte_size="7"), 422),
        (describe_file(byte_size=True), 422),
        (describe_file(checksum="nonsense"), 422),
        (describe_file(checksum=None), 422),
        (describe_file(filename=""), 422),
        (describe_file(filename=7), 422),
        (describe_file(metadata=[1]), 422),
        (describe_file(metadata={"custom": {"bad\nname": "x"}}), 422),
        (describe_file(metadata={"huge": "x" * 70_000}), 413),
        ([], 422),
        (None, 422),
    ],
)
def test_a_file_that_is_not_accepted_is_rejected(place: Place, blob: Any, status: int) -> None:
    assert post(place, blob).status_code == status


def test_an_id_for_viewing_cannot_be_attached(place: Place) -> None:
    blob = place.store(BODY, "a.png")
    with pytest.raises(InvalidTokenError), place.db.transaction() as tx:
        tx.get_one(Album, "a").cover = place.db.blobs.signed_id(blob)


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/latest", "file:///etc/passwd", "https://x.example/a.png"]
)
def test_a_url_is_never_fetched(place: Place, url: str) -> None:
    """A string is taken for a signed id, never for an address, so any other string is rejected as forged."""
    with pytest.raises(InvalidTokenError), place.db.transaction() as tx:
        tx.get_one(Album, "a").cover = url
    with pytest.raises(InvalidOptionsError):
        place.db.blobs.create_and_upload(url, filename="a.png")


# --- hooks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Sec_Fetch_Site": "same-origin", "Origin": "http://x"}, 200),
        ({"Sec_Fetch_Site": "none"}, 200),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Origin": "http://x"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_a_page_of_another_site_cannot_begin_an_upload(
    place: Place, headers: dict[str, str], status: int
) -> None:
    assert post(place, describe_file(), **headers).status_code == status


def test_an_application_can_replace_the_rule_against_forged_requests(place: Place) -> None:
    app = create_app(place.db, csrf=lambda request: request.headers.get("x-csrf-token") == "mine")
    assert post(place, describe_file(), app, Sec_Fetch_Site="same-origin").status_code == 403
    assert (
        post(place, describe_file(), app, Sec_Fetch_Site="cross-site", X_CSRF_Token="mine").status_code == 200
    )


def test_the_application_decides_which_uploads_it_allows(place: Place) -> None:
    seen: list[Any] = []

    def authorize(request: Any, asked: Any) -> bool:
        seen.append(asked)
        return bool(asked.byte_size < 10)

    app = create_app(place.db, authorize=authorize)
    assert post(place, describe_file(), app).status_code == 403
    assert post(place, describe_file(byte_size=9), app).status_code == 200
    assert [(each.action, each.filename, each.content_type) for each in seen] == [
        ("upload", "ä.png", "image/png")
    ] * 2


# --- Rails' client in a browser ---------------------------------------------------------------------------

PAGE = """
<script src="/activestorage.js"></script>
<form action="/albums" method="post" enctype="multipart/form-data">
  <input type="file" name="pages" multiple data-direct-upload-url="/attachments/direct_uploads">
  <input type="submit">
</form>
<script>
  ActiveStorage.start()
</script>
"""


def test_rails_own_client_uploads_from_a_page_and_its_form_attaches_the_files(tmp_path: Path) -> None:
    script = browser_package("@rails/activestorage") / "app/assets/javascripts/activestorage.js"
    with open_place(tmp_path, f"embedded:{tmp_path / 'app.db'}") as place:

        async def attach(request: Request) -> PlainTextResponse:
            form = await request.form()
            async with place.db.aio.transaction() as tx:
                album = tx.create(Album, name="from a form")
                album.pages.attach(*[str(each) for each in form.getlist("pages")])
            return PlainTextResponse("attached")

        app = Starlette(
            routes=[
                Route("/", lambda request: HTMLResponse(PAGE)),
                Route("/activestorage.js", lambda request: FileResponse(script)),
                Route("/albums", attach, methods=["POST"]),
                Mount("/attachments", place.app),
            ]
        )
        large = b"0123456789" * 100_000
        with serve_asgi(app) as url, open_browser() as browser:
            page = browser.new_page()
            page.goto(url)
            files: list[FilePayload] = [
                {"name": "ä b.png", "mimeType": "image/png", "buffer": BODY},
                {"name": "large.txt", "mimeType": "text/plain", "buffer": large},
            ]
            page.set_input_files("input[type=file]", files)
            page.click("input[type=submit]")
            page.wait_for_url(f"{url}/albums")
            assert page.inner_text("body") == "attached"
        album = place.db.get_one(Album, "from a form", include=["pages"])
        assert [str(each.blob.filename) for each in album.pages] == ["ä b.png", "large.txt"]
        assert [place.db.blobs.download(each.blob) for each in album.pages] == [BODY, large]
