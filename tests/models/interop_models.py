"""Our counterparts of the models in ``javascript_models.cjs``, with examples of items that both must store alike.

Fields have the same names as in JavaScript, except where Python's conventions differ: there ``field(name=...)`` sets
the stored name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as with_default
from decimal import Decimal
from typing import Annotated, Any

from annotated_types import Ge
from pydantic import BaseModel

from holdall import Key, Model, SortKey, field

__all__ = [
    "EXAMPLES",
    "Currency",
    "Drawing",
    "Everything",
    "Example",
    "Guest",
    "Inventory",
    "Message",
    "Mixture",
    "Payment",
    "RaceResult",
    "Reading",
    "Session",
    "Shape",
    "Ticket",
    "Weapon",
    "in_javascript",
    "in_python",
]

# --- one model for each shape of key ---


class Guest(Model, table="Guest"):
    email: Key[str]
    visits: Annotated[int, Ge(0)] = 0
    note: str | None = None


class RaceResult(Model, table="RaceResult"):
    race_id: Key[int] = field(name="raceID")
    runner_name: Key[str] = field(name="runnerName")
    seconds: float
    place: int | None = None


class Ticket(Model, table="Ticket"):
    number: Key[int]
    holder: str


class Mark(Model, table="Mark"):
    at: Key[float]
    label: str


class Reading(Model, table="Reading"):
    sensor: Key[str]
    epoch: SortKey[int]
    celsius: float


class Message(Model, table="Message"):
    room: Key[str]
    sender: SortKey[str]
    at: SortKey[int]
    text: str


class Toggle(Model, table="Toggle"):
    on: Key[bool]
    since: int


class Place(Model, table="Place"):
    where: Key[dict[str, Any]]
    label: str


class Route(Model, table="Route"):
    stops: Key[list[Any]]
    label: str


class Mixture(Model, table="Mixture"):
    é: Key[str]
    b: Key[float]
    a2: Key[list[Any]]
    a: Key[str]
    Z: Key[bool]
    step: SortKey[int]
    extra: SortKey[dict[str, Any]]


class ActionHistory(Model, table="ActionHistory"):
    account: Key[int]
    epoch: SortKey[int]
    action: str


# --- every type of field, and the key of models that declare none ---


class Everything(Model, table="Everything"):
    text: str
    whole: int
    real: float
    flag: bool
    names: list[str]
    free: list[Any]
    shape: dict[str, Any]
    loose: dict[str, Any]
    scores: dict[str, int]
    maybe_text: str | None = field(default=None, name="maybeText")
    maybe_whole: int | None = field(default=None, name="maybeWhole")
    maybe_names: list[str] | None = field(default=None, name="maybeNames")
    level: int = 5
    tags: list[str] = field(default_factory=list)
    fixed: int = field(default=7, read_only=True)


class Shape(BaseModel):
    arr: list[str]
    depth: int | None = None


class Drawing(Model, table="Everything"):
    shape: Shape
    real: Decimal
    whole: int


# --- several models in one table ---


class Inventory(Model, table="Inventory"):
    user_id: Key[str] = field(name="userID")
    type_key: SortKey[str] = field(name="typeKey", default="none")
    items: dict[str, Any] = field(default_factory=dict)


class Currency(Inventory):
    type_key = "money"


class Weapon(Inventory):
    type_key = "weapon"
    weapon_skill_level: dict[str, Any] = field(name="weaponSkillLevel")


# --- indexes, and expiry ---


class Payment(Model, table="Payment"):
    player: Key[str]
    admin: Key[str]
    payout: int
    status: bool
    method: str
    tags: list[Any] | None = None


class Session(Model, table="Session", ttl="expires"):
    token: Key[str]
    user: str
    expires: int | None = None


# --- what they store ---

RENAMED = {
    "raceID": "race_id",
    "runnerName": "runner_name",
    "maybeText": "maybe_text",
    "maybeWhole": "maybe_whole",
    "maybeNames": "maybe_names",
    "userID": "user_id",
    "typeKey": "type_key",
    "weaponSkillLevel": "weapon_skill_level",
}


def in_python(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values under the names of our fields."""
    return {RENAMED.get(name, name): value for name, value in values.items()}


