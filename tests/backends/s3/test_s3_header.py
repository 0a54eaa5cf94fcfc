"""The headers and metadata of an object are sent as HTTP headers and come back unchanged."""

from __future__ import annotations

from email.header import decode_header, make_header
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdall.backends.s3.header import PUT_ID, Storage, http_headers, object_headers, put_id
from holdall.core.objects import ObjectHeaders
from holdall.errors import ConfigurationError

values = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=200).map(str.strip)


@given(values)
@example("")
@example("two  spaces")
@example("=?UTF-8?B?w7w=?=")
@example("=?utf-8?q?a_b?= =?utf-8?q?c?=")
@example("a =? b")
@example("ü" * 500)
@example("\u00a0kept\u00a0")
@example("a\tb")
def test_metadata_comes_back_unchanged(value: str) -> None:
    sent = http_headers(ObjectHeaders(metadata={"a": value}))
    assert sent["x-amz-meta-a"].isascii()
    assert sent["x-amz-meta-a"].isprintable()
    assert "  " not in sent["x-amz-meta-a"]
    assert object_headers(sent).metadata == {"a": value}


@given(values.filter(lambda value: not value.isascii()))
def test_encoded_metadata_follows_the_standard(value: str) -> None:
    sent = http_headers(ObjectHeaders(metadata={"a": value}))["x-amz-meta-a"]
    assert all(len(word) <= 75 for word in sent.split(" "))
    assert str(make_header(decode_header(sent))) == value


@pytest.mark.parametrize(
    ("received", "value"),
    [
        ("=?UTF-8?Q?Gr=C3=BC=C3=9Fe_an_alle?=", "Grüße an alle"),
        ("=?ISO-8859-1?B?/A==?=", "ü"),
        ("plain =?UTF-8?B?w7w=?= and more", "plain ü and more"),
        ("=?UTF-8*de?B?w7w=?=", "ü"),
        ("=?klingon?B?w7w=?=", "=?klingon?B?w7w=?="),
        ("=?UTF-8?B?not base64?=", "=?UTF-8?B?not base64?="),
        ("=?UTF-8?B?/w==?=", "=?UTF-8?B?/w==?="),
        ("ü".encode().decode("latin-1"), "ü"),
        ("\xfc", "\xfc"),
    ],
)
def test_metadata_of_other_programs_is_decoded_if_possible(received: str, value: str) -> None:
    assert object_headers({"x-amz-meta-a": received}).metadata == {"a": value}


def test_every_field_is_sent_in_its_header() -> None:
    headers = ObjectHeaders("text/plain", "inline", "no-cache", {"colour": "red"})
    sent = http_headers(headers, "put-1")
    assert sent == {
        "content-type": "text/plain",
        "content-disposition": "inline",
        "cache-control": "no-cache",
        "x-amz-meta-colour": "red",
        f"x-amz-meta-{PUT_ID}": "put-1",
    }
    assert object_headers(sent) == headers
    assert put_id(sent) == "put-1"


def test_an_object_without_a_content_type_comes_back_without_one() -> None:
    assert object_headers(http_headers(ObjectHeaders())) == ObjectHeaders()
    assert put_id({}) is None


def test_storage_options_are_sent_as_headers() -> None:
    assert Storage("aws:kms", "key-1", "STANDARD_IA", "private").headers() == {
        "x-amz-server-side-encryption": "aws:kms",
        "x-amz-server-side-encryption-aws-kms-key-id": "key-1",
        "x-amz-storage-class": "STANDARD_IA",
        "x-amz-acl": "private",
    }
    assert Storage().headers() == {}


@pytest.mark.parametrize("name", ["encryption", "storage_class", "acl"])
@pytest.mark.parametrize("value", ["", "a b", "a\r\nx: y", "ü"])
def test_a_storage_option_that_does_not_fit_a_header_is_refused(name: str, value: str) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(ConfigurationError):
        Storage(**options).headers()


def test_an_encryption_key_needs_kms_encryption() -> None:
    for encryption in (None, "AES256"):
        with pytest.raises(ConfigurationError, match="aws:kms"):
            Storage(encryption, "key-1").headers()
