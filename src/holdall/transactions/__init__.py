"""Transactions: what was read and changed, planned as one atomic write, sent, settled, tried again."""

from holdall.transactions.api import AsyncTransaction, Transaction
from holdall.transactions.participant import Participant
from holdall.transactions.query import AsyncRows, Rows
from holdall.transactions.retry import RunArguments
from holdall.transactions.unit import ItemChange

__all__ = [
    "AsyncRows",
    "AsyncTransaction",
    "ItemChange",
    "Participant",
    "Rows",
    "RunArguments",
    "Transaction",
]