def in_javascript(item: Model | None) -> dict[str, Any] | None:
    """The values of one of our items as JavaScript returns them: under the stored names, without None."""
    stored = {python: name for name, python in RENAMED.items()}
    if item is None:
        return None
    return {stored.get(name, name): value for name, value in item.to_dict().items() if value is not None}


@dataclass(frozen=True)
class Example:
    """An item: its key and its other values under their names in JavaScript, and its stored form.

    ``changes`` has new values for some fields; None removes the value.
    """

    model: type[Model]
    key: Mapping[str, Any]
    values: Mapping[str, Any]
    raw: Mapping[str, Any]
    changes: Mapping[str, Any] = with_default(default_factory=dict)

    @property
    def name(self) -> str:
        return self.model.__name__

    @property
    def table(self) -> str:
        return "Inventory" if issubclass(self.model, Inventory) else self.name

    @property
    def raw_key(self) -> dict[str, Any]:
        return {name: value for name, value in self.raw.items() if name in ("_id", "_sk")}

    @property
    def all(self) -> dict[str, Any]:
        return {**self.key, **self.values}

    @property
    def changed(self) -> dict[str, Any]:
        return {name: value for name, value in {**self.all, **self.changes}.items() if value is not None}


_UUID = "c40ef065-4034-4be8-8a1d-0959695b213e"

