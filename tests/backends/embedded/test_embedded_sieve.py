"""Pages with a filter: items that cannot match are not decoded, and every item that matches is returned."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from holdall.backends.embedded import EmbeddedBackend
from holdall.backends.embedded.sieve import list_texts
from holdall.core import And, Compare, Condition, CreateTable, Exists, In, Path, PutItem, Scan, Value
from holdall.core.json_text import encode_json
from holdall.core.schema import KeyAttribute, TableSchema

TABLE = TableSchema("table", KeyAttribute("k", "S"))
texts = some.text(some.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)


@given(name=texts, text=texts, other=texts)
def test_an_item_that_matches_is_decoded(name: str, text: str, other: str) -> None:
    """Also if its names and texts contain quotes, control characters or non-ASCII letters."""
    path, inside, member = Path((name,)), Path(("map", name)), Path(("list", 0))
    item = {name: {"S": text}, "map": {"M": {name: {"S": text}}}, "list": {"L": [{"S": text}]}}
    if name in ("map", "list"):
        return
    right, wrong = Value({"S": text}), Value({"S": other})
    equal = [Compare("=", each, right) for each in (path, inside, member)]
    filter = And((*equal, In(path, (wrong, right)), Exists(path), Compare("=", right, path)))
    assert find_lacking(filter, item) == []


@pytest.mark.parametrize(
    "filter",
    [
        Compare("=", Path(("type",)), Value({"S": "Order"})),
        In(Path(("type",)), (Value({"S": "Order"}), Value({"S": "Customer"}))),
        And((Compare("<>", Path(("type",)), Value({"S": "x"})), Exists(Path(("lease",))))),
    ],
)
def test_a_scan_decodes_only_items_that_may_match(filter: Condition, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = EmbeddedBackend(None)
    backend.send_blocking(CreateTable(TABLE))
    items = [{"k": {"S": f"{n}"}, "type": {"S": "Reading"}, "text": {"S": "a lease"}} for n in range(4)]
    items.append({"k": {"S": "4"}, "type": {"S": "Order"}, "lease": {"S": "x"}})
    for item in items:
        backend.send_blocking(PutItem("table", item))
    decoded: list[Any] = []
    loads = json.loads

    def record(text: str) -> Any:
        decoded.append(loads(text))
        return decoded[-1]

    monkeypatch.setattr(json, "loads", record)
    page = backend.send_blocking(Scan("table", filter=filter))
    assert (page.items, page.scanned, page.last_key) == ((items[4],), 5, None)
    assert decoded == [items[4]]
    ended = backend.send_blocking(Scan("table", filter=filter, enough=1))
    assert (ended.items, ended.scanned, ended.last_key) == ((items[4],), 5, {"k": {"S": "4"}})
    first = backend.send_blocking(Scan("table", filter=filter, limit=2))
    assert (first.items, first.scanned, first.last_key) == ((), 2, {"k": {"S": "1"}})


def find_lacking(filter: Condition, item: Any) -> list[tuple[str, ...]]:
    """Return the groups of texts of which the item's body contains none."""
    body = encode_json(item)
    return [group for group in list_texts(filter) if not any(text in body for text in group)]
