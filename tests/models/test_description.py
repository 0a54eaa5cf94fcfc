"""The description of a model: everything that a class declares, as JSON data."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any

import pytest
from annotated_types import Ge

from holdall import Archive, Index, Key, Model, SortKey, Template, computed, field, has_one_attached
from holdall.errors import InvalidOptionsError
from holdall.models import describe_model


def to_cents(item: dict[str, Any]) -> dict[str, Any]:
    return item


class Base(Model, abstract=True):
    note: str | None = None


class Order(Base, indexes=[Index("by_status", key=["status"])], migrations=[to_cents]):
    """An order."""

    customer: Key[str]
    day: SortKey[datetime]
    number: SortKey[int]
    status: str = "open"
    count: Annotated[int, Ge(0)] = field(description="how many")
    mail: str = field(unique=True, name="eMail", hidden=True, casing="lower")
    tags: list[str] = field(default_factory=list, read_only=True)
    made_at: datetime = field(now="create")
    weight: float | None = field(default=None, aliases=["kilos"])
    cover = has_one_attached()

    @computed("count")
    def dozens(self) -> int:
        return self.count // 12

    def before_commit(self, tx: Any) -> None:
        """Do nothing."""


class Gift(Order):
    ribbon: bool = False


class Plain(
    Model,
    table="plain",
    layout="plain",
    ttl="until",
    indexes=[Index("by-until", key=["until"], include=["version"])],
):
    id: Key[bytes]
    until: datetime = field(stored="epoch")
    version: int = field(default=0, version=True)


class Placed(
    Model,
    table="placed",
    layout=Template(pk="C#{customer}", sk="PROFILE", gsi1=("S#{state}", "{customer}"), type="entity"),
):
    customer: Key[str]
    state: str = "new"


class Account(Model, collection="account"):
    id: Key[str]


class Payment(Model, collection="account"):
    id: Key[str]
    number: SortKey[str]


class Own(Model, table="Own", archive=Archive(timestamp="at")):
    id: Key[int]
    at: datetime


def test_a_model_of_the_databases_table_is_described() -> None:
    facts: Any = describe_model(Order)
    fields = {each["name"]: each for each in facts.pop("fields")}
    assert facts == {
        "model": f"{__name__}:Order",
        "name": "Order",
        "description": "An order.",
        "base": None,
        "table": None,
        "layout": "shared",
        "collection": None,
        "key": ["customer"],
        "sort_key": ["day", "number"],
        "attributes": [
            {"attribute": None, "type": "S", "template": "Order#{customer}"},
            {"attribute": None, "type": "S", "template": "{day}\0{number}"},
        ],
        "type_attribute": "_type",
        "indexes": [
            {
                "name": "by_status",
                "table_index": "gsi1",
                "key": ["status"],
                "sort_key": [],
                "attributes": [
                    {"attribute": "gsi1_pk", "type": "S", "template": None},
                    {"attribute": "gsi1_sk", "type": "S", "template": None},
                ],
                "include": None,
                "local": False,
            }
        ],
        "unique": ["mail"],
        "expires_by": None,
        "version": None,
        "attachments": ["cover"],
        "archive": False,
        "migrations": ["to_cents"],
        "hooks": ["before_commit"],
    }
    assert fields["mail"] == {
        "name": "mail",
        "type": "str",
        "attribute": "eMail",
        "kind": "S",
        "stored": None,
        "key": None,
        "required": True,
        "default": None,
        "unique": True,
        "read_only": False,
        "version": False,
        "now": None,
        "computed": None,
        "hidden": True,
        "casing": "lower",
        "aliases": [],
        "description": None,
    }
    assert {name: (each["type"], each["kind"], each["key"]) for name, each in fields.items()} == {
        "note": ("str | None", "S", None),
        "customer": ("str", "S", "partition"),
        "day": ("datetime", "S", "sort"),
        "number": ("int", "N", "sort"),
        "status": ("str", "S", None),
        "count": ("Annotated[int, Ge(ge=0)]", "N", None),
        "mail": ("str", "S", None),
        "tags": ("list[str]", "L", None),
        "made_at": ("datetime", "S", None),
        "weight": ("float | None", "N", None),
        "dozens": ("int", "N", None),
    }
    assert [name for name, each in fields.items() if each["required"]] == [
        *("customer", "day", "number", "count", "mail")
    ]
    assert (fields["status"]["default"], fields["tags"]["default"]) == ("'open'", "list()")
    assert (fields["tags"]["read_only"], fields["made_at"]["now"]) == (True, "create")
    assert (fields["dozens"]["computed"], fields["dozens"]["required"]) == (["count"], False)
    assert (fields["weight"]["aliases"], fields["count"]["description"]) == (["kilos"], "how many")


def test_a_derived_model_names_its_base() -> None:
    facts = describe_model(Gift)
    assert (facts["name"], facts["base"], facts["description"]) == ("Gift", f"{__name__}:Order", None)
    assert facts["attributes"] == describe_model(Order)["attributes"]


def test_a_model_in_a_collection_has_the_keys_of_its_collection() -> None:
    facts = [describe_model(model) for model in (Account, Payment)]
    assert [each["collection"] for each in facts] == ["account", "account"]
    assert [[key["template"] for key in each["attributes"]] for each in facts] == [
        ["account#{id}", "Account#"],
        ["account#{id}", "Payment#{number}"],
    ]
    for model, key in ((Account, Account.key("ada")), (Payment, Payment.key(id="ada", number="x"))):
        templates = [key["template"] or "" for key in describe_model(model)["attributes"]]
        assert tuple(text.format(id="ada", number="x") for text in templates) == key.encoded


def test_layouts_of_other_programs_are_described() -> None:
    plain = describe_model(Plain)
    assert (plain["table"], plain["layout"], plain["type_attribute"]) == ("plain", "plain", None)
    assert plain["attributes"] == [{"attribute": "id", "type": "B", "template": None}]
    assert (plain["expires_by"], plain["version"]) == ("until", "version")
    assert (plain["fields"][1]["kind"], plain["fields"][1]["stored"]) == ("N", "epoch")
    assert plain["indexes"][0]["include"] == ["version"]
    placed = describe_model(Placed)
    assert (placed["layout"], placed["type_attribute"], placed["sort_key"]) == ("template", "entity", [])
    assert placed["attributes"] == [
        {"attribute": "pk", "type": "S", "template": "C#{customer}"},
        {"attribute": "sk", "type": "S", "template": "PROFILE"},
    ]
    assert placed["indexes"][0]["attributes"] == [
        {"attribute": "gsi1pk", "type": "S", "template": "S#{state}"},
        {"attribute": "gsi1sk", "type": "S", "template": "{customer}"},
    ]
    own = describe_model(Own)
    assert (own["layout"], own["archive"], own["fields"][0]["attribute"]) == ("own", True, None)


@pytest.mark.parametrize("model", [Order, Gift, Plain, Placed, Own])
def test_a_description_is_json(model: type[Model]) -> None:
    facts = describe_model(model)
    assert json.loads(json.dumps(facts)) == facts


@pytest.mark.parametrize("given", [Base, Model, dict])
def test_a_class_without_items_is_refused(given: Any) -> None:
    with pytest.raises(InvalidOptionsError, match=f"{given.__name__} is not a model with items"):
        describe_model(given)
