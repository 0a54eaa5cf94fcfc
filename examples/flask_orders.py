"""Orders over HTTP with Flask: each request has a transaction, which code outside the views can find.

Run it: python examples/flask_orders.py (needs flask). It sends requests to itself. To serve it, pass the result of
``create_app`` to a server such as gunicorn.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

from annotated_types import Ge
from flask import Flask, abort, request

from holdall import Database, Key, Model, SortKey, Transaction, current_transaction
from holdall.web import retry_on_contention
from holdall.web.wsgi import TransactionMiddleware


class Order(Model):
    """An order of a customer."""

    customer: Key[str]
    number: SortKey[int]
    product: str
    quantity: Annotated[int, Ge(0)] = 1


def take(customer: str, number: int, count: int) -> Order | None:
    """Reduce the quantity of an order: code outside the views, which joins the current transaction."""
    tx = current_transaction(Transaction)
    order = tx.get(Order, customer=customer, number=number)
    if order is None or order.quantity < count:
        return None
    order.quantity -= count
    return order


def create_app(db: Database) -> Flask:
    app = Flask("orders")
    app.wsgi_app = TransactionMiddleware(app.wsgi_app, db)  # type: ignore[method-assign]

    @app.post("/orders")
    def create() -> tuple[dict[str, Any], int]:
        return current_transaction().create(Order, **request.get_json()).to_dict(), 201

    @app.get("/orders/<customer>")
    def find_all(customer: str) -> list[dict[str, Any]]:
        return [order.to_dict() for order in current_transaction().query(Order, customer=customer)]

    @app.post("/orders/<customer>/<int:number>/ship")
    @retry_on_contention
    def ship(customer: str, number: int) -> dict[str, Any]:
        order = take(customer, number, 1)
        if order is None:
            abort(409, "there is nothing left to ship")
        return order.to_dict()

    return app


def main() -> None:
    with Database("memory:") as db:
        app = create_app(db)
        order = {"customer": "ada", "number": 1, "product": "tea", "quantity": 3}
        client = app.test_client()
        created = client.post("/orders", json=order)
        print(created.status, created.json)
        again = client.post("/orders", json=order)
        print(again.status, again.text.strip())
        assert (created.status_code, again.status_code) == (201, 409)

        def ship(_: int) -> int:
            return app.test_client().post("/orders/ada/1/ship").status_code

        with ThreadPoolExecutor(4) as pool:
            statuses = sorted(pool.map(ship, range(4)))
        print("shipped at once, 4 of 3:", statuses)
        assert statuses == [200, 200, 200, 409]
        left = client.get("/orders/ada")
        print(left.status, left.json)
        assert left.json == [{**order, "quantity": 0}]


if __name__ == "__main__":
    main()
