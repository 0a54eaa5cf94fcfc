"""Items as lines of JSON: nothing is lost, and values are plain where possible."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rig.colour import COLOURS, Colour, finish

from holdall import Database, Key, Model
from holdall.core import PutItem, Scan, encode_item
from holdall.core.measure import canonical_item
from holdall.errors import ConfigurationError, InvalidOptionsError, InvalidValueError, TableNotFoundError
from holdall.maintenance.dump.line import format_item, parse_line

NUMBERS = st.one_of(
    st.integers(-(10**37), 10**37),
    st.decimals(-1000, 1000, places=9),
    st.floats(-1e30, 1e30).filter(lambda number: number == 0 or abs(number) > 1e-30),
    st.just(Decimal("1.2345678901234567890123456789012345678")),
)
LEAVES = st.one_of(
    *(st.text(max_size=4), NUMBERS, st.booleans(), st.none(), st.binary(max_size=4)),
    *(st.sets(st.text(min_size=1, max_size=3), min_size=1), st.sets(st.integers(), min_size=1)),
    st.sets(st.binary(min_size=1, max_size=3), min_size=1),
)
NAMES = st.sampled_from(["a", "b", "$B", "$M", "$N", "$SS", "table"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2)
)
ITEMS = st.dictionaries(NAMES, VALUES, min_size=1, max_size=3)


class Town(Model, table="dumped-towns"):
    name: Key[str]
    people: int


@given(values=ITEMS)
def test_a_formatted_item_is_parsed_back(values: dict[str, Any]) -> None:
    item = canonical_item(encode_item(values))[0]
    line = format_item(item)
    assert "\n" not in line
    assert parse_line(line) == item


def test_only_values_that_json_lacks_carry_their_type() -> None:
    values = {
        "n": 42,
        "x": 1.5,
        "t": "é",
        "no": None,
        "yes": True,
        "l": [1],
        "m": {"a": 1},
        "b": b"\0",
        "s": {"u"},
    }
    assert json.loads(format_item(canonical_item(encode_item(values))[0])) == {
        **values,
        "b": {"$B": "AA=="},
        "s": {"$SS": ["u"]},
    }
    exact = Decimal("0.1234567890123456789")
    assert format_item(encode_item({"n": exact, "m": {"$B": 1}})) == (
        '{"m": {"$M": {"$B": 1}}, "n": {"$N": "0.1234567890123456789"}}'
    )


@pytest.mark.parametrize("colour", COLOURS)
def test_tables_are_dumped_and_loaded(colour: Colour) -> None:
    with Database("memory:") as db, Database("memory:", partition_key="h", sort_key="r") as other:
        db.table.create(models=[Town])
        with db.transaction() as tx:
            tx.create(Town, name="Ulm", people=3)
        for number in range(60):
            db.send(PutItem("holdall", encode_item({"pk": "p", "sk": str(number), "n": {number}})))

        async def dump() -> list[str]:
            if colour == "blocking":
                return list(db.dump_lines(models=[Town]))
            return [line async for line in db.aio.dump_lines(models=[Town])]

        async def load(lines: list[str]) -> int:
            return other.load_lines(lines) if colour == "blocking" else await other.aio.load_lines(lines)

        lines = finish(colour, dump())
        assert lines[0] == '["table", null, ["pk", "sk"]]'
        assert lines[1] == '{"n": {"$NS": ["0"]}, "pk": "p", "sk": "0"}'
        assert lines[-2:] == ['["table", "dumped-towns", ["_id"]]', '{"_id": "Ulm", "people": 3}']
        with pytest.raises(TableNotFoundError, match="there is no table dumped-towns"):
            finish(colour, load(lines[-2:]))
        other.table.create(models=[Town])
        assert finish(colour, load([*lines, ""])) == 61
        assert finish(colour, load(lines)) == 61
        assert len(other.send(Scan("holdall")).items) == 60
        assert other.send(Scan("holdall", limit=1)).items[0].keys() == {"h", "r", "n"}
        assert other.get_one(Town, name="Ulm").people == 3


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 cannot be loaded: Expecting property name"),
        ("3", "line 2 cannot be loaded: it must be an object"),
        ('["tables", null, []]', "line 2 cannot be loaded: a table begins with"),
        ('{"n": NaN}', "line 2 cannot be loaded: NaN is not a number"),
        ('{"n": {"$B": 3}}', "line 2 cannot be loaded"),
        ('{"pk": "p"}', "line 2 cannot be loaded: the key 'sk' is missing"),
        ('{"pk": 3, "sk": "s"}', "line 2 cannot be loaded: key attribute pk .* must be of type string"),
        ('{"pk": "", "sk": "s"}', "line 2 cannot be loaded: key attribute pk of table holdall is empty"),
        (f'{{"pk": "p", "sk": "s", "t": "{"x" * 410_000}"}}', "line 2 cannot be loaded: the item .* bytes"),
    ],
)
def test_a_line_that_cannot_be_loaded_is_named(line: str, message: str) -> None:
    with Database("memory:") as db:
        with pytest.raises(InvalidValueError, match=message):
            db.load_lines(['{"pk": "p", "sk": "s"}', line])
        assert not db.send(Scan("holdall")).items


def test_a_table_that_cannot_be_loaded_is_named() -> None:
    with Database("memory:") as db:
        db.table.create()
        lines = ['{"pk": "p", "sk": "s"}', "", '["table", "towns", ["_id"]]']
        with pytest.raises(TableNotFoundError, match="line 3 cannot be loaded: there is no table towns"):
            db.load_lines(lines)
        assert not db.send(Scan("holdall")).items


def test_lines_from_an_iterator_are_loaded_until_a_bad_batch() -> None:
    good = [f'{{"pk": "p", "sk": "{number}"}}' for number in range(1500)]
    with Database("memory:") as db:
        with pytest.raises(InvalidValueError, match="line 1,501 cannot be loaded"):
            db.load_lines(iter([*good, "{"]))
        assert len(db.send(Scan("holdall")).items) == 1000
        assert db.load_lines(iter(good)) == 1500
        assert len(db.send(Scan("holdall")).items) == 1500


def test_a_file_is_checked_before_it_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    good = "".join(f'{{"pk": "p", "sk": "{number}"}}\n' for number in range(1500))
    with Database("memory:") as db:
        for bad, message in (
            (b"{", "line 1,501 cannot be loaded"),
            (b"\xff", "the text after line [0-9,]+ is not UTF-8"),
        ):
            path.write_bytes(good.encode() + bad)
            with path.open(encoding="utf-8") as lines, pytest.raises(InvalidValueError, match=message):
                db.load_lines(lines)
            assert not db.send(Scan("holdall")).items
        path.write_text(f"# a comment\n{good}")
        with path.open(encoding="utf-8") as lines:
            lines.readline()
            assert db.load_lines(lines) == 1500


def test_invalid_arguments_are_refused() -> None:
    with Database("memory:") as db:
        with pytest.raises(InvalidOptionsError, match="lines must be an iterable of lines, not text"):
            db.load_lines("{}")
        with pytest.raises(InvalidOptionsError, match="tables must be a list of names, not text"):
            next(db.dump_lines(tables="towns"))
        with pytest.raises(
            ConfigurationError, match="a table with 1 key attributes, and table holdall has 2"
        ):
            db.load_lines(['["table", null, ["id"]]'])
