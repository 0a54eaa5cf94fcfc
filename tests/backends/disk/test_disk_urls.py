"""Signed URLs of services that the web app serves: what they permit, to whom, and for how long."""

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


def test_a_url_for_getting_says_what_is_served_and_how(make: Callable[..., Made]) -> None:
    service = make(SECRET)
    token = token_of(service, SignUrl("photos", "a b/ü", "GET", 300, HEADERS))
    assert service.verified_download(token) == Download("photos", "a b/ü", HEADERS)
    plain = token_of(service, SignUrl("photos", "key", "GET", 300))
    assert service.verified_download(plain) == Download("photos", "key", ObjectHeaders())
    assert service.send_blocking(SignUrl("photos", "key", "GET", 300)).headers == {}


def test_a_url_for_putting_says_which_bytes_and_has_to_be_used_with_its_headers(
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


def test_a_url_is_good_until_it_expires(make: Callable[..., Made]) -> None:
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


def test_a_url_is_good_for_one_purpose(make: Callable[..., Made]) -> None:
    service = make(SECRET)
    with pytest.raises(InvalidTokenError):
        service.verified_upload(token_of(service, SignUrl("photos", "key", "GET", 300)))
    with pytest.raises(InvalidTokenError):
        service.verified_download(token_of(service, SignUrl("photos", "key", "PUT", 300)))


def test_a_token_that_was_changed_or_is_somebody_elses_is_refused(make: Callable[..., Made]) -> None:
    token = token_of(make(SECRET), SignUrl("photos", "key", "GET", 300))
    for forged in ("", ".", "x", token[:-1], token + "A", token.swapcase(), token.replace(".", "A.")):
        with pytest.raises(InvalidTokenError):
            make(SECRET).verified_download(forged)
    with pytest.raises(InvalidTokenError):
        make(OTHER).verified_download(token)


def test_a_secret_can_be_replaced_while_its_urls_are_out(make: Callable[..., Made]) -> None:
    token = token_of(make(SECRET), SignUrl("photos", "key", "GET", 300))
    assert make(OTHER, SECRET).verified_download(token).key == "key"


def test_without_an_address_or_a_secret_there_are_no_urls(make: Callable[..., Made]) -> None:
    request = SignUrl("photos", "key", "GET", 300)
    with pytest.raises(ConfigurationError, match="base_url"):
        make(SECRET, base_url=None).send_blocking(request)
    with pytest.raises(ConfigurationError, match="secret"):
        make().send_blocking(request)


def test_an_address_may_end_with_a_slash(make: Callable[..., Made]) -> None:
    service = make(SECRET, base_url=BASE + "/")
    assert service.verified_download(token_of(service, SignUrl("photos", "key", "GET", 300))).key == "key"
