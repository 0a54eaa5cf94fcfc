"""Mistakes that could stay unnoticed, and the errors that report them."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from holdall import (
    AsyncDatabase,
    Database,
    Index,
    Key,
    Model,
    SortKey,
    Template,
    col,
    field,
    has_many_attached,
    has_one_attached,
)
from holdall.core.settings import resolve
from holdall.errors import (
    InvalidFieldError,
    InvalidOptionsError,
    InvalidRequestError,
    ItemTooLargeError,
    ModelDefinitionError,
)

SECRET = "a-secret-of-sixteen-or-more"


class Sale(Model):
    shop: Key[str]
    number: SortKey[int]
    quantity: int = 1
    product: str = ""


@pytest.fixture
def db() -> Any:
    with Database("memory:") as database:
        yield database


# --- conditions on plain fields ---------------------------------------------------------------------------


def test_a_comparison_of_a_plain_field_is_refused_with_a_hint_to_col() -> None:
    comparisons: list[Callable[[], object]] = [
        lambda: Sale.quantity > 1,
        lambda: Sale.quantity >= 1,
        lambda: Sale.quantity < 1,
        lambda: Sale.quantity <= 1,
    ]
    for compare in comparisons:
        with pytest.raises(InvalidFieldError, match=r"use col\(\): col\(Sale.quantity\)"):
            compare()


def test_an_equality_test_of_a_plain_field_is_refused_as_a_condition(db: Database) -> None:
    with pytest.raises(InvalidOptionsError, match=r"where must be a condition, not False.*\n.*in col\(\)"):
        db.query(Sale, shop="a", where=Sale.quantity == 1)  # type: ignore[call-overload]


def test_a_condition_method_of_a_plain_field_is_refused_with_a_hint_to_col() -> None:
    with pytest.raises(AttributeError, match=r"col\(Sale.product\)"):
        Sale.product.begins_with("t")  # type: ignore[attr-defined]
    assert not hasattr(Sale.product, "anything_else")
    assert col(Sale.product).begins_with("t").values == ("t",)


# --- results that have not been read ----------------------------------------------------------------------


def test_a_query_or_scan_has_no_truth_value_and_no_length(db: Database) -> None:
    for rows in (
        db.query(Sale, shop="a"),
        db.scan(Sale),
        db.aio.query(Sale, shop="a"),
        db.aio.scan(Sale),
    ):
        with pytest.raises(TypeError, match=r"use \.exists\(\)"):
            bool(rows)
        with pytest.raises(TypeError, match=r"use \.count\(\)"):
            len(rows)  # type: ignore[arg-type]
    assert list(db.query(Sale, shop="a")) == []


# --- transactions that are not entered --------------------------------------------------------------------


def list_warnings(db: Database | AsyncDatabase, record: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        record(db.transaction())
        gc.collect()
    return [str(each.message) for each in caught if each.category is RuntimeWarning]


@pytest.mark.parametrize("colour", ["blocking", "awaiting"])
def test_a_transaction_with_changes_that_was_never_entered_warns(db: Database, colour: str) -> None:
    database: Any = db if colour == "blocking" else db.aio
    (warning,) = list_warnings(database, lambda tx: tx.create(Sale, shop="a", number=1))
    assert "nothing was written" in warning
    assert list_warnings(database, lambda tx: tx.delete(Sale.key(shop="a", number=1)))
    assert list_warnings(database, lambda tx: None) == []


def test_a_transaction_that_was_entered_or_only_read_does_not_warn(db: Database) -> None:
    def enter(tx: Any) -> None:
        with tx:
            tx.create(Sale, shop="a", number=1)

    assert list_warnings(db, enter) == []
    assert list_warnings(db, lambda tx: tx.get(Sale, shop="a", number=1)) == []

    def fail(tx: Any) -> None:
        with suppress(ZeroDivisionError), tx:
            tx.create(Sale, shop="a", number=2 // 0)

    assert list_warnings(db, fail) == []


# --- hints ------------------------------------------------------------------------------------------------


def test_the_command_of_a_hint_names_the_database() -> None:
    given = {
        "url": "dynamodb://my-app",
        "endpoint": "http://localhost:8000",
        "region": "eu-west-1",
        "secret": SECRET,
    }
    command = resolve(given, {}, {}).command("table create")
    assert (
        command
        == "`holdall --url 'dynamodb://my-app?region=eu-west-1&endpoint=http://localhost:8000' table create`"
    )
    assert resolve({}, {}, {}).command("table create") == "`holdall table create`"
    assert resolve({"url": "embedded:data/app.db"}, {}, {}).command("worker") == (
        "`holdall --url embedded:data/app.db worker`"
    )


# --- wrong arguments --------------------------------------------------------------------------------------


def test_values_without_names_are_refused(db: Database) -> None:
    with pytest.raises(TypeError, match="Sale takes the values of its fields by name"):
        Sale("a")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="by name"), db.transaction() as tx:
        tx.create(Sale, "a", 1)  # type: ignore[call-overload]


def test_only_a_model_or_an_item_can_be_created(db: Database) -> None:
    for wrong in ({"shop": "a"}, Sale.key(shop="a", number=1)):
        with (
            pytest.raises(InvalidOptionsError, match="cannot be created\nhint: pass a model"),
            db.transaction() as tx,
        ):
            tx.create(wrong)  # type: ignore[call-overload]


def test_only_a_participant_can_join_a_transaction(db: Database) -> None:
    with pytest.raises(InvalidOptionsError, match="'seal' is not a participant"), db.transaction() as tx:
        tx.join("seal")  # type: ignore[arg-type]


def test_a_descriptor_can_add_only_a_participant_to_a_transaction(db: Database) -> None:
    class Seal:
        def participate(self, *given: object) -> str:
            return "seal"

    class Sealed(Model):
        name: Key[str]
        seal = Seal()

    with pytest.raises(InvalidOptionsError, match="'seal' is not a participant"):
        db.run(lambda tx: tx.create(Sealed, name="ada"))
    assert db.get(Sealed, "ada") is None


def test_an_attachment_with_an_annotation_is_refused() -> None:
    with pytest.raises(ModelDefinitionError, match=r"Letter.scan: an attachment is not a field.*\n.*scan = "):

        class Letter(Model):
            scan: bytes = has_one_attached()  # type: ignore[assignment]


def test_an_invalid_option_of_an_attachment_is_refused() -> None:
    with pytest.raises(
        InvalidOptionsError, match='analyze must be "immediately", "later" or "lazily", not False'
    ):
        has_one_attached(analyze=False)  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionsError, match=r"dependent must be .* not True"):
        has_many_attached(dependent=True)  # type: ignore[arg-type]


def test_the_error_for_an_unknown_attachment_names_the_known_ones(db: Database) -> None:
    class Parcel(Model):
        label = has_one_attached()
        papers = has_many_attached()

    with pytest.raises(InvalidOptionsError, match="no attachment 'lable'\nhint: did you mean 'label'"):
        db.load([Parcel()], "lable")
    with pytest.raises(InvalidOptionsError, match="no attachment 'label'\nhint: it declares no attachments"):
        db.load([Sale(shop="a", number=1)], "label")


def test_the_error_for_an_item_that_is_too_large_names_it(db: Database) -> None:
    with (
        pytest.raises(ItemTooLargeError, match=r"the item pk='Sale#a', sk='p5011' of table"),
        db.transaction() as tx,
    ):
        tx.create(Sale, shop="a", number=1, product="x" * 500_000)


def test_the_error_for_text_passed_as_a_file_explains_that_it_was_used_as_a_path(db: Database) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        db.files.put("letter.txt", "Dear Ada")
    assert caught.value.__notes__ == [
        "hint: a string is the path of a file; to store the text itself, pass text.encode()"
    ]


# --- names and arguments ----------------------------------------------------------------------------------


class Book(Model, indexes=[Index("by_author", key=["author"])]):
    shelf: Key[str]
    place: SortKey[int] = field(default=1)
    author: str = ""
    isbn: str = field(unique=True)


WRONG_NAMES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda db: Book.key(shlef="a"), "Book.shlef.*did you mean 'shelf'"),
    (lambda db: Book.key(shelf="a", plaice=1), "Book.plaice.*did you mean 'place'"),
    (lambda db: Book.key(shelf="a", isbn="x"), "Book.isbn: it is not part of the key.*write Book.key"),
    (lambda db: db.get(Book, Shelf="a"), "Book.Shelf.*did you mean 'shelf'"),
    (lambda db: db.get_one(Book, shel="a"), "Book.shel.*did you mean 'shelf'"),
    (lambda db: db.get(Book.key("a"), consistnt=True), "no option 'consistnt'.*did you mean 'consistent'"),
    (lambda db: db.get(Book.key("a"), zzz=True), "no option 'zzz'.*the options are: "),
    (lambda db: db.get_by(Book, ibsn="x"), "Book.ibsn.*did you mean 'isbn'"),
    (lambda db: db.get_by(Book, "x"), r"by name, not 'x'.*write get_by\(Book, isbn='x'\)"),
    (lambda db: db.query(Book, shelv="a"), "Book.shelv.*did you mean 'shelf'"),
    (lambda db: db.query(Book, "a"), r"by name, not 'a'.*write query\(Book, shelf='a'\)"),
    (lambda db: db.query(Book, "a", "b"), r"by name, not 'a', 'b'.*write query\(Book, shelf=…\)"),
    (
        lambda db: db.query(Book, index="by_autor", author="x"),
        "no index 'by_autor'.*did you mean 'by_author'",
    ),
    (lambda db: db.query(Book, index="zzz", author="x"), "no index 'zzz'.*the indexes are: by_author"),
    (lambda db: db.query(Book, shelf="a", only=["authr"]), "only= names 'authr'.*did you mean 'author'"),
    (lambda db: db.update_all(Book, {"autor": "x"}, shelf="a"), "Book.autor.*did you mean 'author'"),
    (lambda db: db.delete_all(Book, shelff="a"), "Book.shelff.*did you mean 'shelf'"),
    (lambda db: db.delete_all(Book, shelf="a", chekpoint="x"), "chekpoint.*did you mean 'checkpoint'"),
    (lambda db: db.delete(Book.key("a"), were=True), "no option 'were'.*did you mean 'where'"),
    (lambda db: db.transaction(retries=3), r"no option 'retries'.*use db.run\(function, retries=...\)"),
    (lambda db: db.transaction(readonly=True), "no option 'readonly'.*did you mean 'read_only'"),
    (
        lambda db: db.transaction().update(Book, {"shelf": "a", "isnb": 1}, {}),
        "Book.isnb.*did you mean 'isbn'",
    ),
    (lambda db: Book(shelf="a", isbn="x").assign({"autor": "x"}), "Book.autor.*did you mean 'author'"),
    (lambda db: db.query(Book, shelf="a", limt=3), "Book.limt.*did you mean 'limit'"),
    (lambda db: db.transaction(read_only="x"), "read_only must be True or False, not 'x'"),
    (lambda db: db.delete(Book, shelf="a"), r"no option 'shelf'.*write delete\(Book.key\(shelf=...\)\)"),
    (lambda db: db.transaction().delete(shelf="a"), r"write delete\(Order.key\(shelf=...\)\)"),
    (lambda db: db.transaction().update(Book.key("a"), were=1), "no option 'were'.*did you mean 'where'"),
    (lambda db: db.transaction().update(Book.key("a"), author="x"), r"write col\(Book.author\).set\(...\)"),
    (lambda db: db.update(Book.key("a"), col(Book.author).set("x"), wher=1), "did you mean 'where'"),
    (
        lambda db: db.transaction().update(Book, {"shelf": "a"}),
        "update takes a key and changes.*write update",
    ),
    (lambda db: db.transaction().update(), "update takes a key and changes.*write update"),
    (lambda db: db.scan(Book, wher=1), "scan has no option 'wher'.*did you mean 'where'"),
    (
        lambda db: db.scan(Book, shelf="a"),
        r"no option 'shelf'.*where=col\(Book.shelf\) == ..., or query\(Book",
    ),
    (lambda db: db.bulk(Book, concurency=2), "bulk has no option 'concurency'.*did you mean 'concurrency'"),
    (lambda db: db.bulk(Book, shelf="a"), "no option 'shelf'.*the options are: concurrency, rate, progress"),
    (lambda db: db.move(Book, Sale, dryrun=True), "move has no option 'dryrun'.*did you mean 'dry_run'"),
    (lambda db: db.put(Book, shelf="a"), r"no option 'shelf'.*write put\(Book\(shelf=...\)\)"),
]


@pytest.mark.parametrize("at", range(len(WRONG_NAMES)))
def test_the_error_for_a_wrong_name_suggests_the_nearest(db: Database, at: int) -> None:
    call, words = WRONG_NAMES[at]
    with pytest.raises(InvalidRequestError, match=f"(?s){words}"):
        call(db)


def test_the_error_for_an_invalid_argument_is_also_a_type_error(db: Database) -> None:
    calls: list[Callable[[Any], Any]] = [
        lambda db: db.query(Book, "a"),
        lambda db: db.transaction(retries=3),
    ]
    for call in calls:
        for each in (db, db.aio):
            with pytest.raises(TypeError):
                call(each)


def test_the_error_for_a_misspelt_option_of_a_field_or_an_index_suggests_the_nearest() -> None:
    with pytest.raises(
        ModelDefinitionError, match=r"(?s)field\(\) has no option 'uniqe'.*did you mean 'unique'"
    ):
        field(uniqe=True)  # type: ignore[call-overload]
    with pytest.raises(ModelDefinitionError, match=r"(?s)Index\(\) has no option 'keys'.*did you mean 'key'"):
        Index("by_size", keys=["size"])  # type: ignore[call-arg]


def define_model(**options: Any) -> type:
    return type("Shelf", (Model,), {"__annotations__": {"size": int}, "__module__": __name__}, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tabel": "shelves"}, "Shelf: a model has no option 'tabel'.*did you mean 'table'"),
        ({"zzz": 1}, "no option 'zzz'.*the options are: name, table, "),
        ({"ttl": "siz"}, "Shelf.siz: ttl= names a field.*did you mean 'size'"),
        ({"indexes": [Index("one", key=["siez"])]}, "no field 'siez'.*did you mean 'size'"),
        (
            {"table": "shelves", "indexes": [Index("one", key=["size"], include=["sizes"])]},
            "include= names 'sizes'.*did you mean 'size'",
        ),
        (
            {"table": "shelves", "layout": Template(pk="{id}", gsi1=("S#{sise}",))},
            "names sise.*did you mean 'size'",
        ),
    ],
)
def test_the_error_for_a_wrong_name_in_a_class_statement_suggests_the_nearest(
    options: Any, words: str
) -> None:
    with pytest.raises(ModelDefinitionError, match=f"(?s){words}") as caught:
        define_model(**options)
    assert isinstance(caught.value, TypeError)
