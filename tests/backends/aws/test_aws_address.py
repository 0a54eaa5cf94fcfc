"""URLs of services are parsed or refused, and an error never repeats the URL."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.backends.aws.address import Address, parse_address


@pytest.mark.parametrize(
    ("url", "address", "authority"),
    [
        ("http://localhost:8000", Address("http", "localhost", 8000, "/"), "localhost:8000"),
        ("https://Example.COM", Address("https", "example.com", 443, "/"), "example.com"),
        ("http://a.b:80/", Address("http", "a.b", 80, "/"), "a.b"),
        ("https://a.b:80/", Address("https", "a.b", 80, "/"), "a.b:80"),
        ("http://10.0.0.1/v2/x?id=1", Address("http", "10.0.0.1", 80, "/v2/x?id=1"), "10.0.0.1"),
        ("http://[::1]:8000", Address("http", "::1", 8000, "/"), "[::1]:8000"),
        ("http://[fd00:ec2::23]/v1", Address("http", "fd00:ec2::23", 80, "/v1"), "[fd00:ec2::23]"),
        ("http://dynamo_db:8000", Address("http", "dynamo_db", 8000, "/"), "dynamo_db:8000"),
    ],
)
def test_a_url_is_parsed(url: str, address: Address, authority: str) -> None:
    assert parse_address(url) == address
    assert address.authority == authority


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "characters"),
        ("localhost:8000", "http://"),
        ("ftp://host", "http://"),
        ("http://", "no host"),
        ("http:///path", "no host"),
        ("http://host:port", "malformed"),
        ("http://host:0", "malformed"),
        ("http://host:65536", "malformed"),
        ("http://[::1", "malformed"),
        ("http://[::g]", "malformed"),
        ("http://[fe80::1%eth0]", "malformed"),
        ("http://-host", "malformed"),
        ("http://host..name", "malformed"),
        ("http://user:sesame@host", "user name"),
        ("http://host/#part", "fragment"),
        ("http://host /", "characters"),
        ("http://host\r\nX: y", "characters"),
        ("http://host\\evil", "characters"),
        ("http://hôst", "characters"),
    ],
)
def test_an_invalid_url_is_refused_and_not_repeated(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refusal:
        parse_address(url)
    assert "sesame" not in str(refusal.value)
    assert refusal.value.__context__ is None


@given(st.text() | st.text().map("http://".__add__) | st.text().map("https://[".__add__))
def test_any_text_is_an_address_or_a_value_error(text: str) -> None:
    try:
        address = parse_address(text)
    except ValueError:
        return
    assert parse_address(f"{address.scheme}://{address.authority}{address.target}") == address
    assert (address.authority + address.target).isascii()
    assert not any(character.isspace() for character in address.authority + address.target)
