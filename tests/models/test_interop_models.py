"""Our models with their own tables, and the JavaScript library @pocketgems/dynamodb on the same tables.

The tests run version 0.2.15, the one in the npm registry. It writes what the library has written since June 2022: a key
of one number as a number, and all other keys as text, with the members of objects sorted. Earlier versions wrote a
single number as text too; this version still does for a class called ActionHistory, so the tests have such a class.
Earlier versions also wrote keys of objects with unsorted members; this version cannot write those.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interop_javascript import PREFIX, REGION, Javascript, JavascriptError, javascript
from interop_models import (
    EXAMPLES,
    Currency,
    Drawing,
    Everything,
    Example,
    Guest,
    Inventory,
    Message,
    Mixture,
    Payment,
    RaceResult,
    Reading,
    Session,
    Shape,
    Ticket,
    Weapon,
    in_javascript,
    in_python,
)

from holdall import Database, Transaction
from holdall.core import GetItem, PutItem
from holdall.errors import (
    ContentionError,
    InvalidFieldError,
    InvalidModelUpdateError,
    ModelAlreadyExistsError,
    TransactionFailedError,
)

each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(dict(example.raw_key)))


@pytest.fixture(scope="module")
def js() -> Javascript:
    return javascript()


@pytest.fixture(scope="module")
def db(js: Javascript) -> Iterator[Database]:
    with Database(
        f"dynamodb://unused?endpoint={js.url}&region={REGION}",
        table_prefix=PREFIX,
        credentials=lambda: ("test", "test", None, None),
    ) as database:
        yield database


PLAIN = {
    **{"text": "", "whole": 1, "real": 0.5, "flag": True, "names": [], "free": []},
    **{"shape": {"arr": ["p"]}, "loose": {}, "scores": {}},
}
"""Values for the required fields of Everything."""


def raw(db: Database, table: str, key: dict[str, Any]) -> Any:
    """An item exactly as it is stored."""
    return db.send(GetItem(PREFIX + table, key)).item


def same(left: object, right: object) -> bool:
    """Whether two values are equal and of the same types: True is not 1, and 1 is not 1.0."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def create(db: Database, example: Example) -> None:
    with db.transaction() as tx:
        tx.create(example.model, **in_python(example.all))


def read(db: Database, example: Example) -> dict[str, Any] | None:
    return in_javascript(db.get(example.model, **in_python(example.key)))


# --- items ----------------------------------------------------------------------------------------------


@each_example
def test_both_store_an_item_in_the_same_form(js: Javascript, db: Database, example: Example) -> None:
    js("delete", model=example.name, key=example.key)
    js("create", model=example.name, values=example.all)
    theirs = raw(db, example.table, example.raw_key)
    js("delete", model=example.name, key=example.key)
    create(db, example)
    ours = raw(db, example.table, example.raw_key)
    assert theirs == ours == example.raw


@each_example
def test_we_read_and_change_what_javascript_created(js: Javascript, db: Database, example: Example) -> None:
    js("delete", model=example.name, key=example.key)
    js("create", model=example.name, values=example.all)
    assert same(read(db, example), example.all)
    with db.transaction() as tx:
        item = tx.get_one(example.model, **in_python(example.key))
        for name, value in in_python(example.changes).items():
            assert getattr(item, name) != value
            setattr(item, name, value)
    assert js("get", model=example.name, key=example.key) == example.changed
    js("delete", model=example.name, key=example.key)
    assert read(db, example) is None


@each_example
def test_javascript_reads_and_changes_what_we_created(js: Javascript, db: Database, example: Example) -> None:
    js("delete", model=example.name, key=example.key)
    create(db, example)
    assert js("get", model=example.name, key=example.key) == example.all
    js("change", model=example.name, key=example.key, read=[*example.changes], set=example.changes)
    assert same(read(db, example), example.changed)
    with db.transaction() as tx:
        tx.delete(example.model.key(**in_python(example.key)))
    assert js("get", model=example.name, key=example.key) is None


