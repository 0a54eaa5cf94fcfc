"""Records of streams as changes of models, in the form that Lambda receives and in the form that GetRecords returns."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall import Database, Key, Model, SortKey, field
from holdall.core import Item, Scan, encode_item
from holdall.errors import FrozenItemError, InvalidFieldError, InvalidOptionsError, InvalidRequestError
from holdall.models import StreamChange, stream_change, stream_changes
from holdall.models.keys.stored import decode_key

ARN = "arn:aws:dynamodb:eu-central-1:111122223333:table/{}/stream/2026-11-15T00:00:00.000"
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


class Animal(Model):
    zoo: Key[str]
    number: SortKey[int]
    name: str = ""
    photo: bytes = b"\x00\xff"
    marks: set[bytes] = field(default_factory=set)
    diet: dict[str, Any] = field(default_factory=dict)
    tag: str | None = field(default=None, unique=True)


class Bird(Animal):
    wings: int = 2


class Keeper(Model):
    id: Key[UUID]


class OwnAnimal(Model, table="Animals"):
    zoo: Key[str]
    kind: SortKey[str] = field(default="animal")
    name: str = ""
    photo: bytes = b"\x00\xff"


class OwnBird(OwnAnimal):
    kind = field(default="bird")
    wings: int = 2


class OwnFish(OwnAnimal):
    kind = field(default="fish")


class Ticket(Model, table="Animals"):
    """In the same table, without a common base."""

    zoo: Key[str]
    kind: SortKey[str] = field(default="ticket")


class OwnKeeper(Model, table="Keepers"):
    id: Key[int]
    name: str = ""


# --- records ----------------------------------------------------------------------------------------------


def store(item: Model) -> dict[str, Any]:
    """Store an item and return its stored form."""
    with Database("memory:") as db:
        with db.transaction() as tx:
            tx.create(item)
        table = item._schema.table or "holdall"
        named = [each for each in db.send(Scan(table)).items if each.get("_type") != {"S": "holdall.Unique"}]
        (found,) = named
        return dict(found)


def keys_of(item: Item) -> dict[str, Any]:
    return {name: item[name] for name in ("pk", "sk", "_id", "_sk") if name in item}


def record(
    event: str,
    old: Mapping[str, Any] | None = None,
    new: Mapping[str, Any] | None = None,
    *,
    table: str | None = "zoo",
    view: str = "NEW_AND_OLD_IMAGES",
    **more: Any,
) -> dict[str, Any]:
    """A record in the form that Lambda receives."""
    item = old if new is None else new
    assert item is not None
    data: dict[str, Any] = {
        "ApproximateCreationDateTime": NOON.timestamp(),
        "Keys": keys_of(item),
        "SequenceNumber": "4421584500000000017450439091",
        "SizeBytes": 26,
        "StreamViewType": view,
    }
    if new is not None and view in ("NEW_IMAGE", "NEW_AND_OLD_IMAGES"):
        data["NewImage"] = dict(new)
    if old is not None and view in ("OLD_IMAGE", "NEW_AND_OLD_IMAGES"):
        data["OldImage"] = dict(old)
    made = {
        "eventID": "c4ca4238a0b923820dcc509a6f75849b",
        "eventName": event,
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "eu-central-1",
        "dynamodb": data,
        **({} if table is None else {"eventSourceARN": ARN.format(table)}),
        **more,
    }
    assert json.loads(json.dumps(made)) == made  # Lambda's events are JSON
    return made


def as_returned(lambdas: Mapping[str, Any]) -> dict[str, Any]:
    """The same record as boto3 returns it: with bytes and a datetime, and without the name of the table."""

    def shape(value: Any) -> Any:
        if isinstance(value, Mapping) and len(value) == 1:
            ((kind, content),) = value.items()
            if kind == "B" and isinstance(content, str):
                return {kind: b64decode(content)}
            if kind == "BS" and isinstance(content, list):
                return {kind: [b64decode(each) for each in content]}
        if isinstance(value, Mapping):
            return {name: shape(each) for name, each in value.items()}
        return [shape(each) for each in value] if isinstance(value, list) else value

    data = lambdas["dynamodb"]
    images = {name: shape(data[name]) for name in ("Keys", "OldImage", "NewImage") if name in data}
    moment = datetime.fromtimestamp(data["ApproximateCreationDateTime"], timezone(timedelta(hours=1)))
    rest = {name: value for name, value in lambdas.items() if name not in ("eventSourceARN", "userIdentity")}
    identity = lambdas.get("userIdentity")
    if identity is not None:
        rest["userIdentity"] = {"PrincipalId": identity["principalId"], "Type": identity["type"]}
    return {**rest, "dynamodb": {**data, **images, "ApproximateCreationDateTime": moment}}


both_forms = pytest.mark.parametrize("form", [lambda made: made, as_returned], ids=["Lambda", "GetRecords"])


def only(changes: list[StreamChange[Any]]) -> StreamChange[Any]:
    (change,) = changes
    return change


# --- the shared table -------------------------------------------------------------------------------------


@both_forms
def test_a_record_becomes_a_change_of_its_model(form: Any) -> None:
    before = store(Animal(zoo="bern", number=7, name="Ulla", marks={b"a", b"\xff"}))
    after = {**before, "name": {"S": "Björk"}, "diet": {"M": {"raw": {"L": [{"B": "AP8="}]}}}}
    records = [record("INSERT", None, before), record("MODIFY", before, after), record("REMOVE", after)]
    made, changed, gone = stream_changes({"Records": [form(each) for each in records]}, Animal)
    assert [change.kind for change in (made, changed, gone)] == ["insert", "modify", "remove"]
    assert {change.model for change in (made, changed, gone)} == {Animal}
    assert {change.key for change in (made, changed, gone)} == {Animal.key(zoo="bern", number=7)}
    assert made.old is None
    assert made.new is not None
    assert (made.new.name, made.new.photo, made.new.marks) == ("Ulla", b"\x00\xff", {b"a", b"\xff"})
    assert changed.old is not None
    assert changed.new is not None
    assert (changed.old.name, changed.new.name) == ("Ulla", "Björk")
    assert changed.new.diet == {"raw": [b"\x00\xff"]}
    assert gone.new is None
    assert gone.old == changed.new
    assert [change.at for change in (made, changed, gone)] == [NOON] * 3
    assert made.sequence_number == "4421584500000000017450439091"
    assert made.event_id == "c4ca4238a0b923820dcc509a6f75849b"


def test_changes_can_be_read_from_an_event_a_list_of_records_or_one_record() -> None:
    inserts = [record("INSERT", None, store(Animal(zoo="bern", number=number))) for number in range(3)]
    assert [change.key.components["number"] for change in stream_changes(inserts, Animal)] == [0, 1, 2]
    assert stream_changes(iter(inserts), Animal) == stream_changes({"Records": inserts}, Animal)
    assert stream_change(inserts[1], Animal) == stream_changes(inserts, Animal)[1]
    assert stream_changes([], Animal) == []


def test_items_of_other_models_are_left_out() -> None:
    guard = {"pk": {"S": "holdall#Unique#Animal#tag#x"}, "sk": {"S": "#"}, "_type": {"S": "holdall.Unique"}}
    foreign = {"pk": {"S": "Animal#bern"}, "sk": {"S": "x"}, "anything": {"NULL": True}}
    other = store(Keeper(id=UUID(int=5)))
    records = [record("INSERT", None, item) for item in (guard, foreign, other)]
    assert [stream_change(each, Animal) for each in records] == [None, None, None]
    assert [change.model for change in stream_changes(records, Animal, Keeper)] == [Keeper]


def test_each_item_is_of_the_class_that_its_type_names() -> None:
    records = [
        record("INSERT", None, store(model(zoo="bern", number=number)))
        for number, model in enumerate((Animal, Bird))
    ]
    assert [type(change.new) for change in stream_changes(records, Animal)] == [Animal, Bird]
    assert [change.model for change in stream_changes(records, Animal)] == [Animal, Bird]
    assert [type(change.new) for change in stream_changes(records, Bird)] == [Bird]


def test_an_item_can_become_one_of_another_class() -> None:
    change = stream_change(
        record("MODIFY", store(Animal(zoo="a", number=1)), store(Bird(zoo="a", number=1))), Animal
    )
    assert change is not None
    assert (type(change.old), type(change.new), change.model) == (Animal, Bird, Bird)


def test_an_abstract_model_stands_for_the_models_derived_from_it() -> None:
    class Dated(Model, abstract=True):
        year: int = 2026

    class Wine(Dated):
        id: Key[str]

    class Cheese(Dated):
        id: Key[str]

    records = [record("INSERT", None, store(model(id="a"))) for model in (Wine, Cheese)]
    assert [change.model for change in stream_changes(records, Dated)] == [Wine, Cheese]


@both_forms
def test_items_of_a_change_cannot_be_changed(form: Any) -> None:
    item = store(Animal(zoo="bern", number=7, name="Ulla"))
    change = stream_change(form(record("MODIFY", item, item)), Animal)
    assert change is not None
    for animal in (change.old, change.new):
        assert animal is not None
        with pytest.raises(FrozenItemError):
            animal.name = "Björk"
    with pytest.raises(AttributeError):
        change.kind = "insert"  # type: ignore[misc]


def test_a_field_that_no_longer_fits_fails_when_it_is_read() -> None:
    broken = {**store(Animal(zoo="bern", number=7)), "name": {"N": "5"}}
    change = stream_change(record("INSERT", None, broken), Animal)
    assert change is not None
    assert change.new is not None
    assert change.new.number == 7
    with pytest.raises(InvalidFieldError, match=r"Animal\.name"):
        _ = change.new.name


def test_items_of_an_older_version_are_brought_up_to_date() -> None:
    class Nest(Model, migrations=[lambda values: {**values, "eggs": values["eggs"] * 2}]):
        id: Key[str]
        eggs: int
        place: str = field(default="", aliases=["tree"])

    old = encode_item({"pk": "Nest#a", "sk": "#", "_type": "Nest", "id": "a", "eggs": 2, "tree": "oak"})
    change = stream_change(record("MODIFY", old, store(Nest(id="a", eggs=4, place="elm"))), Nest)
    assert change is not None
    assert change.old is not None
    assert change.new is not None
    assert (change.old.eggs, change.old.place) == (4, "oak")
    assert (change.new.eggs, change.new.place) == (4, "elm")


# --- expiry -----------------------------------------------------------------------------------------------

EXPIRER = {"principalId": "dynamodb.amazonaws.com", "type": "Service"}


@both_forms
@pytest.mark.parametrize(
    ("event", "identity", "expired"),
    [
        ("REMOVE", EXPIRER, True),
        ("REMOVE", None, False),
        ("REMOVE", {"principalId": "AIDAJ45Q7YFFAREXAMPLE", "type": "Service"}, False),
        ("MODIFY", EXPIRER, False),
    ],
    ids=str,
)
def test_only_a_removal_by_dynamodb_itself_is_an_expiry(
    form: Any, event: str, identity: Any, expired: bool
) -> None:
    more = {} if identity is None else {"userIdentity": identity}
    made = form(record(event, store(Animal(zoo="bern", number=7)), **more))
    change = stream_change(made, Animal)
    assert change is not None
    assert change.expired is expired


# --- own tables -------------------------------------------------------------------------------------------


@both_forms
def test_an_own_table_is_known_by_its_name(form: Any) -> None:
    item = store(OwnAnimal(zoo="bern", kind="bear", name="Ulla"))
    change = stream_change(form(record("INSERT", None, item, table="Animals")), OwnAnimal)
    assert change is not None
    assert (change.model, change.key) == (OwnAnimal, OwnAnimal.key(zoo="bern", kind="bear"))
    assert change.new is not None
    assert (change.new.zoo, change.new.kind, change.new.name) == ("bern", "bear", "Ulla")
    assert change.new.photo == b"\x00\xff"
    assert change.new.key == change.key


def test_a_prefix_of_tables_is_part_of_their_names() -> None:
    made = record("INSERT", None, store(OwnKeeper(id=5)), table="test-Keepers")
    assert stream_change(made, OwnKeeper) is None
    change = stream_change(made, OwnKeeper, table_prefix="test-")
    assert change is not None
    assert change.key == OwnKeeper.key(5)


def test_the_default_of_the_sort_key_identifies_the_class() -> None:
    records = [
        record("INSERT", None, store(model(zoo="bern")), table="Animals")
        for model in (OwnAnimal, OwnBird, OwnFish, Ticket)
    ]
    bear = record("INSERT", None, store(OwnAnimal(zoo="bern", kind="bear")), table="Animals")
    models = [change.model for change in stream_changes([*records, bear], OwnAnimal, Ticket)]
    assert models == [OwnAnimal, OwnBird, OwnFish, Ticket, OwnAnimal]
    assert [change.model for change in stream_changes([*records, bear], Ticket, OwnAnimal)][:4] == models[:4]
    assert [change.model for change in stream_changes([*records, bear], OwnBird)] == [OwnBird]


def test_an_item_whose_key_does_not_fit_the_model_is_left_out() -> None:
    odd = {"_id": {"S": "not a number"}}
    assert stream_change(record("INSERT", None, odd, table="Keepers"), OwnKeeper) is None


def test_models_of_both_layouts_are_distinguished() -> None:
    records = [
        record("INSERT", None, store(Animal(zoo="bern", number=1))),
        record("INSERT", None, store(OwnAnimal(zoo="bern")), table="Animals"),
        record("INSERT", None, store(OwnKeeper(id=1)), table="Keepers"),
    ]
    models = (OwnKeeper, Animal, OwnAnimal)
    assert [change.model for change in stream_changes(records, *models)] == [Animal, OwnAnimal, OwnKeeper]


def test_the_key_can_identify_the_model_if_a_record_does_not_name_its_table() -> None:
    keeper = as_returned(record("INSERT", None, store(OwnKeeper(id=1))))
    animal = as_returned(record("INSERT", None, store(OwnAnimal(zoo="bern"))))
    assert [change.model for change in stream_changes([keeper, animal], OwnKeeper, OwnAnimal)] == [
        OwnKeeper,
        OwnAnimal,
    ]
    other = as_returned(record("INSERT", None, store(Animal(zoo="bern", number=1))))
    assert only(stream_changes([other], Animal, OwnAnimal)).model is Animal


def test_the_caller_must_name_the_table_if_a_record_fits_several_models() -> None:
    class Visitor(Model, table="Visitors"):
        id: Key[int]

    made = as_returned(record("INSERT", None, store(OwnKeeper(id=1))))
    with pytest.raises(InvalidOptionsError, match="it fits several"):
        stream_change(made, OwnKeeper, Visitor)
    assert only(stream_changes([made], OwnKeeper, Visitor, table="Visitors")).model is Visitor
    assert only(stream_changes([made], OwnKeeper, Visitor, table="Keepers")).model is OwnKeeper
    assert stream_changes([made], OwnKeeper, Visitor, table="Animals") == []


def test_an_own_table_with_another_key_is_an_error() -> None:
    made = record("INSERT", None, store(Animal(zoo="bern", number=1)), table="Animals")
    with pytest.raises(InvalidRequestError, match="the key of OwnAnimal is not pk, sk"):
        stream_change(made, OwnAnimal)


# --- views ------------------------------------------------------------------------------------------------


@both_forms
@pytest.mark.parametrize("layout", [Animal, OwnAnimal])
@pytest.mark.parametrize(
    ("view", "olds", "news"),
    [
        ("KEYS_ONLY", [False, False, False], [False, False, False]),
        ("NEW_IMAGE", [False, False, False], [True, True, False]),
        ("OLD_IMAGE", [False, True, True], [False, False, False]),
        ("NEW_AND_OLD_IMAGES", [False, True, True], [True, True, False]),
    ],
)
def test_a_change_has_what_the_view_of_its_stream_has(
    form: Any, layout: type[Any], view: str, olds: list[bool], news: list[bool]
) -> None:
    animal = layout(zoo="bern", number=7) if layout is Animal else layout(zoo="bern")
    item = store(animal)
    table = layout._schema.table or "zoo"
    events = [("INSERT", None, item), ("MODIFY", item, item), ("REMOVE", item, None)]
    records = [form(record(*event, table=table, view=view)) for event in events]
    changes = stream_changes(records, layout)
    assert [change.kind for change in changes] == ["insert", "modify", "remove"]
    assert [change.key for change in changes] == [animal.key] * 3
    assert [change.key.components for change in changes] == [animal.key.components] * 3
    assert [change.model for change in changes] == [layout] * 3
    assert [change.old is not None for change in changes] == olds
    assert [change.new is not None for change in changes] == news


class Tag(Model, collection="zoo"):
    zoo: Key[str]
    text: SortKey[str]


def test_a_collection_is_known_by_its_sort_key() -> None:
    made = record("REMOVE", store(Tag(zoo="bern", text="a#b")), view="KEYS_ONLY")
    change = stream_change(made, Animal, Tag)
    assert change is not None
    assert change.key == Tag.key(zoo="bern", text="a#b")


def test_an_item_known_only_by_its_key_is_of_the_model_that_the_key_names() -> None:
    made = record("REMOVE", store(Bird(zoo="bern", number=7)), view="KEYS_ONLY")
    for asked in (Animal, Bird):
        change = stream_change(made, asked)
        assert change is not None
        assert change.model is Animal
        assert change.key == Bird.key(zoo="bern", number=7)


@pytest.mark.parametrize(
    "keys",
    [
        {"pk": "Keeper#1", "sk": "#"},
        {"pk": "Zebra#1", "sk": "#"},
        {"pk": "holdall#Unique#Animal#tag#x", "sk": "#"},
        {"pk": "Animal#bern", "sk": "not a number"},
        {"pk": "Animal#bern#more", "sk": "p5017"},
        {"pk": "Animal#bern", "sk": "p5017\0p5017"},
        {"pk": "Animal#b%65rn", "sk": "p5017"},
        {"pk": "Animal", "sk": "p5017"},
        {"pk": "Animal#bern"},
    ],
    ids=str,
)
def test_keys_that_fit_no_model_are_left_out(keys: dict[str, str]) -> None:
    assert stream_change(record("REMOVE", encode_item(keys), view="KEYS_ONLY"), Animal) is None


def test_items_with_numeric_keys_are_left_out() -> None:
    keys = {"pk": {"S": "Animal#bern"}, "sk": {"N": "7"}}
    assert stream_change(record("REMOVE", keys, view="KEYS_ONLY"), Animal) is None


def test_the_partition_key_can_have_another_name() -> None:
    class Pair(Model):
        left: Key[str]
        right: SortKey[str]

    def rename_keys(pair: Pair) -> dict[str, Any]:
        made = record("REMOVE", store(pair), view="KEYS_ONLY")
        keys = made["dynamodb"]["Keys"]
        made["dynamodb"]["Keys"] = {"range": keys["sk"], "hash": keys["pk"]}
        return made

    plain = Pair(left="a", right="b")
    assert only(stream_changes([rename_keys(plain)], Pair)).key == plain.key
    tricky = Pair(left="a", right="Pair#b")  # which could be the key of another item
    made = rename_keys(tricky)
    with pytest.raises(InvalidOptionsError, match="'range' or 'hash' could be the partition key"):
        stream_change(made, Pair)
    assert only(stream_changes([made], Pair, partition_key="hash")).key == tricky.key


# --- invalid records --------------------------------------------------------------------------------------

SOUND = record("INSERT", None, store(Animal(zoo="secret", number=1)))


def spoil(**changes: Any) -> dict[str, Any]:
    return {name: value for name, value in {**SOUND, **changes}.items() if value is not None}


def spoil_data(**changes: Any) -> dict[str, Any]:
    return spoil(dynamodb={**SOUND["dynamodb"], **changes})


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        ("secret", "a record must be a mapping, not str"),
        (None, "a record must be a mapping, not NoneType"),
        ({}, "its eventName is None"),
        (spoil(eventName="UPSERT"), "its eventName is 'UPSERT'"),
        (spoil(eventName=["INSERT"]), "its eventName"),
        (spoil(eventSource="aws:sqs"), "its eventSource is 'aws:sqs'"),
        (spoil(dynamodb=None), "a record has no 'dynamodb'"),
        (spoil(dynamodb="secret"), "a record has no 'dynamodb'"),
        (
            spoil(eventSourceARN="arn:aws:sqs:eu-central-1:1:queue"),
            "its eventSourceARN is not the ARN of a table's stream",
        ),
        (spoil(eventSourceARN=5), "its eventSourceARN is not the ARN of a table's stream"),
        (spoil_data(Keys=None), "a record has no Keys"),
        (spoil_data(Keys={}), "its Keys are not attributes"),
        (spoil_data(NewImage="secret"), "its NewImage are not attributes"),
        (spoil_data(NewImage={"zoo": "secret"}), "its NewImage are not in DynamoDB's JSON form"),
        (
            spoil_data(NewImage={"zoo": {"S": "secret", "N": "1"}}),
            "its NewImage are not in DynamoDB's JSON form",
        ),
        (spoil_data(NewImage={"zoo": {"L": ["secret"]}}), "its NewImage are not in DynamoDB's JSON form"),
        (spoil_data(NewImage={"zoo": {"L": 5}}), "its NewImage are not in DynamoDB's JSON form"),
        (spoil_data(NewImage={"zoo": {"M": "secret"}}), "its NewImage are not in DynamoDB's JSON form"),
        (spoil_data(NewImage={"zoo": {"B": 5}}), "its NewImage are not in DynamoDB's JSON form"),
        (spoil_data(NewImage={"zoo": {"Z": "secret"}}), "its NewImage are not in DynamoDB's JSON form"),
        (spoil_data(NewImage={"zoo": {"S": 5}}), "its NewImage are not in DynamoDB's JSON form"),
    ],
    ids=range(21),
)
def test_an_invalid_record_is_refused_without_quoting_its_values(made: Any, problem: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        stream_change(made, Animal)
    assert "this is not from a DynamoDB stream" in str(caught.value)
    assert problem in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "event", [SOUND, {}, {"Records": 5}, {"Records": {}}, {"Records": "secret"}, 5, "x"], ids=range(7)
)
def test_an_event_without_a_list_of_records_is_refused(event: Any) -> None:
    with pytest.raises(InvalidRequestError, match="this is not from a DynamoDB stream"):
        stream_changes(event, Animal)


def test_optional_parts_of_a_record_can_be_missing() -> None:
    bare = {"eventName": "INSERT", "dynamodb": {"Keys": SOUND["dynamodb"]["Keys"]}}
    change = stream_change(bare, Animal)
    assert change is not None
    assert (change.sequence_number, change.at, change.event_id) == (None, None, None)


def test_the_caller_must_name_the_models() -> None:
    with pytest.raises(InvalidOptionsError, match="no models were passed"):
        stream_changes([])
    for what in ("Animal", Model, Animal.key(zoo="a", number=1)):
        with pytest.raises(InvalidOptionsError, match="is not a model"):
            stream_changes([], what)  # type: ignore[arg-type]


# --- any item, any key ------------------------------------------------------------------------------------

names = st.text(min_size=1, max_size=3)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)


@given(
    zoo=st.text(max_size=9),
    number=st.integers(-(10**20), 10**20),
    name=st.text(max_size=9),
    photo=st.binary(max_size=20),
    marks=st.sets(st.binary(min_size=1, max_size=4), max_size=3),
    diet=st.dictionaries(names, values, max_size=3),
)
def test_an_item_comes_out_of_the_stream_as_it_was_written(**given_values: Any) -> None:
    animal = Animal(**given_values)
    item = store(animal)
    for form in (record("INSERT", None, item), as_returned(record("INSERT", None, item))):
        change = stream_change(form, Animal)
        assert change is not None
        assert change.new is not None
        assert change.new.to_dict() == animal.to_dict()
        assert change.key == animal.key


class Suit(Enum):
    HEARTS = "hearts"
    SPADES = "#spades"


class Level(Enum):
    LOW = 1
    HIGH = 20


moments = st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC))
floats = st.floats(-1e100, 1e100).filter(lambda number: number == 0 or abs(number) > 1e-100)
numbers = st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9)
scalars: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (str, st.text(max_size=9)),
    (int, st.integers(-(10**30), 10**30)),
    (float, floats),
    (Decimal, numbers),
    (bool, st.booleans()),
    (bytes, st.binary(max_size=9)),
    (datetime, moments),
    (date, st.dates()),
    (UUID, st.uuids()),
    (Suit, st.sampled_from(Suit)),
    (Level, st.sampled_from(Level)),
    (Literal["a", "b#"], st.sampled_from(["a", "b#"])),
]
structured: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (list[int], st.lists(st.integers(-(2**53), 2**53), max_size=3)),
    (dict[str, str], st.dictionaries(names, st.text(max_size=5), max_size=3)),
]


def make_keyed(partition: Any, sort: Any) -> type[Model]:
    names = {"first": Key[str], "second": Key[partition], "place": SortKey[sort], "last": SortKey[str]}
    return type("Thing", (Model,), {"__annotations__": names, "__module__": __name__})


THINGS = [
    (make_keyed(kind, other), seconds, others)
    for kind, seconds in (*scalars, *structured)
    for other, others in scalars
]


@given(st.data())
def test_a_stored_key_is_read_back_to_its_components(data: st.DataObject) -> None:
    model, seconds, places = data.draw(st.sampled_from(THINGS))
    components = {
        "first": data.draw(st.text(max_size=5)),
        "second": data.draw(seconds),
        "place": data.draw(places),
        "last": data.draw(st.text(max_size=5)),
    }
    key = model.key(**components)
    partition, sort = key.encoded
    assert isinstance(partition, str)
    assert isinstance(sort, str)
    found = decode_key(model._schema, partition, sort)
    assert found == key
    assert found.components == components
    assert [type(value) for value in found.components.values()] == [type(v) for v in components.values()]


@given(
    partition=st.text(alphabet="T#%2aé\x00", max_size=9),
    sort=st.text(alphabet="p50\x00\x01\x02x", max_size=9),
)
def test_a_text_that_is_not_exactly_a_key_is_not_decoded(partition: str, sort: str) -> None:
    class T(Model):
        id: Key[str]
        n: SortKey[int]
        t: SortKey[str]

    found = decode_key(T._schema, partition, sort)
    assert found is None or found.encoded == (partition, sort)
