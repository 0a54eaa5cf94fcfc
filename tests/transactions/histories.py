"""What is wrong with a history of list-append transactions: a checker, pure, knowing nothing of the store.

Every transaction appends values, each of them once in the whole history, to lists under keys, and reads whole lists.
A list that was read tells the order in which its values came, so the versions of each key and who made them are known,
and with them who depends on whom:

- *ww*: one transaction's append comes right after another's;
- *wr*: a transaction read a list that ends with another's append;
- *rw*: a transaction read a list without the append that came next, so it comes before the transaction that made it;
- *process* and *real time*: it ended before the other began (in the same process; anywhere).

A history has a serial order (one that also agrees with the order edges asked for) exactly when no list is impossible
in itself and the graph has no cycle; `check` gives everything that says otherwise, by the names of the theory:

================ ======================================================================================
``G1a``          an aborted transaction's append was read
``G1b``          a transaction's append was read without its next one to the same key
``internal``     a transaction did not see its own appends, or saw two different lists under one key
``duplicate``    a list holds a value twice
``garbage``      a list holds a value that no transaction appended
``order``        two lists of one key disagree about what came first
``lost append``  a committed append is not in the final state
``G0``           a cycle of ww
``G1c``          a cycle of ww and wr
``G-single``     a cycle with one rw (a stale read that the reader acted upon)
``G2``           a cycle with several rw (write skew)
================ ======================================================================================

A cycle that needs order edges says so after its name: ``G-single-process``, ``G0-realtime``. A transaction whose
outcome is unknown counts as committed if one of its appends was read by one that counts, else not at all. The final
state is one more transaction that read every key after all others had ended; without it, lost appends go unnoticed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Literal, TypeAlias

from dependency_graph import Graph, Kind, Link

__all__ = [
    "Anomaly",
    "Append",
    "Operation",
    "Order",
    "Outcome",
    "Read",
    "Record",
    "Transaction",
    "Values",
    "check",
]

Values: TypeAlias = tuple[int, ...]
Order: TypeAlias = Literal["process", "real time"]


@dataclass(frozen=True, slots=True)
class Read:
    """The whole list under a key was seen; None when there was none."""

    key: str
    values: Values | None

    def __str__(self) -> str:
        return f"read {self.key} {'missing' if self.values is None else _show(self.values)}"


def _show(values: Values) -> str:
    """A list, without the beginning of a long one."""
    left_out = len(values) - 12
    return str(list(values)) if left_out <= 0 else f"[{left_out} more, {str(list(values[left_out:]))[1:]}"


@dataclass(frozen=True, slots=True)
class Append:
    """A value was put at the end of the list under a key, which was made if need be."""

    key: str
    value: int

    def __str__(self) -> str:
        return f"append {self.key} {self.value}"


Operation: TypeAlias = Read | Append


class Outcome(Enum):
    """How a transaction ended, as far as its caller knows."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Transaction:
    """What one process did between two moments of one clock, common to all processes."""

    process: str
    operations: tuple[Operation, ...]
    outcome: Outcome = Outcome.COMMITTED
    invoked: int = 0
    completed: int = 0


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One thing that cannot be, by its name in theory, and who took part (by place; the final read is last)."""

    name: str
    explanation: str
    transactions: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.explanation}"


def check(
    history: Sequence[Transaction],
    final: Transaction | None = None,
    *,
    order: Collection[Order] = ("process", "real time"),
) -> list[Anomaly]:
    """Everything that keeps the history from having a serial order; empty when it has one.

    ``order`` says which order edges that serial order must respect. One cycle is named for each knot of
    transactions: the worst class in it, and of that the shortest.
    """
    record = Record([*history, *([final] if final else [])])
    found = [*_impossible_lists(record), *_disagreements(record)]
    if final is not None:
        found += _find_lost_appends(record)
    links = [*_dependencies(record)]
    if "process" in order:
        links += _process_order(record)
    if "real time" in order:
        links += _real_time_order(record)
    graph = Graph(links)
    found += [_name_anomaly(record, graph, knot) for knot in graph.knots()]
    return found


# --- what was said to have happened ---------------------------------------------------------------------------------


class Record:
    """A history, taken apart: who appended what, which transactions count, and the list each first saw of a key."""

    def __init__(self, transactions: Sequence[Transaction]) -> None:
        self.transactions = transactions
        self.writer: dict[tuple[str, int], int] = {}
        self.appended: dict[tuple[int, str], list[int]] = defaultdict(list)
        self.seen: dict[tuple[int, str], Values] = {}
        """By reader and key, what others had made of the list: without the reader's own appends."""
        self.strange: list[Anomaly] = []
        for place, transaction in enumerate(transactions):
            self._take_apart(place, transaction)
        self.counted = self._find_counted()
        self.strange = [anomaly for anomaly in self.strange if self.counted.issuperset(anomaly.transactions)]
        self.versions = self._versions()

    def _take_apart(self, place: int, transaction: Transaction) -> None:
        if transaction.completed < transaction.invoked:
            raise ValueError(f"T{place} ended before it began")
        for operation in transaction.operations:
            own = self.appended[place, operation.key]
            if isinstance(operation, Append):
                if (operation.key, operation.value) in self.writer:
                    raise ValueError(f"{operation} occurs twice in the history")
                self.writer[operation.key, operation.value] = place
                own.append(operation.value)
                continue
            values = operation.values or ()
            others, mine = values[: len(values) - len(own)], values[max(0, len(values) - len(own)) :]
            if list(mine) != own:
                self._say_strange(place, f"T{place}, having appended {own}, {operation}")
            elif self.seen.setdefault((place, operation.key), others) != others:
                before = list(self.seen[place, operation.key])
                self._say_strange(place, f"T{place} saw first {before} of {operation.key}, then {operation}")

    def _say_strange(self, place: int, what: str) -> None:
        self.strange.append(Anomaly("internal", f"{what}\n  {self.account(place)}", (place,)))

    def _find_counted(self) -> set[int]:
        """The committed, and each unknown one that had an append read by one of these."""
        counted: set[int] = set()
        reached = [
            place
            for place, transaction in enumerate(self.transactions)
            if transaction.outcome is Outcome.COMMITTED
        ]
        lists: dict[int, list[tuple[str, Values]]] = defaultdict(list)
        for (place, key), values in self.seen.items():
            lists[place].append((key, values))
        while reached:
            place = reached.pop()
            if place in counted:
                continue
            counted.add(place)
            for key, values in lists[place]:
                writers = {self.writer[key, value] for value in values if (key, value) in self.writer}
                reached += [w for w in writers if self.transactions[w].outcome is Outcome.UNKNOWN]
        return counted

    def reads(self) -> Iterator[tuple[int, str, Values]]:
        """Reader, key and list, for every transaction that counts."""
        for (place, key), values in self.seen.items():
            if place in self.counted:
                yield place, key, values

    def settle(self, key: str, values: Values) -> Values:
        """Of a list that was read, the appends of transactions that count, each once."""
        return tuple(
            value for value in dict.fromkeys(values) if self.writer.get((key, value)) in self.counted
        )

    def _versions(self) -> dict[str, Values]:
        """The values of each key in the order they came, as the longest read tells it."""
        versions: dict[str, Values] = {}
        for _, key, values in self.reads():
            settled = self.settle(key, values)
            if len(settled) >= len(versions.get(key, ())):
                versions[key] = settled
        return versions

    def account(self, place: int) -> str:
        """One line about a transaction."""
        it = self.transactions[place]
        operations = ", ".join(map(str, it.operations))
        return f"T{place} ({it.process}, {it.outcome.value}, {it.invoked}-{it.completed}): {operations}"

    def accounts(self, places: Iterable[int]) -> str:
        return "\n".join(f"  {self.account(place)}" for place in places)


