"""Partition keys of every kind: a query finds only its own items, even if other keys look similar."""

from __future__ import annotations

import types
from typing import Any

import pytest
from queries_models import KINDS, Kind
from queries_rig import Db, arrange, everywhere, fresh

from holdall import Index, Key, Model


def _define_model(kind: Kind, name: str, *, own: bool) -> type[Any]:
    """Define a model whose partition key is a text and a component of this kind, and so is the key of its index."""
    key: Any = Key
    body: dict[str, Any] = {
        "__annotations__": {"test": Key[str], "part": key[kind.annotation], "other": kind.annotation},
        "__module__": __name__,
    }
    options: dict[str, Any] = {"indexes": [Index("by_other", ["other", "test"])]}
    if own:
        options["table"] = name
    return types.new_class(name, (Model,), options, lambda namespace: namespace.update(body))


ONE = {name: _define_model(kind, f"By{name.title()}", own=False) for name, kind in KINDS.items()}
OWN = {
    name: _define_model(kind, f"OwnBy{name.title()}", own=True)
    for name, kind in KINDS.items()
    if name in ("text", "int")
}
CASES = [
    *((model, KINDS[name], False) for name, model in ONE.items()),
    *((model, KINDS[name], True) for name, model in OWN.items()),
]


@everywhere
@pytest.mark.parametrize(("model", "kind", "own"), CASES, ids=[model.__name__ for model, _, _ in CASES])
async def test_every_key_of_every_kind_has_its_own_partition(
    db: Db, model: type[Any], kind: Kind, own: bool
) -> None:
    test = fresh("test")
    values = {kind.order(value): value for value in kind.list_values(own=own, alone=False)}
    await arrange(db, *(model(test=test, part=value, other=value) for value in values.values()))
    for value in values.values():
        (row,) = await db.query(model, test=test, part=value).all()
        assert kind.order(row.part) == kind.order(value)
        (row,) = await db.query(model, index="by_other", test=test, other=value).all()
        assert kind.order(row.other) == kind.order(value)
        assert await db.get(model, test=test, part=value) == row