EXAMPLES = [
    Example(
        Guest,
        {"email": "ada@example.org"},
        {"visits": 3, "note": ""},
        {"_id": {"S": "ada@example.org"}, "visits": {"N": "3"}, "note": {"S": ""}},
        {"visits": 4, "note": None},
    ),
    Example(
        RaceResult,
        {"raceID": 123, "runnerName": "Mel"},
        {"seconds": 12.25},
        {"_id": {"S": "123\0Mel"}, "seconds": {"N": "12.25"}},
        {"seconds": 11.5, "place": 1},
    ),
    Example(
        Ticket,
        {"number": 5},
        {"holder": "Bo"},
        {"_id": {"N": "5"}, "holder": {"S": "Bo"}},
        {"holder": "Di"},
    ),
    Example(
        Ticket,
        {"number": 0},
        {"holder": "Cy"},
        {"_id": {"N": "0"}, "holder": {"S": "Cy"}},
        {"holder": "Flo"},
    ),
    Example(
        Mark,
        {"at": -0.5},
        {"label": "start"},
        {"_id": {"N": "-0.5"}, "label": {"S": "start"}},
        {"label": "end"},
    ),
    Example(
        Mark,
        {"at": 2.0**60},
        {"label": "far"},
        {"_id": {"N": "1152921504606847000"}, "label": {"S": "far"}},
        {"label": "farther"},
    ),
    Example(
        Reading,
        {"sensor": "roof", "epoch": -7},
        {"celsius": 20.5},
        {"_id": {"S": "roof"}, "_sk": {"N": "-7"}, "celsius": {"N": "20.5"}},
        {"celsius": 1e-7},
    ),
    Example(
        Message,
        {"room": "hall", "sender": "Zoë", "at": 10},
        {"text": "hi"},
        {"_id": {"S": "hall"}, "_sk": {"S": "10\0Zoë"}, "text": {"S": "hi"}},
        {"text": "nul \0 is fine here 😀"},
    ),
    Example(
        Toggle,
        {"on": True},
        {"since": 1},
        {"_id": {"S": "true"}, "since": {"N": "1"}},
        {"since": 2**53 - 1},
    ),
    Example(
        Toggle,
        {"on": False},
        {"since": 0},
        {"_id": {"S": "false"}, "since": {"N": "0"}},
        {"since": -1},
    ),
    Example(
        Place,
        {"where": {"b": 1, "a": {"d": "é\0", "c": None}, "10": 1.5, "9": [True]}},
        {"label": "x"},
        {
            "_id": {"S": '{"10":1.5,"9":[true],"a":{"c":null,"d":"é\\u0000"},"b":1}'},
            "label": {"S": "x"},
        },
        {"label": "y"},
    ),
    Example(
        Route,
        {"stops": [1, "x", None, {"b": 1, "a": 2}]},
        {"label": "x"},
        {"_id": {"S": '[1,"x",null,{"a":2,"b":1}]'}, "label": {"S": "x"}},
        {"label": "y"},
    ),
    Example(
        Mixture,
        {
            **{"Z": False, "a": "", "a2": ["😀"], "b": 1e21, "é": "q"},
            **{"extra": {"y": 1, "x": []}, "step": -3},
        },
        {},
        {"_id": {"S": 'false\0\0["😀"]\x001e+21\0q'}, "_sk": {"S": '{"x":[],"y":1}\0-3'}},
    ),
    Example(
        ActionHistory,
        {"account": 12, "epoch": 1600000000},
        {"action": "login"},
        {"_id": {"S": "12"}, "_sk": {"S": "1600000000"}, "action": {"S": "login"}},
        {"action": "logout"},
    ),
    Example(
        Everything,
        {"id": _UUID},
        {
            "text": "",
            "whole": 2**53 - 1,
            "real": 0.1,
            "flag": False,
            "names": ["a", ""],
            "free": [1, "x", None, [1.5, True], {"k": None}],
            "shape": {"arr": ["p"]},
            "loose": {"n": None, "e": {}, "l": []},
            "scores": {"z": 1, "ä": -2},
            "maybeNames": [],
            "level": 5,
            "tags": [],
            "fixed": 7,
        },
        {
            "_id": {"S": _UUID},
            "text": {"S": ""},
            "whole": {"N": "9007199254740991"},
            "real": {"N": "0.1"},
            "flag": {"BOOL": False},
            "names": {"L": [{"S": "a"}, {"S": ""}]},
            "free": {
                "L": [
                    {"N": "1"},
                    {"S": "x"},
                    {"NULL": True},
                    {"L": [{"N": "1.5"}, {"BOOL": True}]},
                    {"M": {"k": {"NULL": True}}},
                ]
            },
            "shape": {"M": {"arr": {"L": [{"S": "p"}]}}},
            "loose": {"M": {"n": {"NULL": True}, "e": {"M": {}}, "l": {"L": []}}},
            "scores": {"M": {"z": {"N": "1"}, "ä": {"N": "-2"}}},
            "maybeNames": {"L": []},
            "level": {"N": "5"},
            "tags": {"L": []},
            "fixed": {"N": "7"},
        },
        {
            "text": "changed",
            "whole": -(2**53) + 1,
            "real": -1.5e-100,
            "flag": True,
            "names": [],
            "free": [{"deep": [[None]]}],
            "shape": {"arr": [], "depth": 3},
            "loose": {},
            "scores": {},
            "maybeText": "there",
            "maybeWhole": 0,
            "maybeNames": None,
            "level": 6,
            "tags": ["new"],
        },
    ),
    Example(
        Currency,
        {"userID": "u1", "typeKey": "money"},
        {"items": {"usd": 123, "rmb": 456}},
        {
            "_id": {"S": "u1"},
            "_sk": {"S": "money"},
            "items": {"M": {"usd": {"N": "123"}, "rmb": {"N": "456"}}},
        },
        {"items": {"usd": 0}},
    ),
    Example(
        Weapon,
        {"userID": "u1", "typeKey": "weapon"},
        {"items": {"ax": {}}, "weaponSkillLevel": {"ax": 13}},
        {
            "_id": {"S": "u1"},
            "_sk": {"S": "weapon"},
            "items": {"M": {"ax": {"M": {}}}},
            "weaponSkillLevel": {"M": {"ax": {"N": "13"}}},
        },
        {"weaponSkillLevel": {"ax": 14}},
    ),
]
