"""``field(hidden=True)``: values that are stored and typed, but shown nowhere unless the caller asks for them."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import pytest
from pydantic import TypeAdapter
from rig.behaviour import Db, everywhere, in_memory
from rig.behaviour_models import arrange, put_raw

from holdall import Index, Key, Model, Template, col, field
from holdall.errors import HoldallError, InvalidFieldError, ModelDefinitionError

SECRET = "s3cr3t"
OTHER = "0th3r"


class Login(Model, indexes=[Index("by_digest", key=["digest"])]):
    name: Key[str]
    n: int = 0
    digest: str = field(hidden=True, name="dg")
    token: str | None = field(default=None, hidden=True, unique=True)
    codes: list[str] = field(default_factory=list, hidden=True, aliases=["old_codes"])


class Staff(Login):
    badge: str = field(default="", hidden=True)


class Session(Model):
    id: Key[str]
    digest: str = field(default="", hidden=True)


@contextmanager
def expect_error_without_secrets(error: type[Exception] = HoldallError) -> Iterator[None]:
    """Expect the block to fail with an error that shows no secret, nor does any of its causes."""
    with pytest.raises(error) as caught:
        yield
    found: BaseException | None = caught.value
    while found is not None:
        for text in (str(found), repr(found), repr(getattr(found, "differences", ""))):
            assert SECRET not in text
            assert OTHER not in text
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)


def test_a_hidden_value_can_be_read_but_is_not_shown() -> None:
    login = Login(name="ada", digest=SECRET, codes=[SECRET])
    assert login.digest == SECRET
    assert login.to_dict() == {"name": "ada", "n": 0}
    assert dict(login) == {"name": "ada", "n": 0}
    assert repr(login) == "Login(name='ada', n=0)"
    assert login.to_dict(hidden=True) == {
        "name": "ada",
        "n": 0,
        "digest": SECRET,
        "token": None,
        "codes": [SECRET],
    }
    assert copy(login).digest == pickle.loads(pickle.dumps(login)).digest == SECRET


def test_json_accepts_hidden_values_but_does_not_return_them() -> None:
    adapter = TypeAdapter(Login)
    login = adapter.validate_json(json.dumps({"name": "ada", "digest": SECRET}))
    assert login.digest == SECRET
    assert json.loads(adapter.dump_json(login)) == {"name": "ada", "n": 0}
    assert adapter.dump_python(login) == {"name": "ada", "n": 0}
    assert list(adapter.json_schema(mode="serialization")["properties"]) == ["name", "n"]
    accepted = adapter.json_schema()["properties"]
    assert accepted["digest"]["writeOnly"] is True
    assert "writeOnly" not in accepted["n"]


@everywhere
async def test_every_kind_of_write_stores_hidden_values(db: Db) -> None:
    await arrange(db, Login(name="ada", digest="1", token="t"))
    found = await db.get_one(Login, "ada")
    assert (found.digest, found.token) == ("1", "t")
    assert found.to_dict() == {"name": "ada", "n": 0}
    assert found.to_dict(initial=True) == {"name": "ada", "n": 0}
    assert found.to_dict(initial=True, hidden=True)["digest"] == "1"
    async with db.transaction() as tx:
        login = await tx.get_one(Login, "ada")
        login.n = 1
        login.digest = "2"
        (change,) = tx.changes()
        assert change.before is not None
        assert change.after is not None
        assert (change.before["digest"], change.after["digest"]) == ("1", "2")
    assert [row.name for row in await db.query(Login, index="by_digest", digest="2").all()] == ["ada"]
    by_token = await db.get_by(Login, token="t")
    assert by_token is not None
    assert by_token.digest == "2"
    await arrange(db, Session(id="a", digest="1"))
    stored = await db.get_one(Session, "a")
    await db.put(stored)
    assert (await db.get_one(Session, "a")).digest == "1"
    await db.put(Session(id="a", digest="2"))
    async with db.bulk(Session) as bulk:
        await bulk.put(Session(id="b", digest="3"))
    async with db.transaction() as tx:
        tx.update(Session.key("b"), col(Session.digest).set("4"))
        (change,) = tx.changes()
        assert change.after == {"id": "b", "digest": "4"}
        new = tx.create(Session, id="c", digest="5")
        assert [each.after for each in tx.changes() if each.key == new.key] == [{"id": "c", "digest": "5"}]
    found_all = await db.get_all([Session.key(id) for id in "abc"])
    assert [each.digest for each in found_all if each is not None] == ["2", "4", "5"]


@everywhere
async def test_errors_of_transactions_show_no_hidden_values(db: Db) -> None:
    await arrange(db, Login(name="ada", digest=SECRET, token=OTHER), Login(name="bo", digest="x"))
    with expect_error_without_secrets():
        async with db.transaction() as tx:
            ada = await tx.get_one(Login, "ada")
            assert (ada.digest, ada.codes) == (SECRET, [])
            await db.update(Login.key("ada"), digest=OTHER, codes=[OTHER])
            ada.n = 1
    with expect_error_without_secrets():  # the query uses an index whose attribute contains the value
        async with db.transaction() as tx:
            (row,) = await tx.query(Login, index="by_digest", digest=OTHER, lock="rows").all()
            await db.update(Login.key("ada"), digest=SECRET)
            tx.create(Login, name=f"{row.name}2", digest="x")
    with expect_error_without_secrets():
        await db.create(Login(name="cy", digest="x", token=OTHER))
    with expect_error_without_secrets():
        async with db.transaction() as tx:
            tx.create(Login, name="cy", digest="x", token="same")
            tx.create(Login, name="di", digest="x", token="same")
    for where in (col(Login.digest) == OTHER, (col(Login.digest) == OTHER) | (col(Login.n) == 7)):
        with expect_error_without_secrets():
            await db.update(Login.key("ada"), col(Login.n).set(2), where=where)
    with expect_error_without_secrets():
        async with db.transaction() as tx:
            tx.update(Login, {"name": "ada", "digest": OTHER}, {"digest": "new"})
    with expect_error_without_secrets():
        await db.update(Login.key("ada"), col(Login.digest).set("x"), col(Login.digest).set(SECRET))


@everywhere
async def test_invalid_stored_values_are_not_shown(db: Db) -> None:
    key: dict[str, Any] = {"pk": {"S": "Login#ada"}, "sk": {"S": "#"}, "name": {"S": "ada"}}
    await put_raw(db, Login, {**key, "dg": {"L": [{"S": SECRET}]}, "old_codes": {"S": SECRET}})
    login = await db.get_one(Login, "ada")
    assert repr(login) == "Login(name='ada', n=0)"
    for name in ("digest", "codes"):
        with expect_error_without_secrets(InvalidFieldError):
            getattr(login, name)
    with expect_error_without_secrets():
        await db.update(Login.key("ada"), col(Login.codes).append("x"))


@in_memory
async def test_invalid_new_values_are_not_shown(db: Db) -> None:
    login: Any = Login(name="ada", digest="x")
    with expect_error_without_secrets(InvalidFieldError):
        login.digest = [SECRET]
    with expect_error_without_secrets(InvalidFieldError):
        Login(name="ada", digest={"x": SECRET})  # type: ignore[arg-type]
    with expect_error_without_secrets(InvalidFieldError):
        login.assign({"digest": [SECRET], "codes": SECRET})
    with expect_error_without_secrets(InvalidFieldError):
        col(Login.codes).append([SECRET])  # type: ignore[arg-type]
    login.codes.append([SECRET])
    with expect_error_without_secrets(InvalidFieldError):
        await db.create(login)
    assert SECRET not in repr(col(Login.digest) == SECRET)
    assert SECRET not in repr(col(Login.codes).append(SECRET))


def test_a_derived_model_inherits_hidden_fields() -> None:
    assert repr(Staff(name="ada", digest=SECRET, badge=SECRET)) == "Staff(name='ada', n=0)"

    class Shown(Session):
        digest = "x"

    assert repr(Shown(id="a")) == "Shown(id='a')"


def test_keys_and_template_fields_cannot_be_hidden() -> None:
    with pytest.raises(ModelDefinitionError, match="key cannot be hidden"):

        class Wrong(Model):
            id: Key[str] = field(hidden=True)

    with pytest.raises(ModelDefinitionError, match="is hidden, so it cannot be in the template"):

        class Worse(Model, table="worse", layout=Template(pk="A#{id}", gsi1=("B#{digest}",))):
            id: Key[str]
            digest: str = field(hidden=True)
