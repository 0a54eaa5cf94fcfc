# mypy: ignore-errors
"""The scenes of ``make demo``: one program in cells, which ``scripts/demo.py`` shows and runs one after another.

A cell begins with ``# %%`` and its title; the comments below it are its introduction. ``lake.jpg`` is a picture.
"""

import asyncio
import contextlib
import multiprocessing
import secrets
import time
import timeit
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import holdall
from holdall import Archive, Database, Index, Key, Model, SortKey, Template, Variant, col, has_one_attached
from holdall.core import GetItem, PutItem, decode_item, encode_item
from holdall.errors import TransactionFailedError

fork = multiprocessing.get_context("fork")


# %% A model and a transaction
# A model is a class with annotations. The orders are written together, or not at all.
class Order(Model, indexes=[Index("by_product", key=["product"], sort_key=["quantity"])]):
    customer: Key[str]
    number: SortKey[int]
    product: str
    quantity: int


db = Database("embedded:shop.db", files="file:files", secret="a long random text")
with db.transaction() as tx:
    for number in (1, 2, 3):
        tx.create(Order, customer="ada", number=number, product="coffee", quantity=1000)
print(db.get(Order, customer="ada", number=1))

# %% A query on an index
# Thirty orders in two batches, then the three largest of tea. The index is sorted by quantity, so only these are read.
with db.bulk(Order) as bulk:
    for number in range(30):
        kind, size = ("cocoa", "tea")[number % 2], number * 7 % 31
        bulk.put(Order(customer="grace", number=number, product=kind, quantity=size))

top = db.query(Order, index="by_product", product="tea", reverse=True, limit=3).all()
for order in top:
    print(f"{order.customer}'s order {order.number}: {order.quantity} bags of tea")

# %% A conflict, explained
# Two transactions change the same field. The one that commits last fails; its error names the field and both values.
try:
    with db.transaction() as tx:
        order = tx.get_one(Order, customer="grace", number=5)
        with db.transaction() as other:  # another request, at the same moment
            other.get_one(Order, customer="grace", number=5).quantity = 6
        order.quantity += 1
except TransactionFailedError as error:
    print(error)


# %% A process killed at work
# A second process moves bags from one order to another, one per transaction, until SIGKILL ends it. No bag is lost.
def move_bags():
    while True:
        with db.transaction() as tx:
            tx.get_one(Order, customer="ada", number=1).quantity -= 1
            tx.get_one(Order, customer="ada", number=2).quantity += 1


(child := fork.Process(target=move_bags)).start()
child.join(timeout=0.3)  # let it work for a moment
child.kill()
child.join()
print(f"exit code {child.exitcode}", *db.query(Order, customer="ada", limit=2), sep="\n")

# %% Fifty tasks, one counter
# Fifty tasks read the same quantity and subtract one. A task whose commit collides runs again, until all are through.
attempts, commits = [], []


async def take_a_bag(tx, task):
    attempts.append((task, time.perf_counter()))
    (await tx.get_one(Order, customer="ada", number=3)).quantity -= 1
    tx.after_commit(lambda: commits.append((task, time.perf_counter())))


async def race():
    await asyncio.gather(*(db.aio.run(take_a_bag, task) for task in range(50)))


asyncio.run(race())
left = db.get_one(Order, customer="ada", number=3).quantity
print(f"{len(commits)} commits in {len(attempts)} attempts; {left} of 1000 bags are left")


# %% A job, committed with its order
# The receipt is enqueued in the transaction. Edgar's card is declined, so neither his order nor his receipt exists.
@holdall.job("send-receipt", retries=5)
def send_receipt(order: Order):
    print(f"Dear {order.customer}, your {order.product} is on its way.")


for customer, card in [("mary", "valid"), ("edgar", "declined")]:
    with contextlib.suppress(ValueError), db.transaction() as tx:
        order = tx.create(Order, customer=customer, number=1, product="tea", quantity=2)
        tx.enqueue(send_receipt, order)
        if card == "declined":
            raise ValueError("the card was declined")
metrics = db.worker().drain()  # in production: holdall worker


# %% A photo, its thumbnail and a signed URL
# The file is committed with its item. A variant is made on first use and kept. A changed URL is refused.
class Postcard(Model):
    title: Key[str]
    photo = has_one_attached(variants={"thumb": Variant(resize_to_fill=(144, 144))})


with db.transaction() as tx:
    tx.create(Postcard, title="By the lake").photo.attach(Path("lake.jpg"))

postcard = db.get_one(Postcard, "By the lake", include=["photo"])
thumb = db.blobs.representation(postcard.photo.variant("thumb"))
print(f"{postcard.photo.blob.byte_size:,} bytes; the thumbnail has {thumb.byte_size:,}")
print(f"{postcard.photo.variant('thumb').url():.62}…")

# %% A canary and a rollback
# A published version never changes. The alias serves version 2 to a tenth of the users, always the same ones.
for content in (b"the first edition", b"the second edition"):
    db.artifacts.publish("web-shop", content)
db.artifacts.put_alias("web-shop", "prod", version=1)
canary = db.artifacts.put_alias("web-shop", "prod", weights={1: 90, 2: 10})
served = Counter(canary.resolve(key=f"user-{number}") for number in range(10_000))
print(f"version 1: {served['1']:,} users, version 2: {served['2']:,} users")
restored = db.artifacts.rollback_alias("web-shop", "prod", reason="too many errors")
print(f"after the rollback: version {restored.resolve(key='user-1')} for every user")


# %% Old items in the archive
# Items older than a year move to files, where a byte costs a tenth. Code reads and writes them as before.
class Visit(Model, archive=Archive(timestamp="at", after_days=365)):
    page: Key[str]
    at: SortKey[datetime]
    trace: str


with db.transaction() as tx:
    for month in range(24):
        at = datetime.now(UTC) - timedelta(days=30 * month)
        tx.create(Visit, page="home", at=at, trace=secrets.token_hex(6_000))
report, visits = db.archive.run(Visit), db.query(Visit, page="home").all()
print(f"{report.archived} visits archived; {len(visits)} visits read, hot and cold")


# %% A table of another program
# A template describes the keys that another program writes. Holdall adds to its item, and need not read it for that.
class Parcel(Model, table="depot", layout=Template(pk="PARCEL#{id}", sk="STATE")):
    id: Key[str]
    weight: int


db.create(Parcel, id="6", weight=2)
key = {"pk": "PARCEL#7", "sk": "STATE"}  # the next item is written by the other program
theirs = {**key, "id": "7", "weight": 3, "van": "B"}
db.send(PutItem("depot", encode_item(theirs)))
db.update(Parcel.key("7"), col(Parcel.weight).increment_by(1))
print(decode_item(db.send(GetItem("depot", encode_item(key))).item))


# %% The same code on another backend
# A URL names the database: memory in tests, a file on one machine, dynamodb://table with s3://bucket on AWS.
def add_a_bag(tx):
    key = {"customer": "bob", "number": 1}
    order = tx.get(Order, **key) or tx.create(Order, **key, product="tea", quantity=0)
    order.quantity += 1


seconds = {}
for url in ("memory:", "embedded:branch.db"):
    with Database(url, manage_table=True) as branch:
        seconds[url] = timeit.timeit(lambda: branch.run(add_a_bag), number=50) / 50
        print(url, "->", branch.get_one(Order, customer="bob", number=1).quantity, "bags")
