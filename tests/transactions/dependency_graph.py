"""The graph of who comes before whom in a history, and how to find cycles in it; `histories` draws it."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Graph", "Kind", "Link"]

Kind: TypeAlias = Literal["ww", "wr", "rw", "process", "real time"]


@dataclass(frozen=True, slots=True)
class Link:
    """The source comes before the target, and why."""

    source: int
    target: int
    kind: Kind
    key: str = ""
    value: int = 0
    after: int = 0

    def __str__(self) -> str:
        one, other, what = f"T{self.source}", f"T{self.target}", f"{self.value} to {self.key}"
        return {
            "ww": f"{one} appended {self.after} to {self.key}, and {other} appended {self.value} right after it",
            "wr": f"{one} appended {what}, and {other} read it as the last",
            "rw": f"{one} read {self.key} before {other} appended {self.value} to it",
            "process": f"{one} ended before {other} began, in the same process",
            "real time": f"{one} ended before {other} began",
        }[self.kind]


class Graph:
    """Links between transactions, and how to find ways round in them."""

    def __init__(self, links: Iterable[Link]) -> None:
        self._links: dict[int, list[Link]] = defaultdict(list)
        for link in links:
            if link.source != link.target:
                self._links[link.source].append(link)

    def steps(self, place: int, within: Collection[int], kinds: Collection[Kind]) -> list[Link]:
        """The links of these kinds from a transaction to one of those within."""
        return [link for link in self._links.get(place, ()) if link.kind in kinds and link.target in within]

    def way(self, start: int, end: int, within: Collection[int], kinds: Collection[Kind]) -> list[Link]:
        """The shortest way from one transaction to another, or round to itself; empty when there is none."""
        came: dict[int, Link] = {}
        queue = deque([start])
        while queue and end not in came:
            for link in self.steps(queue.popleft(), within, kinds):
                if link.target not in came:
                    came[link.target] = link
                    queue.append(link.target)
        if end not in came:
            return []
        way = [came[end]]
        while way[-1].source != start:
            way.append(came[way[-1].source])
        return way[::-1]

    def shortest_round(self, within: Collection[int], kinds: Collection[Kind]) -> list[Link]:
        """The shortest cycle of these kinds; empty when there is none."""
        return _shortest(self.way(place, place, within, kinds) for place in within)

    def shortest_round_through(
        self, kind: Kind, within: Collection[int], kinds: Collection[Kind]
    ) -> list[Link]:
        """The shortest cycle with one link of that kind and all others of these kinds."""
        ways = (
            [link, *back]
            for place in within
            for link in self.steps(place, within, (kind,))
            if (back := self.way(link.target, place, within, kinds))
        )
        return _shortest(ways)

    def knots(self) -> list[set[int]]:
        """The strongly connected components of more than one transaction (Tarjan's way, without recursion)."""
        reached: dict[int, int] = {}
        lowest: dict[int, int] = {}
        open_places: dict[int, None] = {}
        trail: list[tuple[int, Iterator[Link]]] = []
        knots: list[set[int]] = []

        def enter(place: int) -> None:
            reached[place] = lowest[place] = len(reached)
            open_places[place] = None
            trail.append((place, iter(self._links.get(place, ()))))

        for root in list(self._links):
            if root not in reached:
                enter(root)
            while trail:
                place, links = trail[-1]
                link = next(links, None)
                if link is None:
                    trail.pop()
                    if trail:
                        lowest[trail[-1][0]] = min(lowest[trail[-1][0]], lowest[place])
                    if lowest[place] == reached[place]:
                        knots.append(_close(open_places, place))
                elif link.target not in reached:
                    enter(link.target)
                elif link.target in open_places:
                    lowest[place] = min(lowest[place], reached[link.target])
        return [knot for knot in knots if len(knot) > 1]


def _close(open_places: dict[int, None], place: int) -> set[int]:
    """Take off the places that were opened since that one, and it too."""
    knot: set[int] = set()
    while place not in knot:
        knot.add(open_places.popitem()[0])
    return knot


def _shortest(ways: Iterable[list[Link]]) -> list[Link]:
    shortest: list[Link] = []
    for way in ways:
        if way and (not shortest or len(way) < len(shortest)):
            shortest = way
            if len(way) == 2:  # nothing is shorter
                break
    return shortest