def test_defaults_are_stored_by_both(js: Javascript, db: Database) -> None:
    js("create", model="Guest", values={"email": "default-theirs"})
    with db.transaction() as tx:
        tx.create(Guest, email="default-ours")
    for email in ("default-theirs", "default-ours"):
        assert raw(db, "Guest", {"_id": {"S": email}}) == {"_id": {"S": email}, "visits": {"N": "0"}}


def test_a_default_shows_on_an_old_row_without_being_written(js: Javascript, db: Database) -> None:
    key = {"_id": {"S": "old-row"}}
    db.send(PutItem(f"{PREFIX}Guest", key))
    with db.transaction() as tx:
        guest = tx.get_one(Guest, "old-row")
        assert guest.visits == 0
        guest.note = "seen"
    assert raw(db, "Guest", key) == {**key, "note": {"S": "seen"}}
    assert js("get", model="Guest", key={"email": "old-row"}) == {
        "email": "old-row",
        "visits": 0,
        "note": "seen",
    }


def test_attributes_that_only_one_side_knows_survive_changes_by_the_other(
    js: Javascript, db: Database
) -> None:
    item: dict[str, Any] = {"_id": {"N": "77"}, "holder": {"S": "a"}, "later": {"SS": ["x"]}}
    db.send(PutItem(f"{PREFIX}Ticket", item))
    with db.transaction() as tx:
        tx.get_one(Ticket, 77).holder = "b"
    js("change", model="Ticket", key={"number": 77}, read=["holder"], set={"holder": "c"})
    assert raw(db, "Ticket", {"_id": {"N": "77"}}) == {**item, "holder": {"S": "c"}}


def test_attributes_of_indexes_survive_our_changes_of_other_fields(js: Javascript, db: Database) -> None:
    key = {"player": "p", "admin": "b"}
    values = {"payout": 0, "status": True, "method": "card", "tags": [1, "a"]}
    js("create", model="Payment", values={**key, **values})
    before = raw(db, "Payment", {"_id": {"S": "b\0p"}})
    assert {name: value for name, value in before.items() if name.startswith("_c_")} == {
        "_c_player": {"S": "p"},
        "_c_admin_payout": {"S": "b\x000"},
        "_c_admin": {"S": "b"},
        "_c_status": {"S": "true"},
        "_c_tags": {"S": '[1,"a"]'},
    }
    with db.transaction() as tx:
        payment = tx.get_one(Payment, **key)
        assert same(in_javascript(payment), {**key, **values})
        payment.method = "cash"
    assert raw(db, "Payment", {"_id": {"S": "b\0p"}}) == {**before, "method": {"S": "cash"}}
    found = js(
        "query", model="Payment", options={"index": "byAdmin"}, where={"admin": ["b"], "payout": ["<", 1]}
    )
    assert found == [{**key, **values, "method": "cash"}]


def test_members_that_are_none_are_left_out_as_javascript_does(js: Javascript, db: Database) -> None:
    key = {"id": "11111111-1111-4111-8111-111111111111"}
    js("create", model="Everything", values={**key, **PLAIN})
    with db.transaction() as tx:
        drawing = tx.get_one(Drawing, **key)
        assert drawing.shape == Shape(arr=["p"])
        drawing.shape = Shape(arr=["q"])
    assert js("get", model="Everything", key=key)["shape"] == {"arr": ["q"]}
    js("change", model="Everything", key=key, read=["shape"], set={"shape": {"arr": [], "depth": 1}})
    assert db.get_one(Drawing, **key).shape == Shape(arr=[], depth=1)


def test_numbers_that_javascript_would_round_are_refused(js: Javascript, db: Database) -> None:
    key = {"id": "22222222-2222-4222-8222-222222222222"}
    js("create", model="Everything", values={**key, **PLAIN})
    for name, value in {"whole": 2**53 + 1, "real": Decimal("0.1234567890123456789")}.items():
        with pytest.raises(InvalidFieldError, match=f"Drawing.{name}.*JavaScript"), db.transaction() as tx:
            setattr(tx.get_one(Drawing, **key), name, value)
    assert js("get", model="Everything", key=key)["whole"] == 1


