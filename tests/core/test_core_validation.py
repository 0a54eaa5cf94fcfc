"""Items, keys and writes: DynamoDB's rules, checked before a request is sent."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from holdall.core.expressions import (
    Add,
    Exists,
    KeyCondition,
    Path,
    Remove,
    Set,
    Update,
    UpdateAction,
    path,
    value,
)
from holdall.core.measure import item_size
from holdall.core.requests import (
    AddIndex,
    BatchGet,
    BatchWrite,
    ConditionCheck,
    CreateTable,
    DeleteItem,
    DeleteTable,
    DescribeTable,
    DescribeTtl,
    GetItem,
    PutItem,
    Query,
    Request,
    Scan,
    SetTtl,
    TransactAction,
    TransactGet,
    TransactWrite,
    UpdateItem,
)
from holdall.core.rules.key import check_item, check_item_size, check_key
from holdall.core.rules.validation import check, check_size_read
from holdall.core.schema import IndexSchema, KeyAttribute, TableSchema
from holdall.core.values import encode_item
from holdall.errors import (
    BatchTooLargeError,
    ConfigurationError,
    DuplicateItemError,
    IndexExistsError,
    InvalidExpressionError,
    InvalidKeyError,
    InvalidRequestError,
    InvalidValueError,
    ItemTooLargeError,
    TableNotFoundError,
    TransactionTooLarge,
)

SIMPLE = TableSchema("simple", KeyAttribute("id"))
NUMBERED = TableSchema("numbered", KeyAttribute("id", "N"), KeyAttribute("at", "N"))
BINARY = TableSchema("binary", KeyAttribute("id", "B"), KeyAttribute("part", "B"))
INDEXED = TableSchema(
    "indexed",
    KeyAttribute("id"),
    KeyAttribute("sort"),
    (IndexSchema("by_rank", KeyAttribute("group"), KeyAttribute("rank", "N")),),
)
SCHEMAS = {schema.name: schema for schema in (SIMPLE, NUMBERED, BINARY, INDEXED)}


def _schema_of(table: str) -> TableSchema:
    if table not in SCHEMAS:
        raise TableNotFoundError(f"no table {table}")
    return SCHEMAS[table]


def _item(**values: object) -> dict[str, dict[str, Any]]:
    return encode_item(values)


# --- keys -----------------------------------------------------------------------------------------------


def test_check_key_returns_the_key_in_its_stored_form() -> None:
    assert check_key(SIMPLE, {"id": {"S": "x"}}) == {"id": {"S": "x"}}
    assert check_key(NUMBERED, {"id": {"N": "1.0"}, "at": {"N": "-0"}}) == {
        "id": {"N": "1"},
        "at": {"N": "0"},
    }
    assert check_key(BINARY, {"id": {"B": "QR=="}, "part": {"B": "/w=="}})["id"] == {"B": "QQ=="}


@pytest.mark.parametrize(
    ("schema", "key", "message"),
    [
        (SIMPLE, {}, "id of table simple is missing"),
        (SIMPLE, _item(other="x"), "id of table simple is missing"),
        (INDEXED, _item(id="x"), "sort of table indexed is missing"),
        (INDEXED, _item(sort="x"), "id of table indexed is missing"),
        (INDEXED, _item(id="x", other="y"), "sort of table indexed is missing"),
        (SIMPLE, _item(id="x", other="y"), "the key of table simple does not include other"),
        (INDEXED, _item(id="x", sort="y", b="z", a="z"), "the key of table indexed does not include a, b"),
        (SIMPLE, _item(id=1), r"must be of type string \(S\), not N"),
        (SIMPLE, _item(id=None), r"must be of type string \(S\), not NULL"),
        (SIMPLE, _item(id=["x"]), r"must be of type string \(S\), not L"),
        (NUMBERED, _item(id="1", at=1), r"must be of type number \(N\), not S"),
        (BINARY, _item(id=b"x", part="y"), r"must be of type binary \(B\), not S"),
        (SIMPLE, _item(id=""), "id of table simple is empty"),
        (INDEXED, _item(id="x", sort=""), "sort of table indexed is empty"),
        (BINARY, _item(id=b"x", part=b""), "part of table binary is empty"),
    ],
)
def test_a_wrong_key_is_refused(schema: TableSchema, key: Any, message: str) -> None:
    with pytest.raises(InvalidKeyError, match=message):
        check_key(schema, key)


def test_the_hint_names_the_key_of_the_table() -> None:
    with pytest.raises(InvalidKeyError) as caught:
        check_key(NUMBERED, {})
    assert caught.value.hint == "the key of numbered is id (N), at (N)"


def test_the_error_of_a_malformed_value_in_a_key_names_the_attribute() -> None:
    with pytest.raises(InvalidValueError) as caught:
        check_key(NUMBERED, {"id": {"N": "NaN"}, "at": {"N": "1"}})
    assert caught.value.place == "id"


@pytest.mark.parametrize(("name", "limit"), [("id", 2048), ("sort", 1024)])
@pytest.mark.parametrize("character", ["x", "é", "😀"])
def test_the_size_of_a_string_key_is_limited(name: str, limit: int, character: str) -> None:
    width = len(character.encode())
    fits = _item(**{"id": "x", "sort": "x", name: character * (limit // width)})
    assert check_key(INDEXED, fits) == fits
    with pytest.raises(
        InvalidKeyError, match=f"{name} of table indexed has .* bytes; DynamoDB allows {limit:,}"
    ):
        check_key(INDEXED, _item(**{"id": "x", "sort": "x", name: character * (limit // width) + "x"}))


@pytest.mark.parametrize(("name", "limit"), [("id", 2048), ("part", 1024)])
def test_a_binary_key_is_measured_in_bytes_not_in_base64(name: str, limit: int) -> None:
    fits = _item(**{"id": b"x", "part": b"x", name: b"x" * limit})
    assert check_key(BINARY, fits) == fits
    with pytest.raises(InvalidKeyError, match=f"{limit + 1:,} bytes"):
        check_key(BINARY, _item(**{"id": b"x", "part": b"x", name: b"x" * (limit + 1)}))


# --- items ----------------------------------------------------------------------------------------------


def test_check_item_returns_the_item_in_its_stored_form_with_its_size() -> None:
    item: dict[str, Any] = {"id": {"S": "x"}, "n": {"N": "1.50"}, "s": {"SS": ["b", "a"]}}
    kept, size = check_item(SIMPLE, item)
    assert kept == {"id": {"S": "x"}, "n": {"N": "1.5"}, "s": {"SS": ["a", "b"]}}
    assert size == item_size(item) == (2 + 1) + (1 + 3) + (1 + 2)


@pytest.mark.parametrize(
    "item", [{}, _item(other=1), _item(id=5), _item(id=""), _item(id="x" * 2049), _item(id=None)]
)
def test_an_item_needs_a_valid_key(item: Any) -> None:
    with pytest.raises(InvalidKeyError):
        check_item(SIMPLE, item)


def test_an_item_has_at_most_400_kilobytes() -> None:
    overhead = len("id") + len("x") + len("body")
    fits = _item(id="x", body="x" * (409_600 - overhead))
    assert check_item(SIMPLE, fits) == (fits, 409_600)
    with pytest.raises(
        ItemTooLargeError, match="the item id='x' of table simple has 409,601 bytes; DynamoDB allows 409,600"
    ):
        check_item(SIMPLE, _item(id="x", body="x" * (409_601 - overhead)))


def test_binary_content_counts_as_bytes_towards_the_limit() -> None:
    body = b64encode(b"x" * (409_600 - 7)).decode()
    assert len(body) > 409_600
    assert check_item(SIMPLE, {"id": {"S": "x"}, "body": {"B": body}})[1] == 409_600


def test_check_item_size_checks_the_size_only() -> None:
    check_item_size(409_600, SIMPLE, _item(id="x"))
    with pytest.raises(ItemTooLargeError):
        check_item_size(409_601, SIMPLE, _item(id="x"))


def test_an_item_may_lack_the_keys_of_an_index() -> None:
    for extra in ({}, {"group": "g"}, {"rank": 1}, {"group": "g", "rank": 1}):
        check_item(INDEXED, _item(id="x", sort="y", **extra))


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"group": 5}, r"key attribute group of .* must be of type string \(S\), not N"),
        ({"rank": "first"}, r"key attribute rank of .* must be of type number \(N\), not S"),
        ({"group": ""}, r"key attribute group of .* is empty"),
        ({"group": "x" * 2049}, "2,049 bytes"),
        ({"group": None}, "not NULL"),
    ],
)
def test_an_index_key_of_a_wrong_type_or_size_is_refused(extra: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidKeyError, match=message):
        check_item(INDEXED, _item(id="x", sort="y", **extra))


def test_values_are_checked_before_the_key() -> None:
    with pytest.raises(InvalidValueError, match=r"^body: "):
        check_item(SIMPLE, {"body": {"SS": []}})


# --- single writes --------------------------------------------------------------------------------------

KEY = _item(id="x", sort="y")


def _update(*actions: UpdateAction) -> UpdateItem:
    return UpdateItem("indexed", KEY, Update(actions))


@pytest.mark.parametrize(
    "action",
    [
        Set(path("id"), value("z")),
        Remove(path("sort")),
        Add(path("id"), value(1)),
        Set(path("sort", "inner"), value(1)),
        Set(path("id"), path("id")),
    ],
)
def test_an_update_cannot_change_the_key(action: UpdateAction) -> None:
    with pytest.raises(InvalidKeyError, match="part of the key of table indexed and cannot be changed"):
        check(_update(Set(path("other"), value(1)), action), _schema_of)


def test_an_update_can_change_the_keys_of_an_index() -> None:
    check(_update(Set(path("group"), value("g")), Set(path("rank"), value(2))), _schema_of)
    check(_update(Remove(path("group")), Add(path("rank"), value(1))), _schema_of)


@pytest.mark.parametrize(("name", "wrong"), [("group", 5), ("group", ""), ("rank", "x"), ("rank", None)])
def test_an_update_cannot_set_an_index_key_to_an_invalid_value(name: str, wrong: object) -> None:
    with pytest.raises(InvalidKeyError, match=f"key attribute {name}"):
        check(_update(Set(path(name), value(wrong))), _schema_of)


def test_the_expressions_of_a_write_are_checked() -> None:
    bad = Exists(Path(()))
    for write in (
        PutItem("indexed", KEY, bad),
        DeleteItem("indexed", KEY, bad),
        UpdateItem("indexed", KEY, Update(()), bad),
        TransactWrite((ConditionCheck("indexed", KEY, bad),), "token"),
        _update(Remove(path("a")), Remove(path("a"))),
    ):
        with pytest.raises(InvalidExpressionError):
            check(write, _schema_of)


def test_only_an_update_can_return_the_new_item() -> None:
    check(UpdateItem("indexed", KEY, Update(()), returns="new"), _schema_of)
    check(PutItem("indexed", KEY, returns="old"), _schema_of)
    for write in (PutItem("indexed", KEY, returns="new"), DeleteItem("indexed", KEY, returns="new")):
        with pytest.raises(InvalidRequestError, match="only an update"):
            check(write, _schema_of)


def test_a_write_returns_nothing_the_old_or_the_new_item() -> None:
    with pytest.raises(InvalidRequestError, match="returns must be one of none, old, new, not 'all'"):
        check(PutItem("indexed", KEY, returns="all"), _schema_of)  # type: ignore[arg-type]


def test_the_projection_of_a_get_is_checked() -> None:
    check(GetItem("simple", _item(id="x"), projection=(path("a"), path("b", 0))), _schema_of)
    with pytest.raises(InvalidExpressionError, match="overlap"):
        check(GetItem("simple", _item(id="x"), projection=(path("a"), path("a", 0))), _schema_of)
    with pytest.raises(InvalidExpressionError, match="leads into id, which is a key"):
        check(GetItem("simple", _item(id="x"), projection=(path("id", 0),)), _schema_of)


# --- transactions ---------------------------------------------------------------------------------------


def _puts(count: int) -> tuple[PutItem, ...]:
    return tuple(PutItem("simple", _item(id=f"item {place}")) for place in range(count))


def _gets(count: int) -> tuple[GetItem, ...]:
    return tuple(GetItem("simple", _item(id=f"item {place}")) for place in range(count))


def test_a_transaction_has_one_to_a_hundred_actions() -> None:
    check(TransactWrite(_puts(1), "token"), _schema_of)
    check(TransactWrite(_puts(100), "token"), _schema_of)
    with pytest.raises(TransactionTooLarge, match="101 actions"):
        check(TransactWrite(_puts(101), "token"), _schema_of)
    with pytest.raises(InvalidRequestError, match="has no actions"):
        check(TransactWrite((), "token"), _schema_of)


@pytest.mark.parametrize(("length", "fits"), [(0, False), (1, True), (36, True), (37, False)])
def test_a_token_has_1_to_36_characters(length: int, fits: bool) -> None:
    request = TransactWrite(_puts(1), "t" * length)
    if fits:
        check(request, _schema_of)
    else:
        with pytest.raises(InvalidRequestError, match="1 to 36 characters"):
            check(request, _schema_of)


@pytest.mark.parametrize(
    "action",
    [
        PutItem("simple", _item(id="x"), returns="old"),
        DeleteItem("simple", _item(id="x"), returns="old"),
        UpdateItem("simple", _item(id="x"), Update(()), returns="new"),
    ],
)
def test_an_action_of_a_transaction_cannot_return_an_item(action: TransactAction) -> None:
    with pytest.raises(InvalidRequestError, match="cannot return an item"):
        check(TransactWrite((action,), "token"), _schema_of)


def test_two_actions_of_any_kind_on_one_item_are_refused() -> None:
    key = _item(id="same")
    kinds: list[TransactAction] = [
        PutItem("simple", {**key, "more": {"S": "x"}}),
        UpdateItem("simple", key, Update((Remove(path("a")),))),
        DeleteItem("simple", key),
        ConditionCheck("simple", key, Exists(path("id"))),
    ]
    for first in kinds:
        for second in kinds:
            with pytest.raises(DuplicateItemError, match="positions 0 and 1 of the transaction"):
                check(TransactWrite((first, second), "token"), _schema_of)


@pytest.mark.parametrize(
    ("table", "first", "second"),
    [
        ("numbered", {"id": {"N": "1"}, "at": {"N": "2"}}, {"id": {"N": "1.0"}, "at": {"N": "2e0"}}),
        ("numbered", {"id": {"N": "0"}, "at": {"N": "2"}}, {"id": {"N": "-0"}, "at": {"N": "2"}}),
        (
            "binary",
            {"id": {"B": "QQ=="}, "part": {"B": "QQ=="}},
            {"id": {"B": "QR=="}, "part": {"B": "QQ=="}},
        ),
    ],
)
def test_two_spellings_of_a_key_are_one_item(table: str, first: Any, second: Any) -> None:
    with pytest.raises(DuplicateItemError):
        check(TransactWrite((PutItem(table, first), DeleteItem(table, second)), "t"), _schema_of)
    with pytest.raises(DuplicateItemError):
        check(TransactGet((GetItem(table, first), GetItem(table, second))), _schema_of)
    with pytest.raises(DuplicateItemError):
        check(BatchGet((GetItem(table, first), GetItem(table, second))), _schema_of)
    with pytest.raises(DuplicateItemError):
        check(BatchWrite((PutItem(table, first), DeleteItem(table, second))), _schema_of)


def test_the_same_key_in_two_tables_is_two_items() -> None:
    other = {"other": TableSchema("other", KeyAttribute("id"))}
    actions = (DeleteItem("simple", _item(id="x")), DeleteItem("other", _item(id="x")))
    check(TransactWrite(actions, "t"), lambda table: {**SCHEMAS, **other}[table])


def test_keys_whose_concatenated_parts_are_equal_are_two_items() -> None:
    actions = (
        DeleteItem("indexed", _item(id="a", sort="bc")),
        DeleteItem("indexed", _item(id="ab", sort="c")),
    )
    check(TransactWrite(actions, "t"), _schema_of)


def test_the_error_of_the_schema_lookup_for_an_unknown_table_is_raised() -> None:
    with pytest.raises(TableNotFoundError):
        check(TransactWrite((DeleteItem("nowhere", _item(id="x")),), "t"), _schema_of)


def test_a_wrong_key_in_a_transaction_is_refused() -> None:
    with pytest.raises(InvalidKeyError):
        check(TransactWrite((DeleteItem("simple", _item(id=1)),), "t"), _schema_of)


def test_a_transaction_reads_at_most_four_megabytes() -> None:
    check_size_read(4 * 1024 * 1024)
    with pytest.raises(TransactionTooLarge, match="4,194,305 bytes"):
        check_size_read(4 * 1024 * 1024 + 1)


def test_a_transaction_reads_one_to_a_hundred_items() -> None:
    check(TransactGet(_gets(1)), _schema_of)
    check(TransactGet(_gets(100)), _schema_of)
    with pytest.raises(TransactionTooLarge, match="101 reads"):
        check(TransactGet(_gets(101)), _schema_of)
    with pytest.raises(InvalidRequestError, match="the transaction has no reads"):
        check(TransactGet(()), _schema_of)


# --- batches --------------------------------------------------------------------------------------------


def test_a_batch_reads_one_to_a_hundred_items() -> None:
    check(BatchGet(_gets(100)), _schema_of)
    with pytest.raises(BatchTooLargeError, match="101 reads"):
        check(BatchGet(_gets(101)), _schema_of)
    with pytest.raises(InvalidRequestError, match="the batch has no reads"):
        check(BatchGet(()), _schema_of)


@pytest.mark.parametrize("manner", [{"consistent": True}, {"projection": (path("a"),)}])
def test_reads_of_one_table_in_a_batch_have_the_same_consistency_and_projection(
    manner: dict[str, Any],
) -> None:
    plain, other = GetItem("simple", _item(id="x")), GetItem("simple", _item(id="y"), **manner)
    with pytest.raises(InvalidRequestError, match="differ in consistency or projection"):
        check(BatchGet((plain, other)), _schema_of)
    elsewhere = GetItem("indexed", KEY, **manner)
    check(BatchGet((plain, elsewhere)), _schema_of)
    check(TransactGet((plain, other)), _schema_of)


def test_the_projections_of_a_batch_are_checked() -> None:
    read = GetItem("simple", _item(id="x"), projection=(path("a"), path("a")))
    with pytest.raises(InvalidExpressionError):
        check(BatchGet((read,)), _schema_of)
    with pytest.raises(InvalidExpressionError):
        check(TransactGet((read,)), _schema_of)


def test_a_batch_writes_one_to_twenty_five_items() -> None:
    check(BatchWrite(_puts(25)), _schema_of)
    with pytest.raises(BatchTooLargeError, match="26 writes"):
        check(BatchWrite(_puts(26)), _schema_of)
    with pytest.raises(InvalidRequestError, match="the batch has no writes"):
        check(BatchWrite(()), _schema_of)


@pytest.mark.parametrize(
    "write",
    [
        PutItem("simple", _item(id="x"), Exists(path("id"))),
        DeleteItem("simple", _item(id="x"), Exists(path("id"))),
        PutItem("simple", _item(id="x"), returns="old"),
        DeleteItem("simple", _item(id="x"), returns="old"),
    ],
)
def test_a_write_in_a_batch_cannot_have_a_condition_or_return_an_item(write: PutItem | DeleteItem) -> None:
    with pytest.raises(InvalidRequestError, match="cannot have a condition or return an item"):
        check(BatchWrite((write,)), _schema_of)


UPDATE: Any = UpdateItem("simple", _item(id="x"), Update((Remove(path("a")),)))
CHECK: Any = ConditionCheck("simple", _item(id="x"), Exists(path("id")))
GET: Any = GetItem("simple", _item(id="x"))


@pytest.mark.parametrize("stranger", [UPDATE, CHECK, GET, "x", None])
def test_a_batch_writes_only_puts_and_deletes(stranger: Any) -> None:
    with pytest.raises(InvalidRequestError):
        check(BatchWrite((stranger,)), _schema_of)


@pytest.mark.parametrize("stranger", [GET, "x", None])
def test_a_transaction_of_writes_can_only_contain_writes_and_checks(stranger: Any) -> None:
    with pytest.raises(InvalidRequestError):
        check(TransactWrite((stranger,), "t"), _schema_of)


@pytest.mark.parametrize("stranger", [UPDATE, CHECK, "x", None])
def test_a_batch_or_transaction_of_reads_can_only_contain_reads(stranger: Any) -> None:
    with pytest.raises(InvalidRequestError):
        check(BatchGet((stranger,)), _schema_of)
    with pytest.raises(InvalidRequestError):
        check(TransactGet((stranger,)), _schema_of)


# --- all requests ---------------------------------------------------------------------------------------

X = _item(id="x")
HUGE = _item(id="x", body="x" * 409_600)
BAD = Exists(Path(()))


@pytest.mark.parametrize(
    "request_",
    [
        GetItem("simple", X),
        PutItem("simple", X),
        UpdateItem("simple", X, Update((Remove(path("a")),))),
        DeleteItem("simple", X),
        Query("simple", KeyCondition("id", {"S": "x"})),
        Scan("simple"),
        TransactWrite((PutItem("simple", X),), "t"),
        TransactGet((GetItem("simple", X),)),
        BatchGet((GetItem("simple", X),)),
        BatchWrite((PutItem("simple", X),)),
        DescribeTable("simple"),
        CreateTable(TableSchema("new", KeyAttribute("id"))),
        AddIndex("simple", IndexSchema("by_it", KeyAttribute("it"))),
        SetTtl("simple", "_ttl"),
        SetTtl("simple", None),
        DeleteTable("simple"),
        DescribeTtl("simple"),
    ],
    ids=lambda request: type(request).__name__,
)
def test_a_valid_request_passes(request_: Request[Any]) -> None:
    check(request_, _schema_of)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (GetItem("simple", {}), InvalidKeyError),
        (GetItem("simple", X, projection=(path("a"), path("a"))), InvalidExpressionError),
        (GetItem("nowhere", X), TableNotFoundError),
        (PutItem("simple", {}), InvalidKeyError),
        (PutItem("simple", HUGE), ItemTooLargeError),
        (PutItem("simple", X, BAD), InvalidExpressionError),
        (UpdateItem("simple", {}, Update(())), InvalidKeyError),
        (UpdateItem("simple", X, Update((Remove(path("id")),))), InvalidKeyError),
        (DeleteItem("simple", X, BAD), InvalidExpressionError),
        (Query("simple", KeyCondition("it", {"S": "x"})), InvalidKeyError),
        (Scan("simple", filter=BAD), InvalidExpressionError),
        (TransactWrite((), "t"), InvalidRequestError),
        (TransactWrite((PutItem("simple", HUGE),), "t"), ItemTooLargeError),
        (TransactWrite((ConditionCheck("simple", X, BAD),), "t"), InvalidExpressionError),
        (TransactGet(()), InvalidRequestError),
        (BatchGet(()), InvalidRequestError),
        (BatchWrite((PutItem("simple", HUGE),)), ItemTooLargeError),
        (CreateTable(TableSchema("x", KeyAttribute("id"))), ConfigurationError),
        (AddIndex("indexed", INDEXED.indexes[0]), IndexExistsError),
        (AddIndex("simple", IndexSchema("by_id", KeyAttribute("id", "N"))), ConfigurationError),
        (AddIndex("nowhere", IndexSchema("by_it", KeyAttribute("it"))), TableNotFoundError),
        (SetTtl("simple", ""), ConfigurationError),
        (SetTtl("simple", "x" * 256), ConfigurationError),
    ],
)
def test_an_invalid_request_is_refused(request_: Request[Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        check(request_, _schema_of)


def test_the_puts_of_a_transaction_have_at_most_four_megabytes_together() -> None:
    def request(size: int) -> TransactWrite:
        bodies = [size // 12] * 11 + [size - size // 12 * 11]
        names = [f"{place:02d}" for place in range(12)]
        return TransactWrite(
            tuple(
                PutItem("simple", _item(id=name, body="x" * (body - len("id") - 2 - len("body"))))
                for name, body in zip(names, bodies, strict=True)
            ),
            "t",
        )

    check(request(4 * 1024 * 1024), _schema_of)
    with pytest.raises(TransactionTooLarge, match="4,194,305 bytes"):
        check(request(4 * 1024 * 1024 + 1), _schema_of)
