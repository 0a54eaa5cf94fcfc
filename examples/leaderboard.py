"""A leaderboard: scores per player in the table, the ranking of all players in an index, read page by page.

Run it: python examples/leaderboard.py
"""

from __future__ import annotations

import random

from holdall import Database
from holdall.core import (
    Compare,
    CreateTable,
    IndexSchema,
    Item,
    KeyAttribute,
    KeyCondition,
    NotExists,
    Or,
    Query,
    Set,
    TableSchema,
    Update,
    UpdateItem,
    decode_item,
    encode_item,
    path,
    value,
)
from holdall.errors import ConditionFailedError

SCHEMA = TableSchema(
    "scores",
    partition=KeyAttribute("game"),
    sort=KeyAttribute("player"),
    indexes=(IndexSchema("by_score", KeyAttribute("game"), KeyAttribute("best", "N")),),
)


def record(db: Database, game: str, player: str, score: int) -> bool:
    """Keep the score if it is the player's best; return whether it was."""
    better = Or((NotExists(path("best")), Compare("<", path("best"), value(score))))
    key = encode_item({"game": game, "player": player})
    try:
        db.send(UpdateItem("scores", key, Update((Set(path("best"), value(score)),)), condition=better))
    except ConditionFailedError:
        return False
    return True


def query_ranking(game: str, after: Item | None = None) -> Query:
    """Query ten players, best first, optionally after a given item."""
    partition = KeyCondition("game", {"S": game})
    return Query("scores", partition, index="by_score", reverse=True, limit=10, start_after=after)


def main() -> None:
    dice = random.Random(7)
    with Database("memory:") as db:
        db.send(CreateTable(SCHEMA))
        best: dict[str, int] = {}
        for _ in range(200):
            player, score = f"player-{dice.randrange(25):02d}", dice.randrange(10_000)
            is_best = record(db, "chess", player, score)
            assert is_best == (score > best.get(player, -1))
            best[player] = max(score, best.get(player, -1))

        first = db.send(query_ranking("chess"))
        print("the top ten:")
        for place, item in enumerate(map(decode_item, first.items), start=1):
            print(f"{place:3}. {item['player']}  {item['best']:,}")

        # A web page needs only the page's last_key for its "next" link.
        second = db.send(query_ranking("chess", after=first.last_key))
        print(f"place eleven: {decode_item(second.items[0])['player']}")

        shown = [decode_item(item) for page in db.pages(query_ranking("chess")) for item in page.items]
        assert {row["player"]: row["best"] for row in shown} == best
        assert [row["best"] for row in shown] == sorted(best.values(), reverse=True)


if __name__ == "__main__":
    main()