def test_large_numbers_from_javascript_are_read_and_do_not_prevent_changes(
    js: Javascript, db: Database
) -> None:
    key = {"id": "33333333-3333-4333-8333-333333333333"}
    large = {"real": 1e23, "whole": 2**60, "free": [1e22, 2.0**60], "loose": {"x": 1e30}}
    js("create", model="Everything", values={**key, **PLAIN, **large})
    with db.transaction() as tx:
        item = tx.get_one(Everything, **key)
        assert item.real == 1e23
        assert [float(number) for number in item.free] == [1e22, 2.0**60]
        assert float(item.loose["x"]) == 1e30
        item.text = "changed"
    assert js("get", model="Everything", key=key)["text"] == "changed"


# --- blind writes and increments ------------------------------------------------------------------------


def test_each_side_can_update_without_reading_if_it_knows_what_the_other_wrote(
    js: Javascript, db: Database
) -> None:
    key = {"raceID": 7, "runnerName": "Bo"}
    ours = in_python(key)
    js("create", model="RaceResult", values={**key, "seconds": 10.5})
    with db.transaction() as tx:
        tx.update(RaceResult, {**ours, "seconds": 10.5, "place": None}, {"seconds": 9.75, "place": 2})
    js("update", model="RaceResult", expected={**key, "seconds": 9.75, "place": 2}, changes={"place": None})
    assert raw(db, "RaceResult", {"_id": {"S": "7\0Bo"}}) == {"_id": {"S": "7\0Bo"}, "seconds": {"N": "9.75"}}
    with pytest.raises(InvalidModelUpdateError), db.transaction() as tx:
        tx.update(RaceResult, {**ours, "place": 2}, {"place": 3})
    with pytest.raises(JavascriptError, match="InvalidModelUpdateError"):
        js("update", model="RaceResult", expected={**key, "seconds": 10.5}, changes={"seconds": 1})


def test_create_or_put_by_either_side_replaces_the_whole_item_of_the_other(
    js: Javascript, db: Database
) -> None:
    key = {"_id": {"S": "put"}}
    js("create", model="Guest", values={"email": "put", "visits": 1, "note": "theirs"})
    with db.transaction() as tx:
        tx.create_or_put(Guest, {"email": "put", "visits": 1}, {"visits": 2})
    assert raw(db, "Guest", key) == {**key, "visits": {"N": "2"}}
    js(
        "createOrPut",
        model="Guest",
        expected={"email": "put", "visits": 2},
        values={"visits": 3, "note": "n"},
    )
    assert raw(db, "Guest", key) == {**key, "visits": {"N": "3"}, "note": {"S": "n"}}
    with pytest.raises(TransactionFailedError), db.transaction() as tx:
        tx.create_or_put(Guest, {"email": "put", "visits": 2}, {"visits": 4})
    with pytest.raises(JavascriptError, match="Too much contention"):
        js("createOrPut", model="Guest", expected={"email": "put", "visits": 2}, values={"visits": 4})


def test_increments_of_both_sides_add_up(js: Javascript, db: Database) -> None:
    create(db, Example(Guest, {"email": "sum"}, {"visits": 1}, {}))
    js("open", transaction="sum", items=[{"model": "Guest", "key": {"email": "sum"}}])
    with db.transaction() as tx:
        tx.get_one(Guest, "sum").field("visits").increment_by(10)
    js("commit", transaction="sum", changes=[{"increment": {"visits": 100}}])
    assert raw(db, "Guest", {"_id": {"S": "sum"}}) == {"_id": {"S": "sum"}, "visits": {"N": "111"}}


# --- locking --------------------------------------------------------------------------------------------


def attempt(db: Database, body: Callable[[Transaction], None]) -> None:
    """Run one attempt of a transaction."""
    with db.transaction() as tx:
        body(tx)


def find_refusal(db: Database, body: Callable[[Transaction], None]) -> str:
    """Run one attempt, which must not commit, and return the reason."""
    with pytest.raises(TransactionFailedError) as caught:
        attempt(db, body)
    assert isinstance(caught.value.__cause__, ContentionError)
    return str(caught.value.__cause__)


def guest(email: str) -> dict[str, Any]:
    return {"model": "Guest", "key": {"email": email}}


