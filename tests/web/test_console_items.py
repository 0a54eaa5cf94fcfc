"""The console's pages of models and items: searching, showing, and changing items."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import pytest
from console_rig import Customer, Order, Reading, Station, Visitor, make_visitor, open_shop, open_visitor
from hypothesis import given, settings
from hypothesis import strategies as some
from web_rig import STORES, Counter, count_of, database

from holdall import Database, Key, Model
from holdall.core import Set, Update, UpdateItem, Value, path
from holdall.models import format_text
from holdall.web.console.value_text import read_text

ORDERS = "/models/console_rig:Order"
CUSTOMERS = "/models/console_rig:Customer"
READINGS = "/models/console_rig:Reading"
STATIONS = "/models/console_rig:Station"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with open_shop(tmp_path_factory.mktemp("shop"), items=60) as found:
        yield found


@pytest.fixture(scope="module")
def visitor(db: Database) -> Visitor:
    return open_visitor(db, read_only=False)


def find(visitor: Visitor, path: str, **values: Any) -> str:
    """Request a page with these search values; return its HTML."""
    query = urlencode({name.replace("__", "-"): value for name, value in values.items()})
    return visitor.get(f"{path}?{query}").text


def list_links(page: str) -> list[str]:
    """The query strings of the items that a page lists."""
    return [unescape(link) for link in re.findall(r'href="/console/models/[^/"]+/item\?([^"]*)"', page)]


def find_next(page: str) -> str | None:
    """The address of the next page, if any."""
    found = re.search(r'href="/console([^"]+)" rel="next"', page)
    return None if found is None else unescape(found[1])


# --- searches ---------------------------------------------------------------------------------------------------


def test_the_items_of_a_partition_are_found_page_by_page(visitor: Visitor) -> None:
    numbers: list[str] = []
    address: str | None = f"{ORDERS}?key-customer=ada&size=25"
    sizes = []
    while address is not None:
        page = visitor.get(address).text
        found = list_links(page)
        sizes.append(len(found))
        numbers += [link.rpartition("=")[2] for link in found]
        address = find_next(page)
    assert sizes == [25, 25, 10]
    assert numbers == [str(number) for number in range(60)]


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        ({"op__number": "eq", "from__number": "7"}, [7]),
        ({"op__number": "lt", "from__number": "3"}, [0, 1, 2]),
        ({"op__number": "le", "from__number": "1", "order": "reverse"}, [1, 0]),
        ({"op__number": "gt", "from__number": "57"}, [58, 59]),
        ({"op__number": "ge", "from__number": "58"}, [58, 59]),
        ({"op__number": "between", "from__number": "3", "to__number": "5"}, [3, 4, 5]),
        ({"op__number": "between", "from__number": "", "to__number": "5", "size": "100"}, [*range(60)]),
    ],
)
def test_a_search_compares_the_sort_key(visitor: Visitor, values: dict[str, str], numbers: list[int]) -> None:
    found = list_links(find(visitor, ORDERS, key__customer="ada", **values))
    assert [int(link.rpartition("=")[2]) for link in found] == numbers


def test_a_search_can_use_an_index(visitor: Visitor, db: Database) -> None:
    early = db.get_one(Order, customer="ada", number=8).placed_at
    page = find(
        visitor,
        ORDERS,
        index="by_product",
        key__product="coffee",
        op__placed_at="ge",
        from__placed_at=early.isoformat(),
    )
    assert [int(link.rpartition("=")[2]) for link in list_links(page)] == [8, 6, 4, 2, 0]
    assert ">placed_at</th>" in page, "the key of the index is among the columns"


def test_a_search_takes_keys_of_bytes_and_several_sort_components(visitor: Visitor, db: Database) -> None:
    with db.transaction() as tx:
        for month in (1, 2, 3):
            tx.create(Reading, sensor=b"\xff\x00", year=2026, month=month)
    values = {"op__year": "eq", "from__year": "2026", "op__month": "ge", "from__month": "2"}
    links = list_links(find(visitor, READINGS, key__sensor="0xff00", **values))
    assert links == [f"key-sensor=0xff00&key-year=2026&key-month={month}" for month in (2, 3)]
    assert visitor.get(f"{READINGS}/item?{links[0]}").status_code == 200


def test_a_model_in_another_table_can_be_browsed(visitor: Visitor, db: Database) -> None:
    db.create(Station, code=b"\xfe", name="North")
    (link,) = list_links(find(visitor, STATIONS, browse=1))
    page = visitor.get(f"{STATIONS}/item?{link}").text
    assert "North" in page
    assert "table console-stations" in page
    assert "/item/edit?key-code=0xfe" in page


def test_browsing_needs_no_key_and_reads_part_of_the_table(visitor: Visitor) -> None:
    page = find(visitor, ORDERS, browse=1)
    assert len(list_links(page)) == 25
    assert re.search(r"read [\d,]+ items of the table", page)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"key__customer": "ada", "op__number": "gt", "from__number": "<x>"},
            "'<x>' is not a valid value of number.",
        ),
        ({"key__customer": "ada", "op__number": "near", "from__number": "1"}, "There is no comparison near."),
        ({"key__customer": "ada", "after": "forged"}, "the token was not issued by this application"),
        ({"key__customer": "ada", "op__number": "begins", "from__number": "1"}, "number"),
        ({"key__customer": "x" * 3000}, "2,048"),
    ],
)
def test_the_error_of_an_invalid_search_is_shown_above_its_form(
    visitor: Visitor, values: dict[str, str], words: str
) -> None:
    query = urlencode({name.replace("__", "-"): value for name, value in values.items()})
    reply = visitor.get(f"{ORDERS}?{query}")
    assert reply.status_code == 422
    alert = re.search(r'role="alert">.*?<span>(.*?)</span>', reply.text, re.DOTALL)
    assert alert is not None
    assert words in unescape(alert[1])


def test_page_tokens_work_without_a_secret_of_the_database() -> None:
    with Database("memory:") as db:
        with db.bulk(Reading) as bulk:
            for month in range(30):
                bulk.put(Reading(sensor=b"x", year=1, month=month))
        address = find_next(find(open_visitor(db), READINGS, key__sensor="x"))
        assert address is not None
        assert len(list_links(open_visitor(db).get(address).text)) == 5, "another process, the same token"
        reply = open_visitor(db, token="another token of these tests").get(address)
        assert reply.status_code == 422
        assert "signed with another secret" in reply.text


def test_an_unknown_index_is_not_found(visitor: Visitor) -> None:
    assert visitor.get(f"{ORDERS}?index=by_colour").status_code == 404


def test_an_empty_form_finds_nothing(visitor: Visitor) -> None:
    assert list_links(find(visitor, ORDERS, key__customer="")) == []


def test_a_list_shows_which_items_are_hot_and_cold(visitor: Visitor, db: Database) -> None:
    cold = len(db.archive.find_archived(*db.query(Order, customer="ada")))
    assert 0 < cold < 60
    page = find(visitor, ORDERS, key__customer="ada", size=100)
    assert page.count('<span class="badge cold"') == cold
    assert page.count('class="badge warm">') - page.count("Read-write") == len(list_links(page)) - cold
    page = find(visitor, ORDERS, index="by_product", key__product="coffee", order="reverse")
    assert '<span class="badge cold"' in page
    assert ">Stored</th>" not in find(visitor, STATIONS, browse=1), "its model has no archive"


def test_an_unreadable_item_does_not_hide_the_others_in_a_list(tmp_path: Path) -> None:
    with open_shop(tmp_path, items=12) as db:
        stored = db.get_stored(Order.key(customer="ada", number=9))
        assert stored is not None
        wrong = Set(path("_archive"), Value({"M": {"f": {"S": "<b>"}}}))
        db.send(UpdateItem(stored.table, stored.key, Update((wrong,))))
        visitor = open_visitor(db)
        for query in ("key-customer=ada", "browse=1", "index=by_product&key-product=tea"):
            reply = visitor.get(f"{ORDERS}?{query}")
            numbers = {int(link.rpartition("=")[2]) for link in list_links(reply.text)}
            assert numbers >= {7, 9, 11}
            assert reply.status_code == 200
            (reason,) = re.findall(r"Cannot be read: ([^<]*)</span>", reply.text)
            assert "the pointer of an archived item cannot be read" in reason


# --- items ------------------------------------------------------------------------------------------------------


def test_an_item_shows_its_fields_and_whether_it_is_hot_or_cold(visitor: Visitor) -> None:
    hot = find(visitor, f"{ORDERS}/item", key__customer="ada", key__number=0)
    assert "hot: in the table" in hot
    assert "Zürich" in hot
    cold = find(visitor, f"{ORDERS}/item", key__customer="ada", key__number=59)
    assert "cold: in the archive" in cold
    assert "Zürich" in cold, "the content comes from the archive"
    assert "_archive" in cold, "the raw form shows the pointer"


def test_the_value_of_a_hidden_field_is_never_shown(visitor: Visitor, db: Database) -> None:
    item = db.create(Customer, email="hidden@example.com", secret="the hidden value")
    page = find(visitor, f"{CUSTOMERS}/item", key__id=item.id)
    assert "the hidden value" not in page
    assert page.count("(hidden)") == 2


def test_a_stored_value_of_the_wrong_type_is_replaced_by_the_reason(visitor: Visitor, db: Database) -> None:
    key = Reading.key(sensor=b"broken", year=1, month=1)
    db.create(Reading, sensor=b"broken", year=1, month=1)
    stored = db.get_stored(key)
    assert stored is not None
    wrong = Update((Set(path("value"), Value({"S": "<b>much</b>"})),))
    db.send(UpdateItem(stored.table, stored.key, wrong))
    where = {"key__sensor": "0x" + b"broken".hex(), "key__year": 1, "key__month": 1}
    page = find(visitor, f"{READINGS}/item", **where)
    assert "ConsoleReading.value" in page or "Reading.value" in page
    assert "<b>much</b>" not in page
    listed = find(visitor, READINGS, key__sensor="0x" + b"broken".hex())
    assert "(unreadable)" in listed


def test_a_missing_item_and_an_incomplete_address_are_errors(visitor: Visitor) -> None:
    assert visitor.get(f"{ORDERS}/item?key-customer=ada&key-number=999").status_code == 404
    assert visitor.get(f"{ORDERS}/item?key-customer=ada").status_code == 400
    assert visitor.get(f"{ORDERS}/item?key-customer=ada&key-number=x").status_code == 422


# --- changes ----------------------------------------------------------------------------------------------------


def read_form(visitor: Visitor, address: str) -> dict[str, str]:
    """The values of a form, as a browser would submit them unchanged."""
    page = visitor.get(address).text
    areas = re.findall(r'<textarea[^>]* name="([^"]+)"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)
    ticks = re.findall(r'type="checkbox" name="([^"]+)" checked', page)
    hidden = re.findall(r'type="hidden" name="(before)" value="([^"]*)"', page)
    return {name: unescape(text) for name, text in [*areas, *hidden]} | dict.fromkeys(ticks, "on")


def test_only_changed_fields_of_an_edited_item_are_written(visitor: Visitor, db: Database) -> None:
    address = f"{ORDERS}/item/edit?key-customer=ada&key-number=2"
    form = read_form(visitor, address)
    assert form["none-note"] == "on"
    assert {"customer", "number", "placed_at"} & form.keys() == set(), "neither keys nor read-only fields"
    with db.transaction() as tx:
        tx.get_one(Order, customer="ada", number=2).quantity = 8  # another program, another field
    note = "<script>alert(1)</script>\nsecond line"
    form |= {"price": "12.5", "note": note, "address": '{"city": "Basel"}', "tags": '["a", "b"]'}
    reply = visitor.post(address, form)
    assert reply.status_code == 303
    order = db.get_one(Order, customer="ada", number=2)
    assert (order.price, order.note, order.quantity) == (Decimal("12.5"), note, 8)
    assert (order.address, order.tags) == ({"city": "Basel"}, {"a", "b"})
    page = visitor.get(reply.headers["location"].removeprefix("/console")).text
    assert "Saved: price, note, tags, address." in page
    forged = reply.headers["location"].replace("Saved", "Hacked").removeprefix("/console")
    assert "Hacked" not in visitor.get(forged).text
    form = read_form(visitor, address)
    assert visitor.post(address, form | {"none-note": "on"}).status_code == 303
    assert db.get_one(Order, customer="ada", number=2).note is None


def test_a_change_is_refused_if_another_program_changed_the_field_first(
    visitor: Visitor, db: Database
) -> None:
    address = f"{ORDERS}/item/edit?key-customer=ada&key-number=4"
    form = read_form(visitor, address)
    with db.transaction() as tx:
        tx.get_one(Order, customer="ada", number=4).quantity = 8
    reply = visitor.post(address, form | {"quantity": "9"})
    assert reply.status_code == 422
    assert "Another program changed quantity meanwhile" in reply.text
    assert db.get_one(Order, customer="ada", number=4).quantity == 8


@pytest.mark.parametrize(
    "wrong",
    [
        {"quantity": "many"},
        {"address": "[1]"},
        {"before": "x"},
        {"before": '{"number": "1"}'},
        {"before": "[]"},
    ],
)
def test_an_invalid_value_is_rejected_and_the_form_keeps_the_input(
    visitor: Visitor, db: Database, wrong: dict[str, str]
) -> None:
    address = f"{ORDERS}/item/edit?key-customer=ada&key-number=5"
    form = {**read_form(visitor, address), "note": "typed <i>", **wrong}
    reply = visitor.post(address, form)
    assert reply.status_code in (400, 422)
    assert "before" in wrong or "typed &lt;i&gt;" in reply.text
    assert db.get_one(Order, customer="ada", number=5).note is None


def test_line_ends_normalized_by_the_browser_are_not_a_change(visitor: Visitor, db: Database) -> None:
    item = db.create(Customer, email="lines@example.com", name="a\r\nb\rc")
    address = f"{CUSTOMERS}/item/edit?key-id={item.id}"
    form = read_form(visitor, address)
    form["name"] = "a\r\nb\r\nc"
    reply = visitor.post(address, form)
    assert "Nothing+was+changed" in reply.headers["location"]
    assert db.get_one(Customer, item.id).name == "a\r\nb\rc"


def test_an_item_is_deleted_after_a_confirmation_with_its_archived_copy(
    visitor: Visitor, db: Database
) -> None:
    address = f"{ORDERS}/item/delete?key-customer=ada&key-number=58"
    page = visitor.get(address).text
    assert "with its copy in the archive" in page
    assert db.get(Order, customer="ada", number=58) is not None
    assert visitor.post(address, csrf="x").status_code == 403
    assert visitor.post(address).status_code == 303
    assert db.get(Order, customer="ada", number=58) is None
    assert visitor.post(address).status_code == 404


def test_a_read_only_console_changes_nothing(db: Database) -> None:
    reader = open_visitor(db)
    key = "key-customer=ada&key-number=6"
    page = reader.get(f"{ORDERS}/item?{key}").text
    assert "item/edit" not in page
    assert "item/delete" not in page
    for action in ("edit", "delete"):
        address = f"{ORDERS}/item/{action}?{key}"
        assert reader.get(address).status_code == 403
        reply = reader.post(address, {"before": '{"quantity": "1"}', "quantity": "5"})
        assert reply.status_code == 403
        assert "This console is read-only" in reply.text
    assert db.get_one(Order, customer="ada", number=6).quantity == 1


def test_items_and_files_need_a_session(db: Database) -> None:
    stranger = make_visitor(db)
    for address in (ORDERS, f"{ORDERS}/item?key-customer=ada&key-number=1", "/files/x", "/files/x/thumbnail"):
        assert stranger.get(address).headers["location"] == "/console/sign-in"


# --- files ------------------------------------------------------------------------------------------------------

PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000 1f15c489"
    "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082".replace(" ", "")
)


def test_files_are_sent_without_running_what_they_contain(db: Database, visitor: Visitor) -> None:
    name = 'a"\r\nX-Evil: 1\r\n\r\n<script>alert(1)</script>‮gnp.html'
    with db.transaction() as tx:
        item = tx.create(Customer, email="files@example.com")
        item.files.attach(
            b"<script>alert(1)</script>", filename=name, content_type="text/html", identify=False
        )
        item.files.attach(PICTURE, filename="dot.png")
    found = db.get_one(Customer, item.id, include=["files"])
    html, picture = sorted(
        (each.blob for each in found.files), key=lambda blob: blob.content_type == "image/png"
    )
    page = visitor.get(f"{CUSTOMERS}/item?key-id={item.id}").text
    assert "<script>alert" not in page
    assert f"/console/files/{picture.id}/thumbnail" in page
    assert f"/console/files/{html.id}/thumbnail" not in page
    for address in (f"/files/{html.id}", f"/files/{html.id}?view=1"):
        reply = visitor.get(address)
        assert reply.content == b"<script>alert(1)</script>"
        assert reply.headers["content-disposition"].startswith("attachment;")
        assert "sandbox" in reply.headers["content-security-policy"]
        assert reply.headers["cache-control"] == "no-store"
        assert "x-evil" not in reply.headers
    assert visitor.get(f"/files/{html.id}/thumbnail").status_code == 404
    assert visitor.get("/files/nothing").status_code == 404
    reader = open_visitor(db)
    assert reader.get(f"/files/{picture.id}/thumbnail").content == PICTURE, (
        "a read-only console sends the picture itself"
    )
    assert visitor.get(f"/files/{picture.id}/thumbnail").headers["content-type"] == "image/png"


# --- texts ------------------------------------------------------------------------------------------------------


class Colour(Enum):
    RED = "red"
    BLUE = 2


TYPES: dict[Any, some.SearchStrategy[Any]] = {
    str: some.text(),
    int: some.integers(-(10**30), 10**30),
    bool: some.booleans(),
    bytes: some.binary(),
    UUID: some.uuids(),
    Decimal: some.decimals(-(10**10), 10**10, places=3),
    float: some.floats(-1e9, 1e9, allow_nan=False),
    date: some.dates(),
    datetime: some.datetimes(timezones=some.just(UTC)),
    time: some.times(),
    Colour: some.sampled_from(Colour),
    Any: some.text() | some.integers(-100, 100) | some.lists(some.text(max_size=3), max_size=2),
    set: some.sets(some.text(max_size=3), max_size=4),
}


class Everything(Model, name="ConsoleEverything"):
    id: Key[str]
    a_str: str
    a_int: int
    a_bool: bool
    a_bytes: bytes
    a_UUID: UUID  # noqa: N815
    a_Decimal: Decimal  # noqa: N815
    a_float: float
    a_date: date
    a_datetime: datetime
    a_time: time
    a_Colour: Colour  # noqa: N815
    a_Any: Any  # noqa: N815
    a_set: set[str]


@pytest.mark.parametrize("kind", TYPES)
def test_every_value_survives_formatting_as_text(kind: Any) -> None:
    field = getattr(Everything, f"a_{kind.__name__}")

    @settings(max_examples=25)
    @given(TYPES[kind])
    def check(value: Any) -> None:
        assert read_text(field, format_text(field, value)) == value

    check()


# --- stores -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", STORES)
def test_the_console_works_on_each_store(store: str, tmp_path: Path) -> None:
    counters = "/models/web_rig:Counter"
    with database(store, tmp_path) as db:
        visitor = open_visitor(db, models=[Counter], read_only=False)
        assert list_links(find(visitor, counters, key__name="c")) == ["key-name=c"]
        assert list_links(find(visitor, counters, browse=1)) == ["key-name=c"]
        address = f"{counters}/item/edit?key-name=c"
        assert visitor.post(address, read_form(visitor, address) | {"n": "7"}).status_code == 303
        assert count_of(db) == 7
        assert visitor.post(f"{counters}/item/delete?key-name=c").status_code == 303
        assert db.get(Counter, "c") is None
