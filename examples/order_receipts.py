"""Receipts for orders: the order's transaction enqueues the receipt as a job, so neither exists without the other.

Run it: python examples/order_receipts.py. The worker runs in this process; in production, use ``holdall worker``.
"""

from __future__ import annotations

import threading

import holdall
from holdall import Database, Key, Model, Transaction
from holdall.worker import JobEvent


class Order(Model):
    number: Key[int]
    customer: str
    cents: int
    receipts: int = 0


class MailServer:
    """A mail server that is down at first, and recognizes a message by its id."""

    def __init__(self) -> None:
        self.calls = 0
        self.delivered: dict[str, str] = {}

    def send(self, text: str, message_id: str) -> None:
        self.calls += 1
        if self.calls <= 2:
            raise ConnectionError("the mail server does not answer")
        self.delivered[message_id] = text


mails = MailServer()


@holdall.job("send-receipt", retries=5, backoff=0.05)
def send_receipt(order: Order) -> None:
    """Send a mail, which can happen twice: the server recognizes a repetition by the job's id."""
    mails.send(f"Dear {order.customer}, you paid {order.cents / 100:.2f}.", holdall.current_job().id)


@holdall.job("count-receipt", transactional=True)
def count_receipt(tx: Transaction, order: Order) -> None:
    """Count the receipt exactly once: one transaction changes the order and ends the job."""
    order.receipts += 1


class TooExpensiveError(Exception):
    """Raised after the jobs were enqueued; the transaction fails, so they never exist."""


def place(tx: Transaction, number: int, customer: str, cents: int) -> None:
    order = tx.create(Order, number=number, customer=customer, cents=cents)
    tx.enqueue(send_receipt, order)
    tx.enqueue(count_receipt, order)
    if cents > 10_000:
        raise TooExpensiveError


def main() -> None:
    orders = [(1, "Ada", 1_250), (2, "Grace", 500), (3, "Alan", 1_000_000)]
    left = threading.Semaphore(0)

    def watch(event: JobEvent) -> None:
        if event.kind == "failed":
            print(f"{event.name}, attempt {event.attempt}: {event.error}; it will run again")
        elif event.kind == "succeeded":
            left.release()

    with Database("memory:") as db:
        for order in orders:
            try:
                db.run(place, *order)
            except TooExpensiveError:
                print(f"order {order[0]} was not placed, and no receipt is sent")
        with db.worker(hooks=[watch], poll_interval=0.05, concurrency=1):
            for _ in range(4):
                assert left.acquire(timeout=60)
        for text in sorted(mails.delivered.values()):
            print(text)
        assert sorted(mails.delivered.values()) == [
            "Dear Ada, you paid 12.50.",
            "Dear Grace, you paid 5.00.",
        ]
        assert [db.get_one(Order, number).receipts for number in (1, 2)] == [1, 1]
        assert db.get(Order, 3) is None
        assert db.jobs.list() == []


if __name__ == "__main__":
    import logging

    logging.getLogger("holdall.worker").addHandler(logging.NullHandler())  # the hook prints everything
    main()
