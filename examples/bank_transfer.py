"""A bank transfer: debit and credit in one transaction that is safe to repeat and explains a refusal.

Run it: python examples/bank_transfer.py
"""

from __future__ import annotations

from holdall import Database
from holdall.core import (
    Add,
    Compare,
    CreateTable,
    KeyAttribute,
    Minus,
    NotExists,
    PutItem,
    Scan,
    Set,
    TableSchema,
    TransactWrite,
    Update,
    UpdateItem,
    decode_item,
    encode_item,
    path,
    value,
)
from holdall.errors import TransactionCanceledError


def open_account(db: Database, owner: str, cents: int) -> None:
    item = encode_item({"owner": owner, "cents": cents})
    db.send(PutItem("accounts", item, condition=NotExists(path("owner"))))


def plan_transfer(db: Database, source: str, target: str, cents: int) -> TransactWrite:
    """Plan the whole transfer as one value: the payer, the payee, and the line in the journal."""
    token = db.port.new_id()
    pay = UpdateItem(
        "accounts",
        encode_item({"owner": source}),
        Update((Set(path("cents"), Minus(path("cents"), value(cents))),)),
        condition=Compare(">=", path("cents"), value(cents)),
        item_on_failure=True,
    )
    get = UpdateItem(
        "accounts",
        encode_item({"owner": target}),
        Update((Add(path("cents"), value(cents)),)),
        condition=Compare(">=", path("cents"), value(0)),  # the account exists
    )
    line = encode_item({"id": token, "from": source, "to": target, "cents": cents})
    return TransactWrite((pay, get, PutItem("journal", line)), token=token)


def read_balances(db: Database) -> dict[str, int]:
    pages = db.pages(Scan("accounts", consistent=True))
    accounts = (decode_item(item) for page in pages for item in page.items)
    return {account["owner"]: account["cents"] for account in accounts}


def main() -> None:
    with Database("memory:") as db:
        db.send(CreateTable(TableSchema("accounts", KeyAttribute("owner"))))
        db.send(CreateTable(TableSchema("journal", KeyAttribute("id"))))
        open_account(db, "ada", 10_000)
        open_account(db, "grace", 500)

        rent = plan_transfer(db, "ada", "grace", 2_500)
        db.send(rent)
        db.send(rent)  # sent again, as after a lost reply: it counts once
        assert read_balances(db) == {"ada": 7_500, "grace": 3_000}
        print("after the rent:", read_balances(db))

        try:
            db.send(plan_transfer(db, "grace", "ada", 1_000_000))
        except TransactionCanceledError as error:
            pay, get, line = error.reasons
            assert (pay.code, get.code, line.code) == ("ConditionalCheckFailed", "None", "None")
            assert pay.item is not None
            print(f"refused: grace has only {decode_item(pay.item)['cents']} cents")

        try:
            db.send(plan_transfer(db, "ada", "alan", 1))
        except TransactionCanceledError as error:
            codes = [reason.code for reason in error.reasons]
            assert codes == ["None", "ConditionalCheckFailed", "None"]
            print("refused: the payee's account does not exist")

        assert read_balances(db) == {"ada": 7_500, "grace": 3_000}
        assert db.send(Scan("journal", count_only=True)).count == 1


if __name__ == "__main__":
    main()