def test_our_transaction_fails_if_javascript_changes_the_field_first(js: Javascript, db: Database) -> None:
    js("create", model="Guest", values={"email": "race-1", "visits": 1})

    def ours(tx: Transaction) -> None:
        tx.get_one(Guest, "race-1").visits += 10
        js("change", **guest("race-1"), read=["visits"], set={"visits": 2})

    assert "visits is 2" in find_refusal(db, ours)
    assert js("get", **guest("race-1"))["visits"] == 2


def test_a_transaction_in_javascript_fails_if_we_change_the_field_first(js: Javascript, db: Database) -> None:
    js("create", model="Guest", values={"email": "race-2", "visits": 1})
    js("open", transaction="race-2", items=[guest("race-2")])
    with db.transaction() as tx:
        tx.get_one(Guest, "race-2").visits += 10
    with pytest.raises(JavascriptError, match="Too much contention"):
        js("commit", transaction="race-2", changes=[{"read": ["visits"], "set": {"visits": 2}}])
    assert js("get", **guest("race-2"))["visits"] == 11


def test_our_retry_builds_on_what_javascript_wrote(js: Javascript, db: Database) -> None:
    js("create", model="Guest", values={"email": "race-3", "visits": 1})
    seen = []

    def visit(tx: Transaction) -> None:
        guest = tx.get_one(Guest, "race-3")
        seen.append(guest.visits)
        if len(seen) == 1:
            js("change", model="Guest", key={"email": "race-3"}, read=["visits"], set={"visits": 5})
        guest.visits += 1

    db.run(visit, initial_backoff=0)
    assert seen == [1, 5]
    assert js("get", **guest("race-3"))["visits"] == 6


@pytest.mark.parametrize("ours_first", [True, False])
def test_only_one_of_two_transactions_commits_if_each_reads_what_the_other_writes(
    js: Javascript, db: Database, ours_first: bool
) -> None:
    one, two = f"skew-1-{ours_first}", f"skew-2-{ours_first}"
    for email in (one, two):
        js("create", model="Guest", values={"email": email, "visits": 1})
    js("open", transaction="skew", items=[guest(one), guest(two)])
    theirs = {"transaction": "skew", "changes": [{"read": ["visits"]}, {"set": {"visits": 0}}]}

    def ours(tx: Transaction) -> None:
        if tx.get_one(Guest, two).visits == 1:
            tx.get_one(Guest, one).visits = 0
        if not ours_first:
            js("commit", **theirs)

    if ours_first:
        attempt(db, ours)
        with pytest.raises(JavascriptError, match="Too much contention"):
            js("commit", **theirs)
    else:
        assert "visits is 0" in find_refusal(db, ours)
    assert sum(js("get", **guest(email))["visits"] for email in (one, two)) == 1


def test_changes_of_different_fields_do_not_disturb_each_other(js: Javascript, db: Database) -> None:
    js("create", model="Guest", values={"email": "apart", "visits": 1})
    js("open", transaction="apart", items=[guest("apart")])
    with db.transaction() as tx:
        tx.get_one(Guest, "apart").note = "ours"
    js("commit", transaction="apart", changes=[{"read": ["visits"], "set": {"visits": 2}}])
    assert js("get", **guest("apart")) == {"email": "apart", "visits": 2, "note": "ours"}


def test_neither_side_can_change_an_item_that_the_other_deleted(js: Javascript, db: Database) -> None:
    for email in ("gone-1", "gone-2"):
        js("create", model="Guest", values={"email": email})

    def ours(tx: Transaction) -> None:
        tx.get_one(Guest, "gone-1").note = "late"
        js("delete", **guest("gone-1"))

    assert "does not exist" in find_refusal(db, ours)
    js("open", transaction="gone", items=[guest("gone-2")])
    with db.transaction() as tx:
        tx.delete(tx.get_one(Guest, "gone-2"))
    with pytest.raises(JavascriptError, match="Too much contention"):
        js("commit", transaction="gone", changes=[{"set": {"note": "late"}}])
    assert js("getAll", items=[guest("gone-1"), guest("gone-2")]) == [None, None]


