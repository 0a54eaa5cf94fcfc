"""The Content-Disposition of a file, with its name in two forms, one of them plain ASCII."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.core.objects import ObjectHeaders, ObjectRequest, SignUrl
from holdall.core.rules.object import check_object_request
from holdall.errors import InvalidOptionsError
from holdall.files.upkeep import disposition_of, seconds


@pytest.mark.parametrize(
    ("filename", "wanted"),
    [
        ("plain.txt", "inline; filename=\"plain.txt\"; filename*=UTF-8''plain.txt"),
        ("a b.txt", "inline; filename=\"a b.txt\"; filename*=UTF-8''a%20b.txt"),
        ("café.txt", "inline; filename=\"cafe.txt\"; filename*=UTF-8''caf%C3%A9.txt"),
        ("日本語", "inline; filename=\"file\"; filename*=UTF-8''%E6%97%A5%E6%9C%AC%E8%AA%9E"),
        ('say "hi"\\.txt', "inline; filename=\"say %22hi%22%5C.txt\"; filename*=UTF-8''say%20%22hi%22%5C.txt"),
        ("a\r\nSet: x", "inline; filename=\"a%0D%0ASet%3A x\"; filename*=UTF-8''a%0D%0ASet%3A%20x"),
        ("bad\udcff.txt", "inline; filename=\"bad.txt\"; filename*=UTF-8''bad%3F.txt"),
    ],
)  # fmt: skip
def test_a_file_name_is_written_in_both_forms(filename: str, wanted: str) -> None:
    assert disposition_of(None, filename) == wanted
    assert disposition_of("attachment", filename) == wanted.replace("inline", "attachment", 1)


@given(filename=st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60))
def test_any_file_name_can_be_sent_in_a_header_and_read_back(filename: str) -> None:
    written = disposition_of("attachment", filename)
    request: ObjectRequest[Any] = SignUrl("s", "k", "GET", 60, ObjectHeaders(None, written))
    check_object_request(request)
    assert written is not None
    plain, _, encoded = written.partition("; filename*=UTF-8''")
    assert unquote(encoded) == filename
    assert plain.startswith('attachment; filename="')
    assert plain.count('"') == 2


def test_without_a_file_name_the_callers_disposition_is_used() -> None:
    assert disposition_of(None, None) is None
    assert disposition_of('form-data; name="x"', None) == 'form-data; name="x"'
    with pytest.raises(InvalidOptionsError, match="inline or attachment"):
        disposition_of("form-data", "x")


def test_seconds_are_rounded_down() -> None:
    assert [seconds(value) for value in (1, 1.9, 300)] == [1, 1, 300]
