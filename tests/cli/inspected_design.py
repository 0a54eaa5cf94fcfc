# The table app, as `holdall models inspect` found it.
# Key: PK (S) and SK (S). Sample: 6 items; the table has no others.
#
# Please check:
# - Order.number: all sampled numbers are whole, so the type is int, not Decimal
# - Order.placed_at: all sampled texts are times in Holdall's own form, so the type is datetime
# - Order.created_at: all sampled numbers can be times in seconds since 1970, so it has
#   stored="epoch"
# - the templates explain the keys of every sampled item; other items can have other keys

from datetime import datetime

from holdall import Key, Model, SortKey, Template, field


class Order(
    Model,
    table="app",
    layout=Template(
        {"PK": "CUSTOMER#{customer}", "SK": "ORDER#{number:06d}"},
        GSI1={"GSI1PK": "STATUS#{status}", "GSI1SK": "{placed_at}"},
        type="entity",
    ),
):
    customer: Key[str]
    number: SortKey[int]
    created_at: datetime = field(stored="epoch")
    placed_at: datetime
    status: str


class Customer(
    Model,
    table="app",
    layout=Template({"PK": "CUSTOMER#{name}", "SK": "PROFILE"}, type="entity"),
    name="customer",
):
    name: Key[str]
    city: str
