# mypy: ignore-errors
"""What type checkers know about transactions in sync code. E: an error, R: a revealed type."""

from __future__ import annotations

from typing import reveal_type

from holdall import Database, Key, Model, SortKey, Transaction, field


class User(Model):
    name: str


class Order(Model):
    customer: Key[str]
    number: SortKey[int] = field(default=1)
    quantity: int = 1
    note: str | None = None


class Line(Model):
    product: str = ""


class Room(Model):
    size: int = 1


def create(tx: Transaction, order: Order) -> None:
    reveal_type(tx.create(User, name="Ada"))  # R: User
    reveal_type(tx.create(Order, customer="ada"))  # R: Order
    reveal_type(tx.create(order))  # R: Order
    tx.create(User)  # E
    tx.create(User, nmae="Ada")  # E
    tx.create(User, name="Ada", nmae="Ada")  # E
    tx.create(User, name=1)  # E
    tx.create(Order, customer="ada", quantity="1")  # E
    tx.create(str)  # E


def get(tx: Transaction) -> None:
    reveal_type(tx.get(Order, "ada"))  # R: Order | None
    reveal_type(tx.get(Order, customer="ada", number=1))  # R: Order | None
    reveal_type(tx.get(Order.key("ada")))  # R: Order | None
    reveal_type(tx.get(Order.key("ada"), consistent=False))  # R: Order | None
    reveal_type(tx.get(Order, "ada", create_if_missing=True))  # R: Order
    reveal_type(tx.get(Order, "ada", create_if_missing={"quantity": 2}))  # R: Order
    reveal_type(tx.get(Order.key("ada"), create_if_missing=True))  # R: Order
    reveal_type(tx.get(Order.key("ada"), create_if_missing=False))  # R: Order | None
    reveal_type(tx.get_one(Order, "ada"))  # R: Order
    reveal_type(tx.get_one(Order, customer="ada", number=1))  # R: Order
    reveal_type(tx.get_one(Order.key("ada")))  # R: Order
    reveal_type(tx.get_all([Order.key("ada"), Order.key("bob")]))  # R: list[Order | None]
    reveal_type(tx.get(Order.key("ada"), only=[Order.quantity]))  # R: Order | None
    reveal_type(tx.get_one(Order.key("ada"), only=["note"]))  # R: Order
    reveal_type(tx.get_all([Order.key("ada")], only=["note"]))  # R: list[Order | None]
    tx.get(Order.key("ada"), only=["note"], create_if_missing=True)  # E
    tx.get(Order.key("ada"), only=3)  # E
    print(tx.get(Order, "ada").quantity)  # E: quantity
    tx.get(str, "ada")  # E: str
    tx.get("ada")  # E
    tx.get(Order, "ada", consistant=False)  # E
    tx.get_all([Order])  # E


def query(tx: Transaction) -> None:
    for order in tx.query(Order, customer="ada"):
        reveal_type(order)  # R: Order
        order.quantity += 1
    reveal_type(tx.query(Order, customer="ada").all())  # R: list[Order]
    reveal_type(list(tx.query(Order, customer="ada", limit=3, reverse=True)))  # R: list[Order]
    tx.query(Order, customer="ada", limit="3")  # E
    reveal_type(tx.query((Order, User), customer="ada").all())  # R: list[Order | User]
    reveal_type(tx.query((Order, User, Line), customer="ada").first())  # R: Order | User | Line | None
    reveal_type(list(tx.query([Order], customer="ada", reverse=True)))  # R: list[Order]
    four = (Order, User, Line, Room)
    reveal_type(tx.query(four, customer="ada").first())  # R: Order | User | Line | Room | None
    tx.query((Order, 1), customer="ada")  # E
    tx.query((Order, User), customer="ada", limit="3")  # E


def blind(tx: Transaction, order: Order) -> None:
    tx.update(Order, {"customer": "ada", "quantity": 1}, {"quantity": 2})
    tx.create_or_put(Order, {"customer": "ada"}, {"quantity": 2})
    tx.delete(order, order.key, Order.key("ada"))
    tx.update(Order, {"customer": "ada"})  # E
    tx.update(order, {"customer": "ada"}, {"quantity": 2})  # E
    tx.delete(Order)  # E
    tx.delete("ada")  # E


def changes(tx: Transaction) -> None:
    for change in tx.changes():
        reveal_type(change.before)  # R: dict[str, Any] | None


def ship(tx: Transaction, number: int, *, note: str = "") -> Order:
    return tx.get_one(Order, customer="ada", number=number)


def run(db: Database) -> None:
    reveal_type(db.run(ship, 1))  # R: Order
    reveal_type(db.run(lambda tx: tx.get(Order, "ada")))  # R: Order | None
    db.run(ship, 1, retries=4, initial_backoff=0.1, max_backoff=0.5, timeout=None, read_only=True)
    db.run(ship, "1")  # E
    db.run(ship)  # E
    db.run(ship, 1, retrys=4)  # E: retrys
    db.run(ship, 1, retries="4")  # E: int
    db.run(1)  # E


def transactional(db: Database) -> None:
    shipped = db.transactional(ship)
    reveal_type(shipped(1))  # R: Order
    shipped(1, note="soon")
    shipped("1")  # E: int
    shipped(1, nite="soon")  # E: nite

    @db.transactional
    def plain(tx: Transaction, customer: str) -> int:
        return tx.get_one(Order, customer).quantity

    reveal_type(plain("ada"))  # R: int
    plain(1)  # E: str

    @db.transactional(retries=5)
    def patient(tx: Transaction, customer: str) -> int:
        return tx.get_one(Order, customer).quantity

    reveal_type(patient("ada"))  # R: int
    patient(1)  # E: str
    db.transactional(retrys=5)  # E


def outside(db: Database) -> None:
    reveal_type(db.get(Order, "ada"))  # R: Order | None
    reveal_type(db.get_one(Order.key("ada")))  # R: Order
    reveal_type(db.get_all([Order.key("ada")]))  # R: list[Order | None]
    db.get(Order, "ada", create_if_missing=True)  # E
    with db.transaction(read_only=True) as tx:
        reveal_type(tx)  # R: Transaction
        tx.query(Order, customer="ada", lock="rows")
        tx.query(Order, customer="ada", lock="row")  # E
    reveal_type(db.aio)  # R: AsyncDatabase


def many(db: Database, order: Order, user: User) -> None:
    with db.bulk(Order) as bulk:
        reveal_type(bulk)  # R: Bulk[Order]
        bulk.put(order)
        bulk.delete(order)
        bulk.delete(Order.key("ada"))
        bulk.put(user)  # E
        bulk.put(Order.key("ada"))  # E
        bulk.delete(User.key("ada"))  # E
    reveal_type((db.bulk(Order).put_all([order])).put)  # R: int
    db.bulk(Order).put_all([user])  # E
    reveal_type((db.update_all(Order, {"note": None}, customer="ada")).changed)  # R: int
    db.update_all(Order, lambda order: order.quantity, customer="ada")
    db.update_all(Order, lambda order: order.quantities, customer="ada")  # E
    db.update_all(Order, 5, customer="ada")  # E
    reveal_type((db.move(Order, User, dry_run=True)).copied)  # R: int
    db.move(Order, User, lambda order: {"name": order.note}, rate=5)
    db.move(Order, User, lambda order: order.quantities)  # E
    db.move(Order, User, lambda order: [order.note])  # E
    db.move(Order, User, rates=5)  # E
    reveal_type((db.delete_all(Order, customer="ada", checkpoint="x")).changed)  # R: int
    db.delete_all(Order, customer="ada", checkpoint=5)  # E
