"""Place an order with dyntastic."""

import random
import time
from datetime import UTC, datetime

from botocore.exceptions import ClientError
from dyntastic import A, Dyntastic, transaction
from pydantic import Field


class OutOfStock(Exception):
    pass


class AlreadyPlaced(Exception):
    pass


class Product(Dyntastic):
    __table_name__ = "placement-dyntastic-products"
    __hash_key__ = "name"

    name: str
    stock: int


class Order(Dyntastic):
    __table_name__ = "placement-dyntastic-orders"
    __hash_key__ = "customer"
    __range_key__ = "number"

    customer: str
    number: int
    product: str
    quantity: int
    placed_at: datetime = Field(default_factory=lambda: datetime.now(UTC))


def place(customer, number, product, quantity, attempts=20):
    for attempt in range(attempts):
        item = Product.get(product, consistent_read=True)
        if item.stock < quantity:
            raise OutOfStock(f"{item.stock} of {product} left")
        order = Order(customer=customer, number=number, product=product, quantity=quantity)
        try:
            with transaction():
                item.update(
                    A.stock.set(item.stock - quantity), condition=A.stock == item.stock, refresh=False
                )
                order.save(condition=A.number.not_exists())
            return order
        except ClientError as error:
            if error.response["Error"]["Code"] != "TransactionCanceledException":
                raise
            _, on_order = error.response["CancellationReasons"]
            if on_order["Code"] == "ConditionalCheckFailed":
                raise AlreadyPlaced(f"order {number} of {customer}") from error
            time.sleep(random.uniform(0, min(2, 0.05 * 2**attempt)))
    raise TimeoutError(f"order {number} of {customer}: too many attempts")
