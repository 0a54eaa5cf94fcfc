"""A pure checker of histories of list-append transactions: it finds anomalies without access to the store.

Every transaction appends values, each of them once in the whole history, to lists under keys, and reads whole lists.
A list that was read shows the order of its values. So the versions of each key are known, and the transactions that
wrote them, and thus the dependencies between transactions:

- *ww*: one transaction's append comes right after another's;
- *wr*: a transaction read a list that ends with another's append;
- *rw*: a transaction read a list without the next append, so it comes before the transaction that made that append;
- *process* and *real time*: one transaction ended before the other began (in the same process; in any process).

A history has a serial order (which also respects the requested order edges) exactly if no list is impossible in itself
and the graph has no cycle. `check` returns every anomaly that excludes a serial order, by its name in the literature:

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
``G-single``     a cycle with one rw (a stale read on which the reader acted)
``G2``           a cycle with several rw (write skew)
================ ======================================================================================

The name of a cycle that needs order edges has a suffix: ``G-single-process``, ``G0-realtime``. A transaction whose
outcome is unknown counts as committed if a transaction that counts read one of its appends; otherwise it is ignored.
The final state is one more transaction that read every key after all others had ended; without it, lost appends are not
found.
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
    """A read of the whole list under a key; None if there was no list."""

    key: str
    values: Values | None

    def __str__(self) -> str:
        return f"read {self.key} {'missing' if self.values is None else _show(self.values)}"


def _show(values: Values) -> str:
    """Return a list as text, without the beginning of a long one."""
    left_out = len(values) - 12
    return str(list(values)) if left_out <= 0 else f"[{left_out} more, {str(list(values[left_out:]))[1:]}"


@dataclass(frozen=True, slots=True)
class Append:
    """An append of a value to the list under a key, which is created if it is missing."""

    key: str
    value: int

    def __str__(self) -> str:
        return f"append {self.key} {self.value}"


Operation: TypeAlias = Read | Append


class Outcome(Enum):
    """The outcome of a transaction, as far as its caller knows."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Transaction:
    """The operations of one process between two moments of a clock that all processes share."""

    process: str
    operations: tuple[Operation, ...]
    outcome: Outcome = Outcome.COMMITTED
    invoked: int = 0
    completed: int = 0


@dataclass(frozen=True, slots=True)
class Anomaly:
    """An anomaly: its name in the literature, and the indexes of its transactions (the final read is the last one)."""

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
    """Return the anomalies that exclude a serial order; the list is empty if there is a serial order.

    ``order`` names the order edges that the serial order must respect. For each strongly connected component of the
    graph, one cycle is reported: the shortest one of the worst class.
    """
    record = Record([*history, *([final] if final else [])])
    found = [*_find_impossible_lists(record), *_find_disagreements(record)]
    if final is not None:
        found += _find_lost_appends(record)
    links = [*_find_dependencies(record)]
    if "process" in order:
        links += _find_process_order(record)
    if "real time" in order:
        links += _find_real_time_order(record)
    graph = Graph(links)
    found += [_name_anomaly(record, graph, component) for component in graph.find_components()]
    return found


# --- the recorded history ---------------------------------------------------------------------------------


class Record:
    """An indexed history: the writer of each value, the transactions that count, and the first list that each read."""

    def __init__(self, transactions: Sequence[Transaction]) -> None:
        self.transactions = transactions
        self.writer: dict[tuple[str, int], int] = {}
        self.appended: dict[tuple[int, str], list[int]] = defaultdict(list)
        self.seen: dict[tuple[int, str], Values] = {}
        """By reader and key, the list that was read, without the reader's own appends."""
        self.internal: list[Anomaly] = []
        for place, transaction in enumerate(transactions):
            self._add_transaction(place, transaction)
        self.counted = self._find_counted()
        self.internal = [
            anomaly for anomaly in self.internal if self.counted.issuperset(anomaly.transactions)
        ]
        self.versions = self._find_versions()

    def _add_transaction(self, place: int, transaction: Transaction) -> None:
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
            others, own_part = values[: len(values) - len(own)], values[max(0, len(values) - len(own)) :]
            if list(own_part) != own:
                self._add_internal(place, f"T{place}, having appended {own}, {operation}")
            elif self.seen.setdefault((place, operation.key), others) != others:
                before = list(self.seen[place, operation.key])
                self._add_internal(place, f"T{place} saw first {before} of {operation.key}, then {operation}")

    def _add_internal(self, place: int, what: str) -> None:
        self.internal.append(Anomaly("internal", f"{what}\n  {self.describe(place)}", (place,)))

    def _find_counted(self) -> set[int]:
        """Find the committed transactions, and each unknown one of which a counted one read an append."""
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
        """Yield reader, key and list for the reads of every transaction that counts."""
        for (place, key), values in self.seen.items():
            if place in self.counted:
                yield place, key, values

    def filter_counted(self, key: str, values: Values) -> Values:
        """Return the values of a list that transactions that count appended, each once."""
        return tuple(
            value for value in dict.fromkeys(values) if self.writer.get((key, value)) in self.counted
        )

    def _find_versions(self) -> dict[str, Values]:
        """Return the values of each key in their order, according to the longest read."""
        versions: dict[str, Values] = {}
        for _, key, values in self.reads():
            settled = self.filter_counted(key, values)
            if len(settled) >= len(versions.get(key, ())):
                versions[key] = settled
        return versions

    def describe(self, place: int) -> str:
        """Describe a transaction in one line."""
        it = self.transactions[place]
        operations = ", ".join(map(str, it.operations))
        return f"T{place} ({it.process}, {it.outcome.value}, {it.invoked}-{it.completed}): {operations}"

    def describe_all(self, places: Iterable[int]) -> str:
        return "\n".join(f"  {self.describe(place)}" for place in places)