def test_neither_side_can_delete_an_item_that_the_other_changed_meanwhile(
    js: Javascript, db: Database
) -> None:
    js("create", model="Guest", values={"email": "kept", "visits": 1})

    def ours(tx: Transaction) -> None:
        guest = tx.get_one(Guest, "kept")
        if guest.visits == 1:
            tx.delete(guest)
        js("change", model="Guest", key={"email": "kept"}, read=["visits"], set={"visits": 2})

    assert "visits is 2" in find_refusal(db, ours)
    js("open", transaction="kept", items=[guest("kept")])
    with db.transaction() as tx:
        tx.get_one(Guest, "kept").visits = 3
    with pytest.raises(JavascriptError, match="InvalidModelDeletionError"):
        js("commit", transaction="kept", changes=[{"read": ["visits"], "remove": True}])
    assert db.get_one(Guest, "kept").visits == 3


def test_neither_side_can_create_an_item_that_the_other_created(js: Javascript, db: Database) -> None:
    js("create", model="Guest", values={"email": "once-1"})
    with pytest.raises(ModelAlreadyExistsError), db.transaction() as tx:
        tx.create(Guest, email="once-1")
    with db.transaction() as tx:
        tx.create(Guest, email="once-2")
    with pytest.raises(JavascriptError, match="ModelAlreadyExistsError"):
        js("create", model="Guest", values={"email": "once-2"})


def test_a_commit_fails_if_an_item_read_as_missing_exists_by_then(js: Javascript, db: Database) -> None:
    def ours(tx: Transaction) -> None:
        assert tx.get(Guest, "missing-1") is None
        tx.create(Guest, email="because-missing-1")
        js("create", model="Guest", values={"email": "missing-1"})

    assert "exists now" in find_refusal(db, ours)
    assert js("get", **guest("because-missing-1")) is None
    js("open", transaction="missing", items=[guest("missing-2")])
    with db.transaction() as tx:
        tx.create(Guest, email="missing-2")
    with pytest.raises(JavascriptError):  # a TypeError: the library finds no item to blame
        js(
            "commit",
            transaction="missing",
            create=[{"model": "Guest", "values": {"email": "because-missing-2"}}],
        )
    assert js("get", **guest("because-missing-2")) is None


# --- several models in one table, and queries -----------------------------------------------------------


def test_both_sides_distinguish_overlapping_models_by_their_sort_keys(js: Javascript, db: Database) -> None:
    js("create", model="Currency", values={"userID": "both", "items": {"usd": 1}})
    with db.transaction() as tx:
        tx.create(Weapon, user_id="both", items={"ax": {}}, weapon_skill_level={"ax": 1})
        tx.create(Inventory, user_id="both", type_key="other")
    found = list(db.query(Inventory, user_id="both"))
    assert [type(item) for item in found] == [Currency, Inventory, Weapon]
    money, other, weapon = map(in_javascript, found)
    assert js("query", model="Inventory", where={"userID": ["both"]}) == [
        money,
        other,
        {name: value for name, value in (weapon or {}).items() if name != "weaponSkillLevel"},
    ]
    assert js("get", model="Weapon", key={"userID": "both", "typeKey": "weapon"}) == weapon
    assert db.get_one(Currency, user_id="both").items == {"usd": 1}


def test_both_return_items_in_the_order_of_a_numeric_sort_key(js: Javascript, db: Database) -> None:
    js(
        "createAll",
        items=[{"model": "Reading", "values": {"sensor": "s", "epoch": e, "celsius": 0}} for e in (10, 9)],
    )
    with db.transaction() as tx:
        for epoch in (-1, 100):
            tx.create(Reading, sensor="s", epoch=epoch, celsius=0)
    theirs = [item["epoch"] for item in js("query", model="Reading", where={"sensor": ["s"]})]
    assert theirs == [reading.epoch for reading in db.query(Reading, sensor="s")] == [-1, 9, 10, 100]


def test_both_return_items_in_the_order_of_a_compound_sort_keys_text(js: Javascript, db: Database) -> None:
    for at in (9, 10):
        js("create", model="Message", values={"room": "q", "sender": "a", "at": at, "text": ""})
    with db.transaction() as tx:
        tx.create(Message, room="q", sender="b", at=9, text="")
    theirs = [(item["at"], item["sender"]) for item in js("query", model="Message", where={"room": ["q"]})]
    ours = [(message.at, message.sender) for message in db.query(Message, room="q")]
    assert theirs == ours == [(10, "a"), (9, "a"), (9, "b")]


