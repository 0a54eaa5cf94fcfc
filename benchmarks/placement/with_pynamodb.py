"""Place an order with PynamoDB."""

import random
import time
from datetime import UTC, datetime

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UTCDateTimeAttribute
from pynamodb.connection import Connection
from pynamodb.exceptions import TransactWriteError
from pynamodb.models import Model
from pynamodb.transactions import TransactWrite


class OutOfStock(Exception):
    pass


class AlreadyPlaced(Exception):
    pass


class Product(Model):
    class Meta:
        table_name = "placement-pynamodb-products"
        billing_mode = "PAY_PER_REQUEST"

    name = UnicodeAttribute(hash_key=True)
    stock = NumberAttribute()


class Order(Model):
    class Meta:
        table_name = "placement-pynamodb-orders"
        billing_mode = "PAY_PER_REQUEST"

    customer = UnicodeAttribute(hash_key=True)
    number = NumberAttribute(range_key=True)
    product = UnicodeAttribute()
    quantity = NumberAttribute()
    placed_at = UTCDateTimeAttribute(default_for_new=lambda: datetime.now(UTC))


def place(customer, number, product, quantity, attempts=20):
    for attempt in range(attempts):
        item = Product.get(product, consistent_read=True)
        if item.stock < quantity:
            raise OutOfStock(f"{item.stock} of {product} left")
        order = Order(customer, number, product=product, quantity=quantity)
        try:
            with TransactWrite(connection=Connection()) as transaction:
                transaction.update(
                    item,
                    actions=[Product.stock.set(Product.stock - quantity)],
                    condition=Product.stock == item.stock,
                )
                transaction.save(order, condition=Order.number.does_not_exist())
            return order
        except TransactWriteError as error:
            if error.cause_response_code != "TransactionCanceledException":
                raise
            on_order, _ = error.cancellation_reasons  # puts come before updates, whatever the order above
            if on_order is not None and on_order.code == "ConditionalCheckFailed":
                raise AlreadyPlaced(f"order {number} of {customer}") from error
            time.sleep(random.uniform(0, min(2, 0.05 * 2**attempt)))
    raise TimeoutError(f"order {number} of {customer}: too many attempts")
