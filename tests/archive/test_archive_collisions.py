"""Adversarial keys: whatever the items' keys, no object is overwritten by another's, and every item is restored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from archive_rig import OLD, Order, Sale
from hypothesis import given, settings
from hypothesis import strategies as st
from rig.recorder import Recorder
from rig.torture import ROUNDS, TORTURE

from holdall import Archive, Database, Key, Model, SortKey, col
from holdall.backends.embedded import EmbeddedBackend
from holdall.backends.memory import MemoryService
from holdall.core.objects import PutObject

ALPHABET = "ab_:/<.%{}~\\|#é\u0301\x01\x7f0"
"""Characters that are replaced, encoded or dropped, and some that are not."""

parts = st.one_of(
    st.text(ALPHABET, min_size=1, max_size=6),
    st.sampled_from(["2024-01-15T10:00:00Z", "2024-01-15T10_00_00Z", "{sortKey}", "..", "x.json.gz", "x"]),
    st.builds(lambda start, end: start * 400 + end, st.sampled_from("x_é/"), st.text(ALPHABET, max_size=2)),
)
keys = st.lists(st.tuples(parts, parts), min_size=2, max_size=30 if TORTURE else 12, unique=True)


class Other(Model, archive=Archive(key="orders/{partitionKey}_{sortKey}")):
    """Items whose objects share a prefix with those of other models."""

    customer: Key[str]
    number: SortKey[str]
    note: str


@contextmanager
def open_db() -> Iterator[tuple[Database, Recorder]]:
    table = Recorder(EmbeddedBackend(None))
    service = Recorder(MemoryService())
    with Database("memory:", backend=table, files=service, manage_table=True) as db:
        yield db, service


def archive(db: Database, model: Any, names: list[tuple[str, str]]) -> None:
    more: dict[str, Any] = {"placed_at": OLD} if model in (Order, Sale) else {}
    for start in range(0, len(names), 50):
        with db.transaction() as tx:
            for customer, number in names[start : start + 50]:
                tx.create(model, customer=customer, number=number, note=f"of {customer} {number}", **more)
    where = col(model.note).begins_with("of")
    report = db.archive.run(model, where=where)
    assert (report.archived, report.failed) == (len(names), 0), report.problems


def check(db: Database, service: Recorder, models: list[Any], names: list[tuple[str, str]]) -> None:
    """Check that each item is unchanged, each object was written once by one item, and all keys are short enough."""
    for model in models:
        for customer, number in names:
            found = db.get_one(model, customer=customer, number=number)
            assert found.note == f"of {customer} {number}"
    writers: dict[str, list[str]] = {}
    for request, _ in service.exchanges:
        if isinstance(request, PutObject):
            writers.setdefault(request.key, []).append(request.headers.metadata["owner"])
    assert all(len(owners) == 1 for owners in writers.values())
    assert len(writers) == len(models) * len(names)
    assert all(len(key.encode()) <= 1024 for key in writers)
    assert sorted(writers) == [each.key for each in db.files.list()]


@given(keys)
@settings(max_examples=50 * ROUNDS if TORTURE else 8, deadline=None)
def test_no_item_overwrites_another_s_object_and_all_are_restored(names: list[tuple[str, str]]) -> None:
    with open_db() as (db, service):
        models = [Order, Sale, Other]
        for model in models:
            archive(db, model, names)
        check(db, service, models, names)
        for model in models:
            assert db.archive.restore_all(model) == len(names)
        assert list(db.files.list()) == []


def test_items_with_the_same_documented_key_have_separate_objects() -> None:
    names = [(f"a{one}b{two}c", "x") for one in ALPHABET[2:9] for two in ALPHABET[2:9]]
    with open_db() as (db, service):
        archive(db, Order, names)
        check(db, service, [Order], names)
        assert any("~" not in each.key for each in db.files.list())


@pytest.mark.parametrize("style", ["encoded", "hashed"])
def test_the_other_key_styles_give_different_keys(style: Any) -> None:
    class Styled(Model, archive=Archive(key_style=style)):
        customer: Key[str]
        number: SortKey[str]
        note: str

    names = [
        ("a:b", "c"),
        ("a_b", "c"),
        ("a__b", "c"),
        ("a", "b/c"),
        ("a/b", "c"),
        ("a", "b%2Fc"),
        (".", ".."),
    ]
    with open_db() as (db, service):
        archive(db, Styled, names)
        check(db, service, [Styled], names)
        assert not any("~" in each.key for each in db.files.list())
