"""``field(casing=...)``: text is stored, and searched for, in one case."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from annotated_types import MaxLen
from pydantic import TypeAdapter
from rig.behaviour import Db, everywhere
from rig.behaviour_models import arrange, put_raw

from holdall import Index, Key, Model, SortKey, Template, col, field
from holdall.errors import (
    InvalidFieldError,
    ModelAlreadyExistsError,
    ModelDefinitionError,
    UniqueViolationError,
)


class Member(Model, indexes=[Index("by_country", key=["country"], sort_key=["nick"])]):
    club: Key[str] = field(casing="lower")
    nick: SortKey[str] = field(casing="lower")
    mail: str | None = field(default=None, casing="lower", unique=True)
    country: Annotated[str, MaxLen(2)] = field(default="de", casing="upper")
    name: str = ""


class Guest(Member):
    country = "fr"


class Plain(Model, table="plain_members", layout="plain"):
    mail: Key[str] = field(casing="lower")
    city: str = field(default="", casing="upper")


class Templated(Model, table="template_members", layout=Template(pk="M#{nick}", sk="-")):
    nick: Key[str] = field(casing="upper")


def test_an_instance_converts_values_to_the_case_of_the_field() -> None:
    member: Any = Member(club="Chess", nick="ADA", mail="Ada@Example.com")
    assert (member.club, member.nick, member.mail, member.country) == (
        "chess",
        "ada",
        "ada@example.com",
        "DE",
    )
    member.mail = "BO@x"
    assert member.mail == "bo@x"
    member.assign({"country": "it", "mail": None})
    assert (member.country, member.mail) == ("IT", None)
    assert Guest(club="a", nick="b").country == "FR"
    assert Member.key(club="CHESS", nick="Ada") == member.key
    assert Templated.key("ada").encoded == ("M#ADA", "-")
    with pytest.raises(InvalidFieldError):
        member.country = "ITA"
    with pytest.raises(InvalidFieldError):
        member.country = 7
    parsed = TypeAdapter(Member).validate_json('{"club": "Chess", "nick": "Bo", "country": "it"}')
    assert (parsed.nick, parsed.country) == ("bo", "IT")


@everywhere
async def test_items_are_found_in_any_case(db: Db) -> None:
    await arrange(
        db, Member(club="Chess", nick="Ada", mail="Ada@x", country="it"), Plain(mail="Ada@x", city="Bonn")
    )
    assert (await db.get_one(Member, club="chess", nick="ADA")).name == ""
    assert [each.nick for each in await db.query(Member, club="CHESS").all()] == ["ada"]
    for sort in (Member.nick == "ADA", Member.nick.begins_with("AD"), Member.nick.between("ADA", "ADB")):
        assert [each.nick for each in await db.query(Member, club="CHESS", sort=sort).all()] == ["ada"]
    assert [each.nick for each in await db.query(Member, index="by_country", country="It").all()] == ["ada"]
    for where in (
        col(Member.country) == "it",
        col(Member.country).in_("it", "fr"),
        col(Member.country).begins_with("i"),
        col(Member.mail).contains("ADA"),
        col(Member.country).size == 2,
    ):
        assert [each.nick for each in await db.query(Member, club="Chess", where=where).all()] == ["ada"]
    found = await db.get_by(Member, mail="ADA@X")
    assert found is not None
    assert (await db.get_one(Plain, "ADA@x")).city == "BONN"


@everywhere
async def test_no_write_stores_another_case(db: Db) -> None:
    await arrange(db, Member(club="a", nick="b", mail="ada@x"), Plain(mail="a@x"))
    with pytest.raises(ModelAlreadyExistsError):
        await db.create(Member(club="A", nick="B"))
    with pytest.raises(UniqueViolationError):
        await db.create(Member(club="a", nick="c", mail="ADA@X"))
    await db.update(Plain.key("A@X"), col(Plain.city).set("Rome"))
    await db.update(Plain.key("b@x"), col(Plain.city).set("Oslo"), create_if_missing=True)
    await db.put(Plain(mail="C@x", city="Bern"))
    async with db.bulk(Plain) as bulk:
        await bulk.put(Plain(mail="D@x", city="Nice"))
    async with db.transaction() as tx:
        tx.update(Plain, {"mail": "D@X", "city": "nice"}, {"city": "Lyon"})
    stored = sorted((plain.mail, plain.city) for plain in await db.scan(Plain).all())
    assert stored == [("a@x", "ROME"), ("b@x", "OSLO"), ("c@x", "BERN"), ("d@x", "LYON")]
    member = await db.get_one(Member, club="a", nick="b")
    assert member.mail == "ada@x"


@everywhere
async def test_a_value_stored_in_another_case_is_read_unchanged(db: Db) -> None:
    raw: dict[str, Any] = {"mail": {"S": "a@x"}, "city": {"S": "Bonn"}}
    await db.get(Plain, "any key: the first use creates the table")
    await put_raw(db, Plain, raw)
    assert (await db.get_one(Plain, "a@x")).city == "Bonn"
    async with db.transaction() as tx:
        plain = await tx.get_one(Plain, "a@x")
        assert plain.city == "Bonn"
        plain.city = plain.city
    assert (await db.get_one(Plain, "a@x")).city == "BONN"


def test_invalid_declarations_are_refused() -> None:
    with pytest.raises(ModelDefinitionError, match="n: only text has a casing"):

        class Number(Model):
            n: int = field(casing="lower")

    with pytest.raises(ModelDefinitionError, match='casing must be "lower" or "upper"'):

        class Title(Model):
            x: str = field(casing="title")  # type: ignore[call-overload]

    with pytest.raises(ModelDefinitionError, match="casing= differs"):

        class Other(Plain, abstract=True):
            city = field(casing="lower")

    with pytest.raises(ModelDefinitionError, match="it must have the casing that it has in Member"):

        class Again(Member):
            nick: SortKey[str]
