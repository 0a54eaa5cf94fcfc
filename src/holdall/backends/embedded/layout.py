"""The layout of a store's file, and how older files are upgraded.

The schema is fixed once a file exists: the user's tables and indexes are rows of ``catalog``, never DDL, so no
statement prepared by another process is invalidated. ``user_version`` is the version of this layout; ``application_id``
marks the file as ours. Creation and each upgrade are one SQLite transaction: a process that is killed in the middle
leaves the file as it was, and the next process to open it starts again.

Version 1:

- ``catalog``: one row; ``version`` grows by one with every change of ``definitions`` (JSON).
- ``items``: one row per item. ``pk`` and ``sk`` are the key attributes as bytes whose order is DynamoDB's
  (`order`); ``sk`` is empty if the table has no sort key. ``body`` is the item as DynamoDB JSON, ``size`` its billed
  bytes, ``ttl`` its expiry in seconds if the table has a TTL attribute.
- ``entries``: one row per item and index that contains it, in the index's order; ties are broken by the item's key
  (``bpk``, ``bsk``), so that a page can start after an item that has been deleted.
- ``tokens``: client tokens of the last ten minutes with a digest of their request.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping

from holdall.errors import StoreCorruptError, StoreVersionError

APPLICATION_ID = 0x486F6C64  # "Hold"
VERSION = 1

_CREATE = """
CREATE TABLE catalog (version INTEGER NOT NULL, definitions TEXT NOT NULL);
INSERT INTO catalog VALUES (0, '{"next": 1, "tables": {}}');
CREATE TABLE items (
    id INTEGER PRIMARY KEY,
    t INTEGER NOT NULL,
    pk BLOB NOT NULL,
    sk BLOB NOT NULL,
    size INTEGER NOT NULL,
    ttl INTEGER,
    body TEXT NOT NULL,
    UNIQUE (t, pk, sk)
);
CREATE INDEX items_ttl ON items (ttl) WHERE ttl IS NOT NULL;
CREATE TABLE entries (
    idx INTEGER NOT NULL,
    pk BLOB NOT NULL,
    sk BLOB NOT NULL,
    bpk BLOB NOT NULL,
    bsk BLOB NOT NULL,
    item INTEGER NOT NULL,
    PRIMARY KEY (idx, pk, sk, bpk, bsk)
) WITHOUT ROWID;
CREATE TABLE tokens (token TEXT PRIMARY KEY, digest BLOB NOT NULL, created REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX tokens_created ON tokens (created);
"""

Migration = Callable[[sqlite3.Connection], None]

MIGRATIONS: Mapping[int, Migration] = {}
"""For each older version, the function that upgrades it to the next one. Empty: version 1 is the first."""


def file_version(connection: sqlite3.Connection) -> int:
    """The layout version of an open file; 0 for a new one.

    `StoreCorruptError` if another program wrote the SQLite file, `StoreVersionError` if a newer Holdall did.
    """
    # one statement sees one state: another process may be creating the file right now
    application, version, objects = connection.execute(
        "SELECT (SELECT application_id FROM pragma_application_id), "
        "(SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_master)"
    ).fetchone()
    if application == 0 and version == 0 and objects == 0:
        return 0
    if application != APPLICATION_ID:
        raise StoreCorruptError(
            "the file is an SQLite database, but not a Holdall database",
            hint="open another path; this file was not changed",
        )
    if version > VERSION:
        raise StoreVersionError(
            f"the file has layout version {version}, but this version of Holdall supports only up to {VERSION}",
            hint="upgrade Holdall; this file was not changed",
        )
    return int(version)


def make_current(
    connection: sqlite3.Connection,
    *,
    migrations: Mapping[int, Migration] = MIGRATIONS,
    target: int = VERSION,
) -> None:
    """Create or upgrade the file, inside the caller's write transaction."""
    version = file_version(connection)
    if version == 0:
        for statement in _CREATE.split(";\n"):
            if statement.strip():
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        version = VERSION
    while version < target:
        migrations[version](connection)
        version += 1
        # older programs that have the file open then plan again, and see that its version is too new for them
        connection.execute("UPDATE catalog SET version = version + 1")
    connection.execute(f"PRAGMA user_version = {version}")