# --- expiry ---------------------------------------------------------------------------------------------


def test_items_expire_for_both_and_either_can_then_create_them_again(js: Javascript, db: Database) -> None:
    past, future = int(time.time()) - 60, int(time.time()) + 3600
    js("create", model="Session", values={"token": "theirs", "user": "a", "expires": past})
    with db.transaction() as tx:
        tx.create(Session, token="ours", user="a", expires=past)
        tx.create(Session, token="alive", user="a", expires=future)
    for token in ("theirs", "ours"):
        assert db.get(Session, token) is None
        assert js("get", model="Session", key={"token": token}) is None
    assert js("get", model="Session", key={"token": "alive"}) == in_javascript(db.get_one(Session, "alive"))
    with db.transaction() as tx:
        tx.create(Session, token="theirs", user="b")
    js("create", model="Session", values={"token": "ours", "user": "b", "expires": future})
    assert js("get", model="Session", key={"token": "theirs"}) == {"token": "theirs", "user": "b"}
    assert db.get_one(Session, "ours").user == "b"


# --- all values -----------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=8)
key_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
whole = st.integers(-(2**53) + 1, 2**53 - 1)
large = st.floats(-1e125, 1e125).filter(lambda number: number == 0 or abs(number) > 1e-130)
real = large.filter(lambda number: abs(number) < 2**53)
json_values = st.recursive(
    st.none() | st.booleans() | whole | real | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
mixtures = st.fixed_dictionaries(
    {
        "Z": st.booleans(),
        "a": key_texts,
        "a2": st.lists(json_values, max_size=3),
        "b": large,
        "é": key_texts,
        "step": whole,
        "extra": st.dictionaries(names, json_values, max_size=3),
    }
)
everything = st.fixed_dictionaries(
    {
        "text": texts,
        "whole": whole,
        "real": real,
        "flag": st.booleans(),
        "names": st.lists(texts, max_size=3),
        "free": st.lists(json_values, max_size=3),
        "shape": st.fixed_dictionaries({"arr": st.lists(texts, max_size=2)}, optional={"depth": whole}),
        "loose": st.dictionaries(names, json_values, max_size=3),
        "scores": st.dictionaries(names, whole, max_size=3),
    },
    optional={
        "maybeText": texts,
        "maybeWhole": whole,
        "maybeNames": st.lists(texts, max_size=2),
        "level": whole,
    },
)


@given(key=mixtures)
def test_both_encode_every_key_alike(js: Javascript, key: dict[str, Any]) -> None:
    theirs = js("encode", model="Mixture", key=key)
    assert Mixture.key(**key).encoded == (theirs["_id"], theirs["_sk"])


@settings(max_examples=settings().max_examples if settings().derandomize else 200)
@given(key=mixtures)
def test_we_find_and_read_every_item_that_javascript_wrote(
    js: Javascript, db: Database, key: dict[str, Any]
) -> None:
    js("delete", model="Mixture", key=key)
    js("create", model="Mixture", values=key)
    assert in_javascript(db.get_one(Mixture, **key)) == key


@settings(max_examples=settings().max_examples if settings().derandomize else 200)
@given(values=everything, identifier=st.uuids())
def test_both_store_and_read_all_values_alike(
    js: Javascript, db: Database, values: dict[str, Any], identifier: Any
) -> None:
    key = {"id": str(identifier)}
    js("delete", model="Everything", key=key)
    js("create", model="Everything", values={**key, **values})
    stored = raw(db, "Everything", {"_id": {"S": key["id"]}})
    theirs = in_javascript(db.get(Everything, key["id"]))
    js("delete", model="Everything", key=key)
    with db.transaction() as tx:
        tx.create(Everything, **in_python({**key, **values}))
    assert raw(db, "Everything", {"_id": {"S": key["id"]}}) == stored
    assert js("get", model="Everything", key=key) == theirs