# --- anomalies in any order -------------------------------------------------------------------------------


def _find_impossible_lists(record: Record) -> Iterator[Anomaly]:
    yield from record.internal
    for reader, key, values in record.reads():
        for name, what, who in _find_impossible_values(record, reader, key, values):
            read = f"T{reader} read {key} as {_show(values)}"
            yield Anomaly(name, f"{read}{what}\n{record.describe_all(who)}", who)


def _find_impossible_values(
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


def _find_disagreements(record: Record) -> Iterator[Anomaly]:
    longest = {
        key: reader
        for reader, key, values in record.reads()
        if record.filter_counted(key, values) == record.versions[key]
    }
    for reader, key, values in record.reads():
        if _find_version(record, key, values) is None:
            who = (longest[key], reader)
            known, other = record.versions[key], record.filter_counted(key, values)
            same = next(place for place in range(len(known)) if known[place] != other[place])
            what = f"after {same} values of {key}, T{who[0]} read {known[same]}, but T{reader} {other[same]}"
            yield Anomaly("order", f"{what}\n{record.describe_all(who)}", who)


def _find_version(record: Record, key: str, values: Values) -> int | None:
    """Return which version of the key a list is (0: an empty list), or None if it is not a version."""
    settled = record.filter_counted(key, values)
    return len(settled) if record.versions[key][: len(settled)] == settled else None


def _find_lost_appends(record: Record) -> Iterator[Anomaly]:
    last = len(record.transactions) - 1
    final = {key: set(values) for reader, key, values in record.reads() if reader == last}
    for (key, value), writer in record.writer.items():
        if key in final and writer in record.counted and value not in final[key]:
            what = f"T{writer} appended {value} to {key}, but the final list does not contain it (T{last})"
            yield Anomaly("lost append", f"{what}\n{record.describe_all([writer])}", (writer,))


# --- dependencies -----------------------------------------------------------------------------------------


def _find_dependencies(record: Record) -> Iterator[Link]:
    for key, values in record.versions.items():
        for value, following in pairwise(values):
            writers = record.writer[key, value], record.writer[key, following]
            yield Link(*writers, "ww", key, following, after=value)
    for reader, key, values in record.reads():
        version = _find_version(record, key, values)
        if version is None:
            continue
        known = record.versions[key]
        if version > 0:
            yield Link(record.writer[key, known[version - 1]], reader, "wr", key, known[version - 1])
        if version < len(known):
            yield Link(reader, record.writer[key, known[version]], "rw", key, known[version])


def _find_process_order(record: Record) -> Iterator[Link]:
    """Link each transaction of a process to its next; one of unknown outcome can take effect at any later time."""
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


def _find_real_time_order(record: Record) -> Iterator[Link]:
    """Link the latest transactions that had ended to each transaction; earlier ones precede it through those."""
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


# --- naming a cycle ---------------------------------------------------------------------------------------

_ORDERS: tuple[tuple[str, frozenset[Kind]], ...] = (
    ("", frozenset()),
    ("-process", frozenset({"process"})),
    ("-realtime", frozenset({"process", "real time"})),
)


def _name_anomaly(record: Record, graph: Graph, component: set[int]) -> Anomaly:
    for suffix, order in _ORDERS:
        for name, cycle in _find_cycles(graph, component, order):
            if cycle:
                who = tuple(link.source for link in cycle)
                steps = "\n".join(f"  {link} ({link.kind})" for link in cycle)
                what = f"{len(who)} transactions, each before the next and the last before the first"
                return Anomaly(name + suffix, f"{what}\n{steps}\n{record.describe_all(who)}", who)
    raise AssertionError("a component without a cycle")


def _find_cycles(
    graph: Graph, component: set[int], order: frozenset[Kind]
) -> Iterator[tuple[str, list[Link]]]:
    """Yield the classes of cycles, the worst first, each with its shortest cycle, computed lazily."""
    writes: frozenset[Kind] = order | {"ww"}
    information: frozenset[Kind] = writes | {"wr"}
    yield "G0", graph.find_shortest_cycle(component, writes)
    yield "G1c", graph.find_shortest_cycle(component, information)
    yield "G-single", graph.find_shortest_cycle_through("rw", component, information)
    yield "G2", graph.find_shortest_cycle(component, information | {"rw"})
