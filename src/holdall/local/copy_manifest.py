"""The manifest of a copy: a SQLite file with what was copied, how far each part has come, and in which pass.

Every function opens its own connection and makes one transaction, so any number of threads can work on one manifest.
A process that is killed leaves a manifest that is true: things are recorded after they were written to the target, and
intents before. Intents of many things are one row, a *draft*; what a killed process left there is taken apart when the
manifest is opened.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from holdall.errors import ConfigurationError, InvalidOptionsError
from holdall.local.temporary import make_directory

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FORMAT = 3
_DRAFTS = "CREATE TABLE drafts (id INTEGER PRIMARY KEY, place TEXT NOT NULL, content TEXT NOT NULL)"
_SCHEMA = f"""
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE things (place TEXT, key TEXT, origin BLOB NOT NULL, copy TEXT NOT NULL, pass INTEGER NOT NULL,
    PRIMARY KEY (place, key)) WITHOUT ROWID;
CREATE TABLE intents (place TEXT, key TEXT, content BLOB, PRIMARY KEY (place, key, content)) WITHOUT ROWID;
{_DRAFTS};
CREATE TABLE positions (place TEXT, segment INTEGER, after TEXT, done INTEGER NOT NULL, counted TEXT NOT NULL,
    PRIMARY KEY (place, segment)) WITHOUT ROWID;
