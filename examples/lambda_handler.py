"""A Lambda function behind an HTTP API: it opens the database once per environment, and each event has a transaction.

Run it: python examples/lambda_handler.py. It replays the events in examples/events. On AWS the handler's name is
``lambda_handler.handler``, and HOLDALL_URL=dynamodb://my-app is set in the function's environment. Region and
credentials come from Lambda.
"""

import json
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge
from pydantic import BaseModel, TypeAdapter, ValidationError

from holdall import Database, Key, Model, SortKey, Transaction
from holdall.errors import HoldallError
from holdall.web import Problem, find_problem

db = Database()  # opened once, when Lambda imports the module, and used for every event of this environment


class Product(Model):
    name: Key[str]
    stock: Annotated[int, Ge(0)] = 0


class Order(Model):
    customer: Key[str]
    number: SortKey[int]
    product: str
    quantity: Annotated[int, Ge(1)] = 1


class Wish(BaseModel):
    product: str
    quantity: Annotated[int, Ge(1)] = 1


Event = dict[str, Any]
ORDER = TypeAdapter(Order)
INVALID = Problem(422, "Invalid value", "The body is not an order.")


def place(tx: Transaction, event: Event) -> tuple[int, Any]:
    """Place an order for the customer whom the authorizer names; the request itself cannot choose the customer."""
    wish = Wish.model_validate_json(read_body(event))
    customer = event["requestContext"]["authorizer"]["jwt"]["claims"]["sub"]
    number = int(event["pathParameters"]["number"])
    order = tx.get(Order, customer=customer, number=number)
    if order is None:  # a request that the client sends twice is one order
        product = tx.get_one(Product, wish.product)
        if product.stock < wish.quantity:
            return 409, {"title": "Sold out", "left": product.stock}
        product.stock -= wish.quantity
        order = tx.create(Order, customer=customer, number=number, **wish.model_dump())
    return 201, ORDER.dump_python(order, mode="json")


def show(tx: Transaction, event: Event) -> tuple[int, Any]:
    product = tx.get_one(Product, event["pathParameters"]["name"])
    return 200, {"name": product.name, "stock": product.stock}


ROUTES: dict[str, Callable[[Transaction, Event], tuple[int, Any]]] = {
    "PUT /orders/{number}": place,
    "GET /products/{name}": show,
}


def handler(event: Event, context: object) -> dict[str, Any]:
    """Handle an event of API Gateway's payload format 2.0; Lambda calls this function."""
    try:
        status, content = db.run(ROUTES[event["routeKey"]], event)  # runs again after contention
    except (HoldallError, ValidationError) as error:
        problem = INVALID if isinstance(error, ValidationError) else find_problem(error)
        if problem is None:
            raise  # not a client error: Lambda logs it, and API Gateway answers with a 500
        body = problem.encode(event["rawPath"]).decode()
        return {"statusCode": problem.status, "headers": problem.headers, "body": body}
    headers = {"content-type": "application/json"}
    return {"statusCode": status, "headers": headers, "body": json.dumps(content)}


def read_body(event: Event) -> bytes:
    body = event.get("body", "")
    return b64decode(body) if event["isBase64Encoded"] else body.encode()


def main() -> None:
    db.run(lambda tx: setattr(tx.get(Product, "tea", create_if_missing=True), "stock", 3))
    for file in sorted((Path(__file__).parent / "events").glob("*.json")):
        reply = handler(json.loads(file.read_text()), None)
        print(f"{file.stem}: {reply['statusCode']} {reply['body']}")


if __name__ == "__main__":
    main()
