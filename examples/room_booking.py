"""Room bookings that cannot overlap: a guard item makes the question "is the room free?" part of the transaction.

Run it: python examples/room_booking.py
"""

from __future__ import annotations

import asyncio
from datetime import date, timedelta
from itertools import pairwise

from holdall import AsyncDatabase, AsyncTransaction, Key, Model, SortKey


class Room(Model):
    """The guard: every change to a room's bookings changes this item too, so two of them always collide."""

    name: Key[str]
    bookings: int = 0


class Booking(Model):
    room: Key[str]
    arrival: SortKey[date]
    nights: int
    guest: str

    @property
    def departure(self) -> date:
        return self.arrival + timedelta(days=self.nights)


class RoomTakenError(Exception):
    """Another guest has the room. It has no ``retryable`` attribute, so `run` raises it at once."""


async def book(tx: AsyncTransaction, name: str, arrival: date, nights: int, guest: str) -> Booking:
    room = await tx.get_one(Room, name)
    room.bookings += 1
    wanted = Booking(room=name, arrival=arrival, nights=nights, guest=guest)
    async for other in tx.query(Booking, room=name):
        if other.arrival < wanted.departure and wanted.arrival < other.departure:
            raise RoomTakenError(f"{guest}: {other.guest} has the room until {other.departure}")
    return tx.create(wanted)


async def main() -> None:
    may = date(2026, 5, 1)
    async with AsyncDatabase("memory:") as db:
        async with db.transaction() as tx:
            tx.create(Room, name="blue")

        wishes = [("Ada", 0, 4), ("Bo", 2, 3), ("Grace", 3, 2), ("Alan", 5, 2)]
        tasks = [
            db.run(book, "blue", may + timedelta(days=day), nights, guest) for guest, day, nights in wishes
        ]
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, RoomTakenError):
                print("refused:", outcome)
            elif isinstance(outcome, BaseException):
                raise outcome

        bookings = await db.query(Booking, room="blue").all()
        for booking in bookings:
            print(f"{booking.arrival} to {booking.departure}: {booking.guest}")
        for earlier, later in pairwise(bookings):
            assert earlier.departure <= later.arrival
        assert (await db.get_one(Room, "blue")).bookings == len(bookings)


if __name__ == "__main__":
    asyncio.run(main())
