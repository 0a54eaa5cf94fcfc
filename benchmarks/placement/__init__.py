"""One program in three libraries: an order is placed for what is in stock, all or nothing, by many buyers at once.

Each is written as its library's documentation suggests, and behaves the same: too little stock and a number that is
taken are errors of their own; a conflict with another buyer is tried again after a random pause.
"""

BUYERS = 10
STOCK = 6
