"""One program in three libraries: many buyers at once order a product; stock and order change together or not at all.

Each program follows its library's documentation, and all behave alike: too little stock and a number that is taken
raise different errors; after a conflict with another buyer, the program waits for a random time and tries again.
"""

BUYERS = 10
STOCK = 6
