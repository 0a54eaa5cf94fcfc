"""What a store's file looks like, and how older files become current.

The schema is fixed once a file exists: tables and indexes of the user's are rows of ``catalog``, never DDL, so
no statement prepared by another process is invalidated. ``user_version`` is the version of this layout;
``application_id`` marks the file as ours. Creation and each upgrade are one SQLite transaction: a process
killed in the middle leaves the file as it was, and the next one to open it starts again.

Version 1:

- ``catalog``: one row; ``version`` grows by one with every change of ``definitions`` (JSON).
- ``items``: one row per item. ``pk`` and ``sk`` are the key attributes as bytes whose order is DynamoDB's
  (`order`), ``sk`` empty where the table has none. ``body`` is the item as DynamoDB JSON, ``size`` its billed
  bytes, ``ttl`` its expiry in seconds where the table has a TTL attribute.
- ``entries``: one row per item and index that it is in, in the index's order; ties are broken by the item's
  own key (``bpk``, ``bsk``), so that a page can start after an item that is gone by now.
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
"""For each older version, what turns it into the next one. None yet: version 1 is the first."""


def file_version(connection: sqlite3.Connection) -> int:
    """The layout version of an open file, 0 for a fresh one.

    `StoreCorruptError` for somebody else's SQLite file, `StoreVersionError` for one of the future.
    """
    # One statement, hence one instant: another process may just be creating the file.
    application, version, objects = connection.execute(
        "SELECT (SELECT application_id FROM pragma_application_id), "
        "(SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_master)"
    ).fetchone()
    if application == 0 and version == 0 and objects == 0:
        return 0
    if application != APPLICATION_ID:
        raise StoreCorruptError(
            "the file is an SQLite database, but not one of Holdall's",
            hint="open another path; this file was left untouched",
        )
    if version > VERSION:
        raise StoreVersionError(
            f"the file has layout version {version}; this Holdall knows up to {VERSION}",
            hint="upgrade Holdall; this file was left untouched",
        )
    return int(version)


def make_current(
    connection: sqlite3.Connection,
    *,
    migrations: Mapping[int, Migration] = MIGRATIONS,
    target: int = VERSION,
) -> None:
    """Create or upgrade the file, inside the write transaction that the caller has begun."""
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
        # Older programs that have the file open plan anew, and then see that it is no longer for them.
        connection.execute("UPDATE catalog SET version = version + 1")
    connection.execute(f"PRAGMA user_version = {version}")
