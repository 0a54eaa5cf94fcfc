"""``holdall items``: every command with a model and with a raw table, with valid and invalid input."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

import pytest
from cli_rig import answer_prompts, call
from click.shell_completion import ShellComplete

from holdall import Database, job
from holdall.cli.module import load_module
from holdall.cli.program import program

MODELS = """
from datetime import datetime
from holdall import Index, Key, Model, SortKey, field

class Order(Model, indexes=[Index("by_product", ["product"], ["number"])]):
    customer: Key[str]
    number: SortKey[int]
    product: str
    quantity: int = 1
    note: str | None = None
    tags: list[str] = field(default_factory=list)
    raw: bytes = b""
    secret: str = field(default="x", hidden=True)
"""


@job("itemshop-work")
def work() -> None:
    """Do nothing."""


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDALL_SECRET", "a-long-random-secret-text")
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("itemshop", None)
    (tmp_path / "itemshop.py").write_text(MODELS, encoding="utf-8")
    model = load_module("itemshop").Order
    with Database("embedded:holdall.db", manage_table=True) as db:
        db.query(model, index="by_product", product="tea").all()  # creates the index
        db.create(model, customer="ada", number=1, product="tea", tags=["a"], raw=b"\x00\xff")
        db.create(model, customer="ada", number=20, product="coffee", note="x, y", quantity=3)
        db.create(model, customer="bob", number=3, product="tea")


def print_items(*words: str) -> str:
    """Run a command that has to succeed; return its output."""
    ended = call("items", *words)
    assert ended.exit_code == 0, ended.stderr
    return ended.stdout


def read_json(*words: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(print_items(*words, "--json"))
    return found


@pytest.mark.parametrize(
    ("source", "key"),
    [("itemshop:Order", ("customer=ada", "number=1")), ("table:holdall", ("pk=Order#ada", "sk={}"))],
    ids=["model", "table"],
)
def test_put_accepts_the_json_that_get_prints(source: str, key: tuple[str, ...], tmp_path: Path) -> None:
    sk = read_json("query", "table:holdall", "pk=Order#ada")["items"][0]["sk"]["S"]  # type: ignore[index]
    key = tuple(word.format(sk) for word in key)
    printed = print_items("get", source, *key, "--json")
    (tmp_path / "item.json").write_text(printed, encoding="utf-8")
    print_items("put", source, "--file", str(tmp_path / "item.json"), "--replace")
    assert {**json.loads(print_items("get", source, *key, "--json")), "_w": 0} == {
        **json.loads(printed),
        "_w": 0,
    }


def test_columns_are_aligned_with_wide_characters() -> None:
    for number, product in enumerate(("日本", "Kaffee", "e\u0301te\u0301")):
        fields = ("customer=zoe", f"number={number}", f"product={product}", "note=x")
        assert read_json("put", "itemshop:Order", *fields)["product"] == product
    listed = print_items("query", "itemshop:Order", "customer=zoe", "--only", "product,note")
    ends = [line[len("customer  number  ") :] for line in listed.splitlines()]
    assert ends == ["product  note", "日本     x", "Kaffee   x", "e\u0301te\u0301      x"]


def test_sets_are_printed_sorted(tmp_path: Path) -> None:
    """The order of a set of strings differs from process to process."""
    source = (
        "from holdall import Key, Model\n\nclass MarkedCrate(Model):\n    id: Key[str]\n    marks: set[str]\n"
    )
    (tmp_path / "itemsets.py").write_text(source, encoding="utf-8")
    marks = [f"mark {number:02}" for number in range(20)]
    found = read_json("put", "itemsets:MarkedCrate", "id=1", f"marks={json.dumps(marks[::-1])}")
    assert found["marks"] == marks
    assert print_items("get", "itemsets:MarkedCrate", "id=1") == f"id     1\nmarks  {json.dumps(marks)}\n"


def test_the_model_decides_the_order_and_types_of_an_items_fields() -> None:
    assert print_items("get", "itemshop:Order", "customer=ada", "number=1").splitlines() == [
        "customer  ada",
        "number    1",
        "product   tea",
        "quantity  1",
        "note      ",
        'tags      ["a"]',
        "raw       0x00ff",
    ]
    found = read_json("get", "itemshop:Order", "customer=ada", "number=20")
    assert (found["number"], found["note"], "secret" in found) == (20, "x, y", False)


def test_queries_have_ranges_conditions_indexes_and_pages() -> None:
    first = read_json("query", "itemshop:Order", "customer=ada", "--limit", "1", "--only", "product")
    assert first["items"] == [{"customer": "ada", "number": 1, "product": "tea"}]
    token = str(first["next"])
    rest = read_json(
        "query", "itemshop:Order", "customer=ada", "--limit", "1", "--only", "product", "--after", token
    )
    assert rest["items"] == [{"customer": "ada", "number": 20, "product": "coffee"}]
    listed = print_items("query", "itemshop:Order", "customer=ada", "--sort", "number>=2", "--csv")
    assert listed == 'customer,number,product,quantity,note,tags,raw\nada,20,coffee,3,"x, y",[],0x\n'
    by_index = print_items("query", "itemshop:Order", "product=tea", "--index", "by_product", "--reverse")
    assert [line.split()[:2] for line in by_index.splitlines()[1:]] == [["bob", "3"], ["ada", "1"]]
    for condition, expected in (("quantity>2", 1), ("quantity!=3", 1), ("note^=x", 1), ("product=milk", 0)):
        assert read_json("count", "itemshop:Order", "customer=ada", "--where", condition) == {
            "count": expected
        }


def test_scans_and_counts_read_the_whole_table() -> None:
    assert print_items("count", "itemshop:Order") == "3\n"
    assert len(print_items("scan", "itemshop:Order", "--where", "product=tea").splitlines()) == 3
    ended = call("items", "scan", "itemshop:Order", "--limit", "2")
    assert "there are more items" in ended.stderr
    assert call("items", "scan", "itemshop:Order", "--where", "product=milk").stderr.endswith(
        "no item matches\n"
    )


def test_items_are_put_updated_and_deleted() -> None:
    ended = call("items", "put", "itemshop:Order", "customer=eve", "number=7", "product=tea", 'tags=["b"]')
    assert ended.stderr == "Order(customer='eve', number=7) was written\n"
    again = call("items", "put", "itemshop:Order", "customer=eve", "number=7", "product=milk")
    assert again.exit_code == 4
    assert "already exists" in again.stderr
    text = json.dumps({"customer": "eve", "number": 7, "product": "milk"})
    assert call("items", "put", "itemshop:Order", "--file", "-", "--replace", typed=text).exit_code == 0
    changed = read_json(
        "update", "itemshop:Order", "customer=eve", "number=7", "--set", "quantity=4", "--clear", "note"
    )
    assert (changed["product"], changed["quantity"], changed["tags"]) == ("milk", 4, [])
    kept = call("items", "delete", "itemshop:Order", "customer=eve", "number=7")
    assert (kept.exit_code, "no terminal" in kept.stderr) == (5, True)
    assert call("items", "delete", "itemshop:Order", "customer=eve", "number=7", "--yes").exit_code == 0
    assert call("items", "get", "itemshop:Order", "customer=eve", "number=7").exit_code == 3


@pytest.mark.parametrize(("typed", "status", "left"), [("n\n", 5, 3), ("y\n", 0, 2)], ids=["no", "yes"])
def test_at_a_terminal_a_delete_shows_the_item_and_asks(
    tmp_path: Path, typed: str, status: int, left: int
) -> None:
    words = ("items", "delete", "itemshop:Order", "customer=bob", "number=3")
    ended, seen = answer_prompts(*words, typed=typed, folder=tmp_path, url="embedded:holdall.db")
    assert (ended, "product   tea" in seen, "Delete it? [y/N]:" in seen) == (status, True, True)
    assert print_items("count", "itemshop:Order") == f"{left}\n"


def test_the_raw_items_of_a_table_are_read_and_written() -> None:
    key = ("pk=Order#ada", "sk=p5011")
    assert read_json("get", "table:holdall", *key)["raw"] == {"B": "AP8="}
    assert "raw       0x00ff" in print_items("get", "table:holdall", *key)
    assert read_json("update", "table:holdall", *key, "--set", "quantity=4", "--clear", "tags")[
        "quantity"
    ] == {"N": "4"}
    found = read_json(
        "query", "table:holdall", "pk=Order#ada", "--sort", "sk^=p501", "--where", "quantity>=4"
    )
    assert len(found["items"]) == 1  # type: ignore[arg-type]
    assert print_items("count", "table:holdall") == "3\n"
    by_index = ("gsi1_pk=Order#by_product#tea", "--index", "gsi1", "--only", "customer")
    assert print_items("query", "table:holdall", *by_index).split() == ["customer", "ada", "bob"]
    assert call("items", "put", "table:holdall", "n=[1,2.5]", "sk=y", "pk=x").exit_code == 0
    assert print_items("get", "table:holdall", "pk=x", "sk=y").split()[:4] == ["pk", "x", "sk", "y"]
    assert "already exists" in call("items", "put", "table:holdall", "pk=x", "sk=y").stderr
    stored = '{"pk": {"S": "x"}, "sk": {"S": "y"}, "n": {"NS": ["1"]}}'
    call("items", "put", "table:holdall", "--file", "-", "--replace", typed=stored)
    assert read_json("get", "table:holdall", "pk=x", "sk=y")["n"] == {"NS": ["1"]}
    plain = '{"pk": "x", "sk": "y", "n": [1, null]}'
    call("items", "put", "table:holdall", "--file", "-", "--replace", typed=plain)
    assert read_json("get", "table:holdall", "pk=x", "sk=y")["n"] == {"L": [{"N": "1"}, {"NULL": True}]}
    assert call("items", "delete", "table:holdall", "pk=x", "sk=y", "--yes").exit_code == 0
    assert call("items", "update", "table:holdall", "pk=x", "sk=y", "--set", "n=1").exit_code == 3
    assert len(read_json("scan", "table:holdall", "--limit", "2")["items"]) == 2  # type: ignore[arg-type]


def test_an_unreadable_value_does_not_hide_the_others() -> None:
    call("items", "update", "table:holdall", "pk=Order#ada", "sk=p5011", "--set", "quantity=null")
    ended = call("items", "query", "itemshop:Order", "customer=ada", "--only", "quantity,product")
    assert [line.split() for line in ended.stdout.splitlines()] == [
        ["customer", "number", "product", "quantity"],
        ["ada", "1", "tea", "(unreadable)"],
        ["ada", "20", "coffee", "3"],
    ]
    assert (
        "warning: Order.quantity: the stored value of Order(customer='ada', number=1) does not"
        in ended.stderr
    )
    assert read_json("get", "itemshop:Order", "customer=ada", "number=1")["quantity"] is None
    call("items", "update", "itemshop:Order", "customer=ada", "number=1", "--set", "quantity=2")
    assert read_json("get", "itemshop:Order", "customer=ada", "number=1")["quantity"] == 2


@pytest.mark.parametrize(
    "words",
    [
        ("query", "table:holdall", "gsi1_pk=Order#by_product#tea", "--index", "gsi1"),
        ("query", "table:holdall", "pk=Order#ada", "--reverse"),
        ("scan", "table:holdall", "--only", "number"),
    ],
    ids=["index", "partition", "scan"],
)
def test_the_raw_items_of_a_table_are_read_page_by_page(words: tuple[str, ...]) -> None:
    whole, found = read_json(*words)["items"], list[object]()
    after: tuple[str, ...] = ()
    for _ in range(5):
        page = read_json(*words, "--limit", "1", *after)
        found += page["items"]  # type: ignore[arg-type]
        if page["next"] is None:
            break
        after = ("--after", str(page["next"]))
    assert found == whole


MISTAKES = [
    (("get", "itemshop:Order", "custmer=ada"), 2, "the model has no such field"),
    (("get", "itemshop:Order", "customer=ada"), 2, "number"),
    (("get", "itemshop:Order", "customer=ada", "number=x"), 2, "'x' is not a valid value"),
    (("get", "itemshop:Order", "customer"), 2, "not NAME=VALUE"),
    (("get", "itemshop:Order", "number=1", "number=2"), 2, "given twice"),
    (("get", "itemshop:Nothing", "a=b"), 2, "Nothing"),
    (("get", "itemshop", "a=b"), 2, "does not name a model"),
    (("get", "customer=a b", "itemshop:Order"), 2, "write MODULE:CLASS, as in app.models:Order"),
    (("query", "itemshop:Order", "customer=ada", "--sort", "number"), 2, "is not a condition"),
    (("query", "itemshop:Order", "customer=ada", "--after", "forged"), 2, "token"),
    (("query", "itemshop:Order", "customer=ada", "--index", "by_x"), 2, "no index"),
    (("count", "itemshop:Order", "--index", "by_product"), 2, "needs the key"),
    (("put", "itemshop:Order"), 2, "but not both"),
    (("put", "itemshop:Order", "customer=ada"), 2, "number"),
    (("update", "itemshop:Order", "customer=ada", "number=1"), 2, "nothing to change"),
    (("update", "itemshop:Order", "customer=ada", "number=9", "--set", "quantity=1"), 3, "there is no Order"),
    (("update", "itemshop:Order", "customer=ada", "number=1", "--set", "number=2"), 2, "number"),
    (("get", "table:nothing", "pk=x"), 3, "there is no table nothing"),
    (("get", "table:holdall", "pk=x"), 2, "the key of table holdall is pk, sk"),
    (("query", "table:holdall", "sk=x"), 2, "the partition key is pk"),
    (("query", "table:holdall", "pk=x", "--sort", "n>1"), 2, "one range of sk"),
    (("query", "table:holdall", "pk=x", "--index", "none"), 2, "no index none"),
]


@pytest.mark.parametrize(
    ("words", "status", "problem"), MISTAKES, ids=[" ".join(each[0]) for each in MISTAKES]
)
def test_invalid_command_lines_are_refused(words: tuple[str, ...], status: int, problem: str) -> None:
    ended = call("items", *words)
    assert problem in ended.stderr
    assert ended.exit_code == status
    assert print_items("count", "itemshop:Order") == "3\n"


def test_invalid_json_is_refused() -> None:
    for typed, problem in (
        ("{", "JSON"),
        ('{"customer": "x", "number": "y", "product": "z"}', "number"),
        ("[]", "Order"),
    ):
        ended = call("items", "put", "itemshop:Order", "--file", "-", typed=typed)
        assert (ended.exit_code, problem in ended.stderr) == (2, True)
    for typed, problem in (("{", "cannot be read"), ("[]", "not an object")):
        ended = call("items", "put", "table:holdall", "--file", "-", typed=typed)
        assert (ended.exit_code, problem in ended.stderr) == (2, True)


# --- completion -------------------------------------------------------------------------------------------


def complete(*typed: str) -> list[str]:
    """The suggestions that a shell gets for the last word."""
    completion = ShellComplete(program, {}, "holdall", "_HOLDALL_COMPLETE")
    return [each.value for each in completion.get_completions(list(typed[:-1]), typed[-1])]


def test_a_shell_completes_models_artifacts_versions_aliases_and_queues() -> None:
    with Database("embedded:holdall.db") as db:
        for content in (b"x", b"y"):
            db.artifacts.publish("model", content)
        db.artifacts.put_alias("model", "stable", 1)
        db.artifacts.publish("mode", b"x")
        db.jobs.enqueue(work, queue="mail")
    assert complete("items", "get", "itemshop:") == ["itemshop:Order"]
    assert complete("migrate", "itemshop:O") == ["itemshop:Order"]
    assert complete("items", "get", "nomodule:") == []
    assert complete("artifacts", "list", "mod") == ["mode", "model"]
    assert {*complete("artifacts", "show", "model", "")} >= {"stable", "1", "2"}
    assert complete("alias", "show", "model", "st") == ["stable"]
    assert complete("jobs", "list", "--queue", "m") == ["mail"]
    assert complete("--url", "embedded:none.db", "artifacts", "list", "mod") == []
    assert not Path("none.db").exists()
    assert complete("--url", "mysql://here", "artifacts", "list", "mod") == []


def test_completion_gives_up_on_a_slow_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdall.cli.suggestion._PATIENCE", 0.01)
    os.mkfifo("pipe")
    Path("slowshop.py").write_text("with open('pipe') as pipe: pipe.read()")
    before = {*threading.enumerate()}
    assert complete("items", "get", "slowshop:") == []
    Path("pipe").write_text("now")  # the import ends
    for thread in {*threading.enumerate()} - before:
        thread.join()
