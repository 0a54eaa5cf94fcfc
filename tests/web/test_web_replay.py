"""Replayed bodies: every run reads what the client sent, whichever methods it reads with."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.web.replay import InputRecord, MessageRecord, ReplayedInput

SIZES = st.one_of(st.none(), st.integers(-1, 12))
READS = st.lists(st.tuples(st.sampled_from(["read", "readline", "readlines"]), SIZES), max_size=6)
BODIES = st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r\n"]), max_size=12).map(b"".join)


def read(stream: Any, reads: list[tuple[str, int | None]]) -> list[Any]:
    return [getattr(stream, method)(size) for method, size in reads]


@given(body=BODIES, runs=st.lists(READS, min_size=1, max_size=3), limit=st.integers(0, 30))
def test_every_run_reads_the_same_as_the_first(
    body: bytes, runs: list[list[tuple[str, int | None]]], limit: int
) -> None:
    record = InputRecord(io.BytesIO(body), limit)
    for reads in runs:
        if not record.whole:
            break
        assert read(ReplayedInput(record), reads) == read(io.BytesIO(body), reads)
    assert len(record.data) <= limit


@given(body=BODIES, reads=READS)
def test_iteration_yields_all_lines_after_a_partial_read_in_an_earlier_run(
    body: bytes, reads: list[tuple[str, int | None]]
) -> None:
    record = InputRecord(io.BytesIO(body), 100)
    read(ReplayedInput(record), reads)
    assert list(ReplayedInput(record)) == list(io.BytesIO(body))


def test_the_body_is_not_read_ahead() -> None:
    source = io.BytesIO(b"one\ntwo\nthree")
    body = ReplayedInput(InputRecord(source, 100))
    assert body.readline() == b"one\n"
    assert source.tell() == 4


def test_a_body_over_the_limit_can_be_read_once_and_is_not_kept() -> None:
    record = InputRecord(io.BytesIO(b"0123456789"), 5)
    body = ReplayedInput(record)
    assert [body.read(4), body.read(4), body.read()] == [b"0123", b"4567", b"89"]
    assert (record.whole, bytes(record.data)) == (False, b"")


@pytest.mark.parametrize(("limit", "whole"), [(3, False), (4, True)])
def test_messages_are_kept_up_to_the_limit(limit: int, whole: bool) -> None:
    record = MessageRecord(limit)
    record.keep({"type": "http.request", "body": b"ab", "more_body": True})
    record.keep({"type": "http.request", "body": b"cd", "more_body": True})
    record.keep({"type": "http.request"})
    assert record.whole == whole
    assert len(record.messages) == (3 if whole else 0)