"""
_INTEND = "INSERT OR IGNORE INTO intents VALUES (?, ?, ?)"
_TOGETHER = 500


class CopyManifest:
    """An open manifest. ``turn`` is the number of the pass under way, ``held`` keeps the file's journal open, and
    ``lock`` other copies away.

    ``is_empty``: there is no file, and none is written. ``is_brief``: its directory is removed at the end.
    """

    def __init__(self, path: Path, turn: int, held: Any, lock: Any, is_brief: bool) -> None:
        self.path = path
        self.turn = turn
        self.held = held
        self.lock = lock
        self.is_empty = held is None
        self.is_brief = is_brief


class Recorded(NamedTuple):
    """A thing that was copied: its digest or fingerprint in the source, how the target names its content, and the last
    pass that saw it in the source."""

    origin: bytes
    copy: str
    turn: int


class Position(NamedTuple):
    """How far a part of a pass has come: after a key, or to its end."""

    after: Any
    done: bool
    counted: Mapping[str, Any]


def locate_manifest(given: Any, name: str, brief: bool) -> Path:
    """Where the manifest is: at the given path, or in the current directory; in a temporary one if it is ``brief``."""
    if given is None:
        return make_directory() / name if brief else Path.cwd() / name
    try:
        return Path(given).absolute()
    except TypeError:
        raise InvalidOptionsError(f"manifest must be a path, not {given!r:.60}") from None


def resolve_path(path: str) -> str:
    """The one name of a file, however it is written."""
    return str(Path(path).resolve())


def open_manifest(path: Path, identity: str, restart: bool, read_only: bool, brief: bool) -> CopyManifest:
    """Open the manifest of a copy between two databases, which ``identity`` names; create it unless ``read_only``.

    With ``restart``, what an earlier copy recorded is forgotten. ``brief``: its directory is removed at the end.
    """
    if read_only and (restart or not path.exists()):
        return CopyManifest(path, 1, None, None, brief)
    try:
        held = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise InvalidOptionsError(
            f"the manifest {path} cannot be opened: {error}", hint="pass another path as the manifest"
        ) from None
    lock = None
    try:
        _prepare(held, path, identity)
        try:
            lock = _take_lock(path)
        except ConfigurationError:
            if not read_only:
                raise
        else:
            if restart:
                _empty(held, identity)
            _unfold(held)
        if read_only:  # other copies may begin
            _release_lock(lock)
            lock = None
        facts = dict(held.execute("SELECT name, value FROM facts WHERE name IN ('identity', 'pass')"))
        if facts["identity"] != identity:
            raise ConfigurationError(
                f"{path} is the manifest of another copy: {facts['identity']}",
                hint="pass another path as the manifest, or restart=True to start over",
            )
    except BaseException:
        held.close()
        _release_lock(lock)
        raise
    return CopyManifest(path, int(facts["pass"]), held, lock, brief)


def _take_lock(path: Path) -> Any:
    """Keep other copies away from the manifest; None if the system has no such locks.

    The lock is on the write-ahead log, which SQLite itself never locks, and ends with the process.
    """
    if fcntl is None:
        return None
    log = Path(f"{path}-wal").open("rb")  # noqa: SIM115 - it stays open
    try:
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        log.close()
        raise ConfigurationError(
            f"another copy is using the manifest {path}", hint="wait until it has finished, or stop it"
        ) from None
    return log


def _release_lock(lock: Any) -> None:
    if lock is not None:
        fcntl.flock(lock, fcntl.LOCK_UN)  # closing is not enough: a child may have it open
        lock.close()


def _empty(held: sqlite3.Connection, identity: str) -> None:
    """Forget everything that was recorded."""
    held.execute("BEGIN IMMEDIATE")
    for table in ("things", "intents", "drafts", "positions", "facts"):
        held.execute(f"DELETE FROM {table}")
    _write_facts(held, identity)
    held.execute("COMMIT")


def _unfold(held: sqlite3.Connection) -> None:
    """Turn the drafts of an interrupted copy into intents."""
    held.execute("BEGIN IMMEDIATE")
    for place, content in held.execute("SELECT place, content FROM drafts").fetchall():
        rows = [(place, key, bytes.fromhex(text)) for key, text in json.loads(content)]
        held.executemany(_INTEND, rows)
    held.execute("DELETE FROM drafts")
    held.execute("COMMIT")


def _write_facts(held: sqlite3.Connection, identity: str) -> None:
    facts = {"identity": identity, "format": str(FORMAT), "pass": "1"}
    held.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())


def _prepare(held: sqlite3.Connection, path: Path, identity: str) -> None:
    """Create the tables, unless they exist; `ConfigurationError` if the file is something else."""
    try:
        held.execute("PRAGMA journal_mode = WAL")
        held.execute("BEGIN IMMEDIATE")
        if held.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,):
            for statement in _SCHEMA.split(";")[:-1]:
                held.execute(statement)
            _write_facts(held, identity)
        ((version,),) = held.execute("SELECT value FROM facts WHERE name = 'format'")
        if version == "2":
            held.execute(_DRAFTS)
            held.execute("UPDATE facts SET value = ? WHERE name = 'format'", (version := str(FORMAT),))
        held.execute("COMMIT")
    except (sqlite3.Error, ValueError) as error:
        raise ConfigurationError(
            f"{path} is not the manifest of a copy: {error}", hint="pass another path as the manifest"
        ) from None
    if version != str(FORMAT):
        raise ConfigurationError(
            f"{path} is a manifest of format {version}, and this version of Holdall uses format {FORMAT}",
            hint="pass another path as the manifest",
        )


def close_manifest(manifest: CopyManifest) -> None:
    """Close the manifest; delete the directory of a brief one."""
    if manifest.held is not None:
        manifest.held.close()
    _release_lock(manifest.lock)
    if manifest.is_brief:
        shutil.rmtree(manifest.path.parent, ignore_errors=True)


def _connect(manifest: CopyManifest) -> closing[sqlite3.Connection]:
    connection = sqlite3.connect(manifest.path, timeout=60, isolation_level=None)
    connection.execute("PRAGMA synchronous = NORMAL")
    return closing(connection)


@contextmanager
def _change(manifest: CopyManifest) -> Iterator[sqlite3.Connection]:
    """One transaction; an error undoes it."""
    with _connect(manifest) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")


def find_recorded(manifest: CopyManifest, place: str, keys: Sequence[str]) -> dict[str, Recorded]:
    """What is recorded of these keys."""
    query = "SELECT key, origin, copy, pass FROM things WHERE place = ? AND key IN"
    return {key: Recorded(*rest) for key, *rest in _select(manifest, query, place, keys)}


def find_intents(manifest: CopyManifest, place: str, keys: Sequence[str]) -> dict[str, set[bytes]]:
    """What was to be written under these keys and is not recorded: it may have been written before an interruption."""
    found: dict[str, set[bytes]] = {}
    query = "SELECT key, content FROM intents WHERE place = ? AND key IN"
    for key, content in _select(manifest, query, place, keys):
        found.setdefault(key, set()).add(content)
    return found


def list_intents(manifest: CopyManifest, place: str, limit: int = 100) -> dict[str, set[bytes]]:
    """The first of all intents."""
    first = "SELECT DISTINCT key FROM intents WHERE place = ? ORDER BY key LIMIT ?"
    keys = [key for (key,) in _fetch(manifest, first, place, limit)]
    return find_intents(manifest, place, keys)


def _fetch(manifest: CopyManifest, query: str, *values: object) -> list[Any]:
    """The rows of a query; none if there is no file."""
    if manifest.is_empty:
        return []
    with _connect(manifest) as connection:
        return connection.execute(query, values).fetchall()


def _select(manifest: CopyManifest, query: str, place: str, keys: Sequence[str]) -> list[Any]:
    found: list[Any] = []
    if manifest.is_empty or not keys:
        return found
    with _connect(manifest) as connection:
        for start in range(0, len(keys), _TOGETHER):
            some = keys[start : start + _TOGETHER]
            marks = ", ".join("?" * len(some))
            found += connection.execute(f"{query} ({marks})", (place, *some))
    return found


def record_intents(manifest: CopyManifest, place: str, intents: Sequence[tuple[str, bytes]]) -> None:
    """Record what will be written, keys and contents, until it is recorded as written."""
    if intents:
        rows = [(place, *intent) for intent in intents]
        with _change(manifest) as connection:
            connection.executemany(_INTEND, rows)


def draft_intents(manifest: CopyManifest, place: str, intents: Sequence[tuple[str, bytes]]) -> int:
    """Record together what will be written, until `record_things` gets the number that is returned."""
    content = json.dumps([(key, digest.hex()) for key, digest in intents], check_circular=False)
    with _connect(manifest) as connection:
        row = connection.execute("INSERT INTO drafts (place, content) VALUES (?, ?)", (place, content))
        return int(row.lastrowid or 0)


def settle_intents(
    manifest: CopyManifest, place: str, keys: Iterable[str], things: Iterable[tuple[str, bytes, str]]
) -> None:
    """Forget the intents of these keys; ``things`` were written, and have not been seen in the source since."""
    _record(manifest, place, things, manifest.turn - 1, keys)


def record_things(
    manifest: CopyManifest, place: str, things: Sequence[tuple[str, bytes, str]], draft: int | None = None
) -> None:
    """Record what was copied in this pass, or found to be copied: key, digest and the target's name for the content.

    ``draft`` is the number of the intents that this settles, from `draft_intents`.
    """
    _record(manifest, place, things, manifest.turn, [key for key, _, _ in things], draft)


def _record(
    manifest: CopyManifest,
    place: str,
    things: Iterable[tuple[str, bytes, str]],
    turn: int,
    settled: Iterable[str],
    draft: int | None = None,
) -> None:
    rows = [(place, *thing, turn) for thing in things]
    with _change(manifest) as connection:
        connection.executemany("INSERT OR REPLACE INTO things VALUES (?, ?, ?, ?, ?)", rows)
        connection.execute("DELETE FROM drafts WHERE id = ?", (draft,))
        if connection.execute("SELECT 1 FROM intents WHERE place = ? LIMIT 1", (place,)).fetchone():
            connection.executemany(
                "DELETE FROM intents WHERE place = ? AND key = ?", [(place, key) for key in settled]
            )


def forget_things(manifest: CopyManifest, place: str, keys: Iterable[str]) -> None:
    """Forget what was recorded of these keys."""
    with _change(manifest) as connection:
        connection.executemany(
            "DELETE FROM things WHERE place = ? AND key = ?", [(place, key) for key in keys]
        )


def forget_place(manifest: CopyManifest, place: str) -> None:
    """Forget everything that was recorded of a place."""
    with _change(manifest) as connection:
        for table in ("things", "intents"):
            connection.execute(f"DELETE FROM {table} WHERE place = ?", (place,))
        connection.execute("DELETE FROM positions WHERE substr(place, 1, ?) = ?", (len(place), place))


def list_things(
    manifest: CopyManifest, place: str, after: str, seen: bool, limit: int = 1000
) -> list[tuple[str, Recorded]]:
    """The things after a key that this pass has ``seen`` in the source, or has not."""
    query = (
        "SELECT key, origin, copy, pass FROM things "
        f"WHERE place = ? AND key > ? AND pass {'=' if seen else '<'} ? ORDER BY key LIMIT ?"
    )
    found = _fetch(manifest, query, place, after, manifest.turn, limit)
    return [(key, Recorded(*rest)) for key, *rest in found]


def count_things(manifest: CopyManifest, place: str, seen: bool) -> int:
    """How many things are recorded; with ``seen``, only those that this pass has seen in the source."""
    query = "SELECT count(*) FROM things WHERE place = ? AND pass >= ?"
    return sum(count for (count,) in _fetch(manifest, query, place, manifest.turn if seen else 0))


def find_position(manifest: CopyManifest, place: str, segment: int) -> Position | None:
    """How far a part of this pass has come; None if it has not begun."""
    query = "SELECT after, done, counted FROM positions WHERE place = ? AND segment = ?"
    for after, done, counted in _fetch(manifest, query, place, segment):
        return Position(json.loads(after), bool(done), json.loads(counted))
    return None


def record_position(manifest: CopyManifest, place: str, segment: int, position: Position) -> None:
    """Record how far a part of this pass has come."""
    row = (place, segment, json.dumps(position.after), position.done, json.dumps(position.counted))
    with _connect(manifest) as connection:
        connection.execute("INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?, ?)", row)


def find_fact(manifest: CopyManifest, name: str) -> str | None:
    """A fact about the copy."""
    rows = _fetch(manifest, "SELECT value FROM facts WHERE name = ?", name)
    return rows[0][0] if rows else None


def record_fact(manifest: CopyManifest, name: str, value: str) -> None:
    """Record a fact about the copy."""
    with _connect(manifest) as connection:
        connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))


def finish_pass(manifest: CopyManifest) -> None:
    """End the pass: the next one starts at the beginning."""
    with _change(manifest) as connection:
        connection.execute("DELETE FROM positions")
        connection.execute("UPDATE facts SET value = ? WHERE name = 'pass'", (str(manifest.turn + 1),))
    manifest.turn += 1
