"""Signed URLs: their form, how long they are valid, and what they permit."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from holdall.core.objects import ObjectHeaders, SignedUrl, SignUrl
from holdall.errors import InvalidObjectKeyError, InvalidRequestError
from holdall.testing.file_contract.check import NAME, Service, check, md5_of, refused

WEEK = 7 * 24 * 3600
NAMES = ("a", "a b+c", "ü/😀", "100%", "a?b=c&d#e", "/a//b")


async def _sign(
    service: Service, method: Literal["GET", "PUT"], name: str = "a", **options: Any
) -> SignedUrl:
    expires = options.pop("expires", 300)
    return await service.send(SignUrl(NAME, service.key(name), method, expires, **options))


async def _fetch(
    service: Service,
    method: str,
    url: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, Mapping[str, str], bytes]:
    """What any HTTP client gets: the status, the headers by lower-case name, and the bytes."""

    def fetch() -> tuple[int, Mapping[str, str], bytes]:
        place = urlsplit(url)
        secure = place.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(place.netloc, timeout=30)
        try:
            connection.request(
                method, url.removeprefix(f"{place.scheme}://{place.netloc}"), body, dict(headers or {})
            )
            reply = connection.getresponse()
            return reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read()
        finally:
            connection.close()

    return await service.wait_for(fetch)


@check("signed_urls")
async def a_url_is_plain_text_that_can_be_sent_anywhere(service: Service) -> None:
    for name in NAMES:
        for method in ("GET", "PUT"):
            signed = await _sign(service, method, name)
            assert signed.url.isascii()
            assert signed.url.isprintable()
            assert not set(signed.url) & set(' "<>\\^`{|}')
            assert all(name.isascii() and value.isascii() for name, value in signed.headers.items())


@check("signed_urls")
async def a_url_can_be_signed_for_a_missing_object(service: Service) -> None:
    assert (await _sign(service, "GET", "missing")).url
    assert (await _sign(service, "PUT", "missing", size=5, md5=md5_of(b"words"))).url
    assert await service.names() == []


@check("signed_urls")
async def urls_differ_by_key_method_and_time(service: Service) -> None:
    urls = [
        (await _sign(service, "GET", "a")).url,
        (await _sign(service, "GET", "b")).url,
        (await _sign(service, "PUT", "a")).url,
        (await _sign(service, "GET", "a", expires=301)).url,
        (await _sign(service, "GET", "a", headers=ObjectHeaders(disposition="attachment"))).url,
    ]
    assert len(set(urls)) == len(urls)


@check("signed_urls")
async def a_url_is_valid_from_a_second_to_a_week(service: Service) -> None:
    for expires in (1, WEEK):
        assert (await _sign(service, "GET", expires=expires)).url
    for expires in (0, -1, WEEK + 1):
        for method in ("GET", "PUT"):
            with refused(InvalidRequestError):
                await _sign(service, method, expires=expires)


@check("signed_urls")
async def no_url_is_signed_for_an_invalid_key(service: Service) -> None:
    for key in ("", "a\x00b", "a/../b", "\ud800"):
        with refused(InvalidObjectKeyError):
            await service.send(SignUrl(NAME, key, "GET", 300))


@check("signed_urls", "served_urls")
async def anyone_can_fetch_the_object_of_a_url(service: Service) -> None:
    for name in NAMES:
        await service.put(name, name.encode(), headers=ObjectHeaders("text/plain"))
        signed = await _sign(service, "GET", name)
        status, headers, body = await _fetch(service, "GET", signed.url, headers=signed.headers)
        assert (status, headers["content-type"], body) == (200, "text/plain", name.encode())


@check("signed_urls", "served_urls")
async def a_url_sets_the_headers_of_the_response(service: Service) -> None:
    await service.put(body=b"words", headers=ObjectHeaders("text/html", "inline", "no-store"))
    wanted = ObjectHeaders(
        "application/octet-stream",
        "attachment; filename=\"a b.txt\"; filename*=UTF-8''a%20%C3%BC.txt",
        "private, max-age=60",
    )
    signed = await _sign(service, "GET", headers=wanted)
    status, headers, body = await _fetch(service, "GET", signed.url, headers=signed.headers)
    assert (status, body) == (200, b"words")
    assert headers["content-type"] == wanted.content_type
    assert headers["content-disposition"] == wanted.disposition
    assert headers["cache-control"] == wanted.cache_control


@check("signed_urls", "served_urls")
async def a_fetch_of_a_missing_object_is_not_found(service: Service) -> None:
    signed = await _sign(service, "GET", "missing")
    assert (await _fetch(service, "GET", signed.url, headers=signed.headers))[0] == 404


@check("signed_urls", "served_urls")
async def a_url_that_was_changed_opens_nothing(service: Service) -> None:
    for name in ("a", "b"):
        await service.put(name, b"words")
    url = (await _sign(service, "GET")).url
    last = "0" if url[-1] != "0" else "1"
    for changed in {url[:-1] + last, url.replace(service.key("a"), service.key("b"))} - {url}:
        status, _, body = await _fetch(service, "GET", changed)
        assert 400 <= status < 500
        assert b"words" not in body


@check("signed_urls", "served_urls")
async def a_url_is_good_for_one_method(service: Service) -> None:
    await service.put(body=b"words")
    read, write = await _sign(service, "GET"), await _sign(service, "PUT")
    assert 400 <= (await _fetch(service, "PUT", read.url, b"others", read.headers))[0] < 500
    assert 400 <= (await _fetch(service, "DELETE", read.url))[0] < 500
    assert 400 <= (await _fetch(service, "GET", write.url, headers=write.headers))[0] < 500
    assert await service.body() == b"words"


@check("signed_urls", "served_urls")
async def anyone_can_put_exactly_the_bytes_that_a_url_is_for(service: Service) -> None:
    for name in NAMES:
        body = name.encode()
        bound = {"headers": ObjectHeaders("text/plain"), "size": len(body), "md5": md5_of(body)}
        signed = await _sign(service, "PUT", name, **bound)
        status, _, _ = await _fetch(service, "PUT", signed.url, body, signed.headers)
        assert 200 <= status < 300
        found = await service.get(name)
        assert (found.body, found.info.headers.content_type) == (body, "text/plain")


@check("signed_urls", "served_urls")
async def other_bytes_than_a_url_is_for_are_refused(service: Service) -> None:
    body = b"words"
    bound: dict[str, Any] = {"headers": ObjectHeaders("text/plain"), "size": len(body), "md5": md5_of(body)}
    signed = await _sign(service, "PUT", **bound)
    for other in (b"other words", b"wordz", b""):
        sent = {name: value for name, value in signed.headers.items() if name.lower() != "content-length"}
        status, _, _ = await _fetch(service, "PUT", signed.url, other, sent)
        assert 400 <= status < 500
    assert await service.body() is None


@check("signed_urls", "served_urls")
async def other_headers_than_a_url_is_for_are_refused(service: Service) -> None:
    body = b"words"
    bound: dict[str, Any] = {"headers": ObjectHeaders("text/plain"), "size": len(body), "md5": md5_of(body)}
    signed = await _sign(service, "PUT", **bound)
    lower = {name.lower(): value for name, value in signed.headers.items()}
    for changed in (lower | {"content-type": "text/html"}, lower | {"content-md5": md5_of(b"wordz")}):
        status, _, _ = await _fetch(service, "PUT", signed.url, body, changed)
        assert 400 <= status < 500
    assert await service.body() is None