# --- what cannot be, whatever the order -----------------------------------------------------------------------------


def _impossible_lists(record: Record) -> Iterator[Anomaly]:
    yield from record.strange
    for reader, key, values in record.reads():
        for name, what, who in _strange_values(record, reader, key, values):
            read = f"T{reader} read {key} as {_show(values)}"
            yield Anomaly(name, f"{read}{what}\n{record.accounts(who)}", who)


def _strange_values(
    record: Record, reader: int, key: str, values: Values
) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    for value, times in Counter(values).items():
        writer = record.writer.get((key, value))
        if times > 1:
            yield "duplicate", f", with {value} {times} times", (reader,)
        if writer is None:
            yield "garbage", f"; no transaction appended {value}", (reader,)
        elif writer == reader:
            yield "internal", f"; it appended {value} itself, but later", (reader,)
        elif record.transactions[writer].outcome is Outcome.ABORTED:
            yield "G1a", f"; T{writer} appended {value}, but aborted", (writer, reader)
    last = record.writer.get((key, values[-1])) if values else None
    if last not in (None, reader) and record.appended[last, key][-1] != values[-1]:
        midst = f", in the midst of T{last}, which appended {record.appended[last, key]}"
        yield "G1b", midst, (last, reader)


def _disagreements(record: Record) -> Iterator[Anomaly]:
    longest = {
        key: reader
        for reader, key, values in record.reads()
        if record.settle(key, values) == record.versions[key]
    }
    for reader, key, values in record.reads():
        if _version(record, key, values) is None:
            who = (longest[key], reader)
            known, other = record.versions[key], record.settle(key, values)
            same = next(place for place in range(len(known)) if known[place] != other[place])
            what = f"after {same} values of {key}, T{who[0]} read {known[same]}, but T{reader} {other[same]}"
            yield Anomaly("order", f"{what}\n{record.accounts(who)}", who)


