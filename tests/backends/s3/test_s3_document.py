"""XML documents: parsed defensively, and written so that every key arrives unchanged."""

from __future__ import annotations

from contextlib import suppress
from xml.etree.ElementTree import ParseError, fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.backends.s3.document import (
    NoDocument,
    bucket_configuration,
    completion,
    deletion,
    fits_xml,
    read_document,
)
from holdall.core.objects import Part

SPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"
LAUGHS = """<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;&lol;">]>
<Error><Code>&lol2;</Code></Error>"""
OUTSIDE = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><Error><Code>&x;</Code></Error>'


@pytest.mark.parametrize("text", [LAUGHS, OUTSIDE, "<!DOCTYPE html><html></html>", '<!ENTITY a "b"><a/>'])
def test_a_document_with_declarations_is_refused(text: str) -> None:
    with pytest.raises(NoDocument, match="declares"):
        read_document(text.encode())


def test_another_encoding_does_not_hide_a_declaration() -> None:
    for encoding in ("utf-16", "utf-32", "utf-7"):
        with pytest.raises(NoDocument):
            read_document(OUTSIDE.encode(encoding))


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"<a>", b"<a></b>", b"\xff\xfe", b"<html><br></html>", b"<a>&x;</a>"]
)
def test_a_malformed_document_is_refused(body: bytes) -> None:
    with pytest.raises(NoDocument):
        read_document(body)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_document_or_refused(body: bytes) -> None:
    with suppress(NoDocument):
        read_document(body)


def test_namespaces_make_no_difference() -> None:
    for namespace in ("", ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"', ' xmlns="urn:other"'):
        document = read_document(f"<List{namespace}><Key>a</Key><Key>b</Key><Size>5</Size></List>".encode())
        assert document.name == "List"
        assert document.text("Key") == "a"
        assert document.number("Size") == 5
        assert document.get("Other") is None


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("a\x01b", "a\x01b"),
        ("a&#x1;b", "a\x01b"),
        ("a&#1;b", "a\x01b"),
        ("\ufffe", "\ufffe"),
        ("a\rb", "a\rb"),
        ("a\r\nb&#13;c", "a\r\nb\rc"),
        ("\x0b &amp; \ue000", "\x0b & \ue000"),
    ],
)
def test_invalid_characters_in_a_document_are_read(written: str, expected: str) -> None:
    text = f'<?xml version="1.0" encoding="UTF-8"?>\r\n<List>\r\n  <Key>{written}</Key>\r\n</List>\r\n'
    for form in (text, text.replace("\r\n  ", "").replace("\r\n<", "<").replace(">\r\n", ">")):
        assert read_document(form.encode()).text("Key") == expected


def test_the_error_of_a_missing_or_malformed_field_names_it() -> None:
    document = read_document(b"<List><Size>x</Size><Time>y</Time></List>")
    with pytest.raises(NoDocument, match="no Key"):
        document.text("Key")
    with pytest.raises(NoDocument, match="Size is not a number"):
        document.number("Size")
    with pytest.raises(NoDocument, match="Time is not a time"):
        document.time("Time")


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(fits_xml), min_size=1))
def test_a_deletion_names_every_valid_key_exactly(keys: list[str]) -> None:
    document = fromstring(deletion(keys))
    assert [found.text for found in document.iter(f"{SPACE}Key")] == keys
    assert document.findtext(f"{SPACE}Quiet") == "true"


@given(st.text(st.characters() | st.characters(max_codepoint=0x20), min_size=1, max_size=5))
def test_keys_that_xml_cannot_contain_are_recognized(key: str) -> None:
    try:
        fromstring(deletion([key]))
    except (ParseError, UnicodeEncodeError):
        assert not fits_xml(key)
    else:
        assert fits_xml(key)


def test_a_completion_names_its_parts_in_order() -> None:
    document = fromstring(completion([Part(1, "aa", 5), Part(3, 'b"<', 6)]))
    assert [found.text for found in document.iter(f"{SPACE}PartNumber")] == ["1", "3"]
    assert [found.text for found in document.iter(f"{SPACE}ETag")] == ['"aa"', '"b"<"']


def test_the_configuration_of_a_bucket_in_us_east_1_is_empty() -> None:
    assert bucket_configuration("us-east-1") == b""
    assert fromstring(bucket_configuration("eu-west-1")).findtext(f"{SPACE}LocationConstraint") == "eu-west-1"


def test_a_page_of_a_thousand_is_read() -> None:
    entries = "".join(
        f"<Contents><Key>{number}</Key><Size>{number}</Size></Contents>" for number in range(1000)
    )
    document = read_document(f"<ListBucketResult>{entries}</ListBucketResult>".encode())
    assert [found.number("Size") for found in document.all("Contents")] == list(range(1000))
