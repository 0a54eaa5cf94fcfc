"""Signed URLs of services that the web application serves: what they permit, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from rig.clock import Clock

from holdall.backends.disk import DirectUpload, DiskService, Download
from holdall.backends.memory import MemoryService
from holdall.core.objects import ObjectHeaders, SignUrl
from holdall.errors import ConfigurationError, InvalidTokenError

SECRET = "a secret of some length"
OTHER = "another secret of some length"
BASE = "https://example.com/files"
HEADERS = ObjectHeaders("image/png", 'inline; filename="ada.png"', "private", {"colour": "red ü"})

Made: TypeAlias = DiskService | MemoryService


@pytest.fixture(params=["disk", "memory"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Made]:
    def make_service(
        *secrets: str,
        base_url: str | None = BASE,
        clock: Callable[[], float] = Clock(),  # noqa: B008
    ) -> Made:
        if request.param == "memory":
            return MemoryService(secret=secrets, base_url=base_url, clock=clock)
        return DiskService(tmp_path / "files", secret=secrets, base_url=base_url, clock=clock)

    return make_service


def token_of(service: Made, request: SignUrl) -> str:
    url = service.send_blocking(request).url
    assert url.startswith(BASE + "/")
    return url.removeprefix(BASE + "/")


def test_a_url_for_get_names_the_object_and_its_headers(make: Callable[..., Made]) -> None:
    service = make(SECRET)
    token = token_of(service, SignUrl("photos", "a b/ü", "GET", 300, HEADERS))
    assert service.verified_download(token) == Download("photos", "a b/ü", HEADERS)
    plain = token_of(service, SignUrl("photos", "key", "GET", 300))
    assert service.verified_download(plain) == Download("photos", "key", ObjectHeaders())
    assert service.send_blocking(SignUrl("photos", "key", "GET", 300)).headers == {}


def test_a_url_for_put_names_the_object_its_bytes_and_the_headers_to_send(
    make: Callable[..., Made],
) -> None:
    service = make(SECRET)
    request = SignUrl("photos", "key", "PUT", 300, HEADERS, 5, "XrY7u+Ae7tCTyyK7j1rNww==")
    signed = service.send_blocking(request)
    assert signed.headers == {"Content-Type": "image/png", "Content-MD5": "XrY7u+Ae7tCTyyK7j1rNww=="}
    permitted = service.verified_upload(token_of(service, request))
    assert permitted == DirectUpload("photos", "key", HEADERS, 5, "XrY7u+Ae7tCTyyK7j1rNww==")
    anything = SignUrl("photos", "key", "PUT", 300)
    assert service.verified_upload(token_of(service, anything)) == DirectUpload(
        "photos", "key", ObjectHeaders(), None, None
    )
    assert service.send_blocking(anything).headers == {}


def test_a_url_is_valid_until_it_expires(make: Callable[..., Made]) -> None:
    clock = Clock()
    service = make(SECRET, clock=clock)
    get = token_of(service, SignUrl("photos", "key", "GET", 300))
    put = token_of(service, SignUrl("photos", "key", "PUT", 300))
    clock.forward(299)
    service.verified_download(get)
    service.verified_upload(put)
    clock.forward(1)
    with pytest.raises(InvalidTokenError, match="has expired"):
        service.verified_download(get)
    with pytest.raises(InvalidTokenError, match="has expired"):
        service.verified_upload(put)


def test_a_url_is_valid_for_one_method(make: Callable[..., Made]) -> None:
    service = make(SECRET)
    with pytest.raises(InvalidTokenError):
        service.verified_upload(token_of(service, SignUrl("photos", "key", "GET", 300)))
    with pytest.raises(InvalidTokenError):
        service.verified_download(token_of(service, SignUrl("photos", "key", "PUT", 300)))


def test_a_changed_token_or_one_with_another_secret_is_refused(make: Callable[..., Made]) -> None:
    token = token_of(make(SECRET), SignUrl("photos", "key", "GET", 300))
    for forged in ("", ".", "x", token[:-1], token + "A", token.swapcase(), token.replace(".", "A.")):
        with pytest.raises(InvalidTokenError):
            make(SECRET).verified_download(forged)
    with pytest.raises(InvalidTokenError):
        make(OTHER).verified_download(token)


def test_urls_of_a_replaced_secret_stay_valid(make: Callable[..., Made]) -> None:
    token = token_of(make(SECRET), SignUrl("photos", "key", "GET", 300))
    assert make(OTHER, SECRET).verified_download(token).key == "key"


def test_urls_need_a_base_url_and_a_secret(make: Callable[..., Made]) -> None:
    request = SignUrl("photos", "key", "GET", 300)
    with pytest.raises(ConfigurationError, match="base_url"):
        make(SECRET, base_url=None).send_blocking(request)
    with pytest.raises(ConfigurationError, match="secret"):
        make().send_blocking(request)


def test_a_base_url_may_end_with_a_slash(make: Callable[..., Made]) -> None:
    service = make(SECRET, base_url=BASE + "/")
    assert service.verified_download(token_of(service, SignUrl("photos", "key", "GET", 300))).key == "key"
