"""The graph of the order between transactions of a history, and the search for cycles; `histories` builds it."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Graph", "Kind", "Link"]

Kind: TypeAlias = Literal["ww", "wr", "rw", "process", "real time"]


@dataclass(frozen=True, slots=True)
class Link:
    """An edge: the source comes before the target, for a reason."""

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
    """Links between transactions, and the search for cycles of links."""

    def __init__(self, links: Iterable[Link]) -> None:
        self._links: dict[int, list[Link]] = defaultdict(list)
        for link in links:
            if link.source != link.target:
                self._links[link.source].append(link)

    def list_links(self, place: int, within: Collection[int], kinds: Collection[Kind]) -> list[Link]:
        """Return the links of these kinds from a transaction to those within."""
        return [link for link in self._links.get(place, ()) if link.kind in kinds and link.target in within]

    def find_path(self, start: int, end: int, within: Collection[int], kinds: Collection[Kind]) -> list[Link]:
        """Return the shortest path between two transactions, or back to the same one; empty if there is none."""
        reached_by: dict[int, Link] = {}
        queue = deque([start])
        while queue and end not in reached_by:
            for link in self.list_links(queue.popleft(), within, kinds):
                if link.target not in reached_by:
                    reached_by[link.target] = link
                    queue.append(link.target)
        if end not in reached_by:
            return []
        path = [reached_by[end]]
        while path[-1].source != start:
            path.append(reached_by[path[-1].source])
        return path[::-1]

    def find_shortest_cycle(self, within: Collection[int], kinds: Collection[Kind]) -> list[Link]:
        """Return the shortest cycle of links of these kinds; empty if there is none."""
        return _find_shortest(self.find_path(place, place, within, kinds) for place in within)

    def find_shortest_cycle_through(
        self, kind: Kind, within: Collection[int], kinds: Collection[Kind]
    ) -> list[Link]:
        """Return the shortest cycle with one link of the first kind and all others of these kinds."""
        paths = (
            [link, *back]
            for place in within
            for link in self.list_links(place, within, (kind,))
            if (back := self.find_path(link.target, place, within, kinds))
        )
        return _find_shortest(paths)

    def find_components(self) -> list[set[int]]:
        """Return the strongly connected components of more than one transaction (Tarjan's algorithm, iteratively)."""
        reached: dict[int, int] = {}
        lowest: dict[int, int] = {}
        open_transactions: dict[int, None] = {}
        trail: list[tuple[int, Iterator[Link]]] = []
        components: list[set[int]] = []

        def enter(place: int) -> None:
            reached[place] = lowest[place] = len(reached)
            open_transactions[place] = None
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
                        components.append(_close_component(open_transactions, place))
                elif link.target not in reached:
                    enter(link.target)
                elif link.target in open_transactions:
                    lowest[place] = min(lowest[place], reached[link.target])
        return [component for component in components if len(component) > 1]


def _close_component(open_transactions: dict[int, None], place: int) -> set[int]:
    """Remove the transactions that were opened since this one, and this one."""
    component: set[int] = set()
    while place not in component:
        component.add(open_transactions.popitem()[0])
    return component


def _find_shortest(paths: Iterable[list[Link]]) -> list[Link]:
    shortest: list[Link] = []
    for path in paths:
        if path and (not shortest or len(path) < len(shortest)):
            shortest = path
            if len(path) == 2:  # no cycle is shorter
                break
    return shortest