def _version(record: Record, key: str, values: Values) -> int | None:
    """Which version of the key a list is (0: nothing yet), or None when it is none of them."""
    settled = record.settle(key, values)
    return len(settled) if record.versions[key][: len(settled)] == settled else None


def _find_lost_appends(record: Record) -> Iterator[Anomaly]:
    last = len(record.transactions) - 1
    final = {key: set(values) for reader, key, values in record.reads() if reader == last}
    for (key, value), writer in record.writer.items():
        if key in final and writer in record.counted and value not in final[key]:
            what = f"T{writer} appended {value} to {key}, but it is not there in the end (T{last})"
            yield Anomaly("lost append", f"{what}\n{record.accounts([writer])}", (writer,))


# --- who depends on whom --------------------------------------------------------------------------------------------


def _dependencies(record: Record) -> Iterator[Link]:
    for key, values in record.versions.items():
        for value, following in pairwise(values):
            writers = record.writer[key, value], record.writer[key, following]
            yield Link(*writers, "ww", key, following, after=value)
    for reader, key, values in record.reads():
        version = _version(record, key, values)
        if version is None:
            continue
        known = record.versions[key]
        if version > 0:
            yield Link(record.writer[key, known[version - 1]], reader, "wr", key, known[version - 1])
        if version < len(known):
            yield Link(reader, record.writer[key, known[version]], "rw", key, known[version])


def _process_order(record: Record) -> Iterator[Link]:
    """Each transaction of a process before its next; one of unknown outcome may take effect at any later time."""
    last: dict[str, int] = {}
    for place in sorted(record.counted, key=lambda place: (record.transactions[place].invoked, place)):
        transaction = record.transactions[place]
        if transaction.process in last:
            before = last[transaction.process]
            if record.transactions[before].completed > transaction.invoked:
                raise ValueError(f"T{before} and T{place} of one process overlap")
            yield Link(before, place, "process")
        if transaction.outcome is Outcome.COMMITTED:
            last[transaction.process] = place


def _real_time_order(record: Record) -> Iterator[Link]:
    """Each transaction after the latest that had ended; who ended earlier comes before those by way of others."""
    events = [(record.transactions[place].invoked, 0, place) for place in record.counted]
    events += [
        (record.transactions[place].completed, 1, place)
        for place in record.counted
        if record.transactions[place].outcome is Outcome.COMMITTED
    ]
    latest: set[int] = set()
    for _, ends, place in sorted(events):
        if not ends:
            yield from (Link(before, place, "real time") for before in latest)
        else:
            began = record.transactions[place].invoked
            latest = {other for other in latest if record.transactions[other].completed > began} | {place}


# --- naming a cycle -------------------------------------------------------------------------------------------------

_ORDERS: tuple[tuple[str, frozenset[Kind]], ...] = (
    ("", frozenset()),
    ("-process", frozenset({"process"})),
    ("-realtime", frozenset({"process", "real time"})),
)


def _name_anomaly(record: Record, graph: Graph, knot: set[int]) -> Anomaly:
    for suffix, order in _ORDERS:
        for name, cycle in _classes(graph, knot, order):
            if cycle:
                who = tuple(link.source for link in cycle)
                steps = "\n".join(f"  {link} ({link.kind})" for link in cycle)
                what = f"{len(who)} transactions, each before the next and the last before the first"
                return Anomaly(name + suffix, f"{what}\n{steps}\n{record.accounts(who)}", who)
    raise AssertionError("a knot has a cycle")


def _classes(graph: Graph, knot: set[int], order: frozenset[Kind]) -> Iterator[tuple[str, list[Link]]]:
    """The classes of cycles, the worst first, each with its shortest, looked for only when asked for."""
    writes: frozenset[Kind] = order | {"ww"}
    information: frozenset[Kind] = writes | {"wr"}
    yield "G0", graph.shortest_round(knot, writes)
    yield "G1c", graph.shortest_round(knot, information)
    yield "G-single", graph.shortest_round_through("rw", knot, information)
    yield "G2", graph.shortest_round(knot, information | {"rw"})
