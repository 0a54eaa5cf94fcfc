"""Mistakes that would pass in silence, and what is said instead."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from holdall import AsyncDatabase, Database, Key, Model, SortKey, col
from holdall.core.settings import resolve
from holdall.errors import InvalidFieldError, InvalidOptionsError

SECRET = "a-secret-of-sixteen-or-more"


class Sale(Model):
    shop: Key[str]
    number: SortKey[int]
    quantity: int = 1
    product: str = ""


@pytest.fixture
def db() -> Any:
    with Database("memory:") as database:
        yield database


# --- conditions on plain fields -----------------------------------------------------------------------------


def test_a_plain_field_compared_by_itself_points_to_col() -> None:
    comparisons: list[Callable[[], object]] = [
        lambda: Sale.quantity > 1,
        lambda: Sale.quantity >= 1,
        lambda: Sale.quantity < 1,
        lambda: Sale.quantity <= 1,
    ]
    for compare in comparisons:
        with pytest.raises(InvalidFieldError, match=r"use col\(\): col\(Sale.quantity\)"):
            compare()


def test_a_plain_field_tested_for_equality_is_refused_where_a_condition_belongs(db: Database) -> None:
    with pytest.raises(InvalidOptionsError, match=r"where must be a condition, not False.*\n.*in col\(\)"):
        db.query(Sale, shop="a", where=Sale.quantity == 1)  # type: ignore[arg-type]


def test_a_condition_asked_of_a_plain_field_points_to_col() -> None:
    with pytest.raises(AttributeError, match=r"col\(Sale.product\)"):
        Sale.product.begins_with("t")  # type: ignore[attr-defined]
    assert not hasattr(Sale.product, "anything_else")
    assert col(Sale.product).begins_with("t").values == ("t",)


# --- results that have not been read --------------------------------------------------------------------------


def test_a_query_or_scan_has_no_truth_of_its_own(db: Database) -> None:
    for rows in (
        db.query(Sale, shop="a"),
        db.scan(Sale),
        db.aio.query(Sale, shop="a"),
        db.aio.scan(Sale),
    ):
        with pytest.raises(TypeError, match=r"use \.exists\(\)"):
            bool(rows)


# --- transactions that are not entered --------------------------------------------------------------------------


def warned_of(db: Database | AsyncDatabase, record: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        record(db.transaction())
        gc.collect()
    return [str(each.message) for each in caught if each.category is RuntimeWarning]


@pytest.mark.parametrize("colour", ["blocking", "awaiting"])
def test_a_transaction_that_recorded_something_and_was_never_entered_warns(db: Database, colour: str) -> None:
    asked: Any = db if colour == "blocking" else db.aio
    (warning,) = warned_of(asked, lambda tx: tx.create(Sale, shop="a", number=1))
    assert "nothing was written" in warning
    assert warned_of(asked, lambda tx: tx.delete(Sale.key(shop="a", number=1)))
    assert warned_of(asked, lambda tx: None) == []


def test_a_transaction_that_was_entered_or_only_read_does_not_warn(db: Database) -> None:
    def enter(tx: Any) -> None:
        with tx:
            tx.create(Sale, shop="a", number=1)

    assert warned_of(db, enter) == []
    assert warned_of(db, lambda tx: tx.get(Sale, shop="a", number=1)) == []

    def fail(tx: Any) -> None:
        with suppress(ZeroDivisionError), tx:
            tx.create(Sale, shop="a", number=2 // 0)

    assert warned_of(db, fail) == []


# --- hints ----------------------------------------------------------------------------------------------------


def test_a_hint_names_the_database_it_is_about() -> None:
    given = {
        "url": "dynamodb://my-app",
        "endpoint": "http://localhost:8000",
        "region": "eu-west-1",
        "secret": SECRET,
    }
    command = resolve(given, {}, {}).command("table create")
    assert (
        command
        == "`holdall --url 'dynamodb://my-app?region=eu-west-1&endpoint=http://localhost:8000' table create`"
    )
    assert resolve({}, {}, {}).command("table create") == "`holdall table create`"
    assert resolve({"url": "embedded:data/app.db"}, {}, {}).command("worker") == (
        "`holdall --url embedded:data/app.db worker`"
    )
