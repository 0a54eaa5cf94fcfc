"""URLs that need no credentials: to get an object with given headers, and to put exactly the given bytes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.error import HTTPError
from urllib.parse import unquote
from urllib.request import Request, urlopen

import pytest
from rig.files import Rig, Way, everywhere, in_memory, open_rig

from holdall import Database
from holdall.attachments import AttachmentSettings
from holdall.errors import ConfigurationError, InvalidOptionsError, InvalidRequestError, InvalidTokenError


def fetch(url: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes, Any]:
    """Send a request as a browser would, and return the status, the body and the headers."""
    request = Request(url, body, headers, method="GET" if body is None else "PUT")
    try:
        with urlopen(request) as reply:
            return reply.status, reply.read(), reply.headers
    except HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read(), refusal.headers


@in_memory
async def test_a_url_names_the_object_and_how_to_serve_it(files: Rig) -> None:
    await files.files.put("docs/a b.txt", b"bytes")
    url = await files.files.url(
        "docs/a b.txt", expires=timedelta(minutes=1), disposition="attachment", filename="Größe €.txt"
    )
    base, _, token = url.rpartition("/")
    assert base == "https://app.example/files"
    served = files.service.inner.verified_download(token)  # type: ignore[attr-defined]
    assert (served.service, served.key) == ("main", "docs/a b.txt")
    assert served.headers.disposition == (
        "attachment; filename=\"Groe .txt\"; filename*=UTF-8''Gr%C3%B6%C3%9Fe%20%E2%82%AC.txt"
    )


@in_memory
async def test_an_upload_url_is_bound_to_its_bytes(files: Rig) -> None:
    signed = await files.files.upload_url(
        "it", size=5, md5="XUFAKrxLKna5cZ2REBfFkg==", content_type="text/plain", metadata={"colour": "red"}
    )
    permitted = files.service.inner.verified_upload(signed.url.rpartition("/")[2])  # type: ignore[attr-defined]
    assert (permitted.key, permitted.size, permitted.md5) == ("it", 5, "XUFAKrxLKna5cZ2REBfFkg==")
    assert permitted.headers.content_type == "text/plain"
    assert dict(permitted.headers.metadata) == {"colour": "red"}
    assert signed.headers["Content-Type"] == "text/plain"
    assert signed.headers["Content-MD5"] == "XUFAKrxLKna5cZ2REBfFkg=="


def test_a_client_without_credentials_can_get_from_a_bucket_by_url() -> None:
    with open_rig(Way("S3", "blocking")) as files:
        files.db.files.put("a b/ü.txt", b"bytes", content_type="text/plain")
        status, body, headers = fetch(files.db.files.url("a b/ü.txt"))
        assert (status, body, headers["content-type"]) == (200, b"bytes", "text/plain")
        url = files.db.files.url(
            "a b/ü.txt", disposition="attachment", filename="ü.txt", content_type="text/csv"
        )
        status, body, headers = fetch(url)
        assert (status, body, headers["content-type"]) == (200, b"bytes", "text/csv")
        assert unquote(headers["content-disposition"].partition("filename*=UTF-8''")[2]) == "ü.txt"


def test_a_client_without_credentials_can_put_into_a_bucket_by_url() -> None:
    with open_rig(Way("S3", "blocking")) as files:
        signed = files.db.files.upload_url(
            "it", size=5, content_type="text/plain", metadata={"colour": "red"}
        )
        headers = {name: value for name, value in signed.headers.items() if name.lower() != "content-length"}
        assert fetch(signed.url, b"bytes", **headers)[0] == 200
        info = files.db.files.head("it")
        assert (info.size, info.headers.content_type) == (5, "text/plain")
        assert dict(info.headers.metadata) == {"colour": "red"}


@everywhere
async def test_invalid_options_of_urls_are_refused(files: Rig) -> None:
    await files.files.put("it", b"bytes")
    nonsense: list[Any] = [0, 0.5, -1, True, "300", float("nan"), float("inf"), None, timedelta(0)]
    for expires in nonsense:
        with pytest.raises(InvalidOptionsError, match="expires must be"):
            await files.files.url("it", expires=expires)
    with pytest.raises(InvalidRequestError, match="a week"):
        await files.files.url("it", expires=timedelta(days=8))
    with pytest.raises(InvalidOptionsError, match="inline or attachment"):
        await files.files.url("it", disposition="floating", filename="a.txt")
    with pytest.raises(InvalidRequestError, match="5 GiB"):
        await files.files.upload_url("it", size=5 * 1024**3 + 1)


def test_a_service_without_a_base_url_has_urls_of_the_web_application() -> None:
    with Database("memory:", secret="a secret of some length") as db:
        token = db.files.url("it").removeprefix("/attachments/disk/")
        assert db.files.verify_download(token).key == "it"
    elsewhere = AttachmentSettings(path="/media")
    with Database("memory:", secret="a secret of some length", attachments=elsewhere) as db:
        signed = db.files.upload_url("it", size=5)
        assert db.files.verify_upload(signed.url.removeprefix("/media/disk/")).size == 5
        with pytest.raises(InvalidTokenError):
            db.files.verify_download(signed.url.removeprefix("/media/disk/"))


def test_without_a_secret_there_are_no_urls() -> None:
    with Database("memory:") as db, pytest.raises(ConfigurationError, match="secret"):
        db.files.url("it")


def test_the_urls_of_a_mirrored_service_are_those_of_its_primary() -> None:
    with open_rig(Way("mirror", "blocking")) as files:
        token = files.db.files.url("it").rpartition("/")[2]
        assert files.service.inner.verified_download(token).service == "main"  # type: ignore[attr-defined]
