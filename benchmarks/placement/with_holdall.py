"""Place an order with Holdall: check and reduce the stock and store the order, both or neither, under contention."""

from datetime import UTC, datetime

from holdall import Database, Key, Model, SortKey, field

db = Database("dynamodb://placement")


class OutOfStock(Exception):
    pass


class Product(Model):
    name: Key[str]
    stock: int


class Order(Model):
    customer: Key[str]
    number: SortKey[int]
    product: str
    quantity: int
    placed_at: datetime = field(default_factory=lambda: datetime.now(UTC))


@db.transactional
def place(tx, customer, number, product, quantity):
    item = tx.get_one(Product, product)
    if item.stock < quantity:
        raise OutOfStock(f"{item.stock} of {product} left")
    item.stock -= quantity
    return tx.create(Order, customer=customer, number=number, product=product, quantity=quantity)
