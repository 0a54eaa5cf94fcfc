"""Records of directories: which manifests there are, which files each has, and who still needs them.

Pure but for the reads and the one way to write (`transact`). The records, in the table of artifacts:

- ``holdall#ArtifactManifest#<sha256>`` / ``#``, a *manifest*: ``refs``, how many versions have it;
  ``hold:<until>:<id>`` for each put under way; ``complete``, when all its files are stored; ``going``, the token of a
  sweep that takes it apart. ``born`` (an id) and ``changes`` (a count) together are another after every change.
- the same partition / ``file#<sha256>``, a *pair*: the manifest has this file, and is counted in the file's ``refs``;
  with ``taken`` it no longer is.
- ``holdall#ArtifactFile#<sha256>`` / ``#``, a *file*: ``refs``, how many manifests have it; ``size``; ``stored``, the
  key of its object, once that is there; ``deleting``, ``<manifest>:<token>`` of the sweep that deletes it, which says
  that ``refs`` is 0; ``born``, an id, another for each life of the record. ``moved``: see below.
- ``holdall#ArtifactSweep`` / ``<manifest>``, a *mark*: a manifest to be looked at by `sweep`.

What always holds, as every write that touches it is one transaction:

1. ``refs`` of a file is the number of its pairs that are not taken; it has ``deleting`` if, and only if, that is 0.
2. A pair is added only under a hold on its manifest, and taken only under the token of a sweep. A manifest has one or
   the other, never both: a hold ends every sweep, and a sweep begins only where there is no version and no live hold.
3. ``complete`` says that there is a pair, and a stored object, for every file of the manifest; a sweep removes it
   first. Versions are counted only where it is.
4. A manifest that no version has is marked.

**Keys that are not used again.** A file is under ``__files/<sha256>``. Whoever deletes an object may be slow, and
their request may arrive long after they were given up. So a key is used again only after its deletion was seen to end
by who ordered it. If anybody else finds ``deleting`` (a put that needs the file, a sweep after one that died) the
record is ``moved``, for good: from then on the file is under ``__files/<sha256>.<born>``, and the old key among
``leftovers``, which go when the file does. No clock and no lock is needed for that, and nobody waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from holdall.artifacts.home import Home
from holdall.core.context import Context
from holdall.core.expressions import (
    Add,
    And,
    Compare,
    Condition,
    Exists,
    NotExists,
    Path,
    Remove,
    Set,
    Update,
    UpdateAction,
    Value,
    path,
)
from holdall.core.frozen import dataclass, replace
from holdall.core.requests import (
    BatchGet,
    DeleteItem,
    PutItem,
    Query,
    TransactAction,
    TransactWrite,
    UpdateItem,
)
from holdall.core.values import Attribute, Item
from holdall.errors import ConflictError, ContentionError, TransactionCanceledError

__all__ = [
    "BATCH",
    "HOLD",
    "TRIES",
    "Hold",
    "Placed",
    "add_pair",
    "all_pairs",
    "change_manifest",
    "contention",
    "counted",
    "delete_mark",
    "expired_holds",
    "failed",
    "file_key",
    "holds_of",
    "manifest_key",
    "mark",
    "marks",
    "object_of",
    "pair_key",
    "paired",
    "pause",
    "placed",
    "refs_of",
    "read_files",
    "read_pairs",
    "transact",
]

BATCH = 49
"""So many files in a transaction: two actions each, and the demand on their manifest."""

TRIES = 12
HOLD = timedelta(days=1)
"""How long a hold is good for. Nothing that is done under one depends on it, but when it can be swept away."""

_MANIFEST = "holdall#ArtifactManifest#"
_FILE = "holdall#ArtifactFile#"
_SWEEP = "holdall#ArtifactSweep"
_PAIR = "file#"
_HOLD = "hold:"
_READS = 100
_YES: Attribute = {"BOOL": True}


@dataclass(frozen=True, slots=True)
class Hold:
    """All files of a manifest are stored, and stay so while this lives: until it is dropped, or a day is over."""

    manifest: str
    id: str
    until: int

    @property
    def attribute(self) -> str:
        """What it is on the manifest's record."""
        return f"{_HOLD}{self.until}:{self.id}"

    @property
    def alive(self) -> Condition:
        """That nobody has taken it away."""
        return Exists(path(self.attribute))


@dataclass(frozen=True, slots=True)
class Placed:
    """A file that was counted: the life of its record, the key for its object, and whether that is there."""

    sha256: str
    born: str
    key: str
    stored: bool


# --- keys -------------------------------------------------------------------------------------------------


def manifest_key(home: Home, manifest: str) -> dict[str, Attribute]:
    """The key of a manifest's record."""
    return home.key(_MANIFEST + manifest, "#")


def pair_key(home: Home, manifest: str, sha256: str) -> dict[str, Attribute]:
    """The key of the record that a manifest has a file."""
    return home.key(_MANIFEST + manifest, _PAIR + sha256)


def file_key(home: Home, sha256: str) -> dict[str, Attribute]:
    """The key of a file's record."""
    return home.key(_FILE + sha256, "#")


def marks(home: Home) -> Query:
    """Reads the marks, a page at a time."""
    return home.query(_SWEEP, limit=_READS)


def mark(home: Home, manifest: str) -> PutItem:
    """Have a manifest looked at."""
    return PutItem(home.table, {**home.key(_SWEEP, manifest), "_type": {"S": "holdall.ArtifactSweep"}})


def delete_mark(home: Home, manifest: str) -> DeleteItem:
    """It need not be looked at."""
    return DeleteItem(home.table, home.key(_SWEEP, manifest))


# --- manifests --------------------------------------------------------------------------------------------


def change_manifest(
    home: Home, manifest: str, condition: Condition, *actions: UpdateAction, refs: int = 0
) -> UpdateItem:
    """A change of a manifest's record, which is another after it."""
    steps = [*actions, Add(path("changes"), Value({"N": "1"}))]
    if refs:
        steps.append(Add(path("refs"), Value({"N": str(refs)})))
    return UpdateItem(home.table, manifest_key(home, manifest), Update(tuple(steps)), condition)


def holds_of(item: Item) -> dict[str, int]:
    """The holds on a manifest, and when each is over, in seconds since 1970."""
    return {name: int(name.split(":")[1]) for name in item if name.startswith(_HOLD)}


def expired_holds(item: Item | None, now: datetime) -> list[UpdateAction]:
    """What takes those holds away that are over."""
    moment = now.timestamp()
    return [Remove(path(name)) for name, until in holds_of(item or {}).items() if until <= moment]


def refs_of(item: Item | None) -> int:
    """How many have it."""
    return 0 if item is None or "refs" not in item else int(item["refs"]["N"])


# --- files and pairs --------------------------------------------------------------------------------------


def object_of(home: Home, sha256: str, item: Item) -> str:
    """The key of a file's object in this life of its record."""
    key = home.file_key(sha256)
    return f"{key}.{item['born']['S']}" if "moved" in item else key


def add_pair(home: Home, manifest: str, sha256: str) -> PutItem:
    """A manifest has a file: to be sent with the file's `counted`."""
    item = {**pair_key(home, manifest, sha256), "_type": {"S": "holdall.ArtifactPair"}}
    return PutItem(home.table, item, home.absent | Exists(path("taken")))


def paired(item: Item | None) -> bool:
    """Whether a pair is counted."""
    return item is not None and "taken" not in item


def counted(home: Home, sha256: str, size: int, item: Item | None, new_id: str) -> tuple[UpdateItem, Placed]:
    """Count one more manifest for a file whose record is the one given; and where the file is then."""
    if item is not None and "born" in item and "deleting" not in item:
        same = And((_is("born", item), NotExists(path("deleting"))))
        return _file_update(home, sha256, same, Add(path("refs"), Value({"N": "1"}))), placed(
            home, sha256, item
        )
    steps: list[UpdateAction] = [
        Set(path("refs"), Value({"N": "1"})),
        Set(path("size"), Value({"N": str(size)})),
        Set(path("born"), Value({"S": new_id})),
    ]
    if item is None:
        steps.append(Set(path("_type"), Value({"S": "holdall.ArtifactFile"})))
        condition = home.absent
    elif "born" not in item:
        condition = And((NotExists(path("born")), Exists(path("moved"))))
    else:
        condition = _is("deleting", item)
        steps += [Set(path("moved"), Value(_YES)), Remove(path("deleting")), Remove(path("stored"))]
        steps.append(Add(path("leftovers"), Value({"SS": [object_of(home, sha256, item)]})))
    moved = item is not None
    key = f"{home.file_key(sha256)}.{new_id}" if moved else home.file_key(sha256)
    return _file_update(home, sha256, condition, *steps), Placed(sha256, new_id, key, stored=False)


def placed(home: Home, sha256: str, item: Item) -> Placed:
    """Where a file is whose record lives."""
    return Placed(sha256, item["born"]["S"], object_of(home, sha256, item), "stored" in item)


def _file_update(home: Home, sha256: str, condition: Condition, *steps: UpdateAction) -> UpdateItem:
    return UpdateItem(home.table, file_key(home, sha256), Update(steps), condition)


def _is(name: str, item: Item) -> Condition:
    return Compare("=", Path((name,)), Value(item[name]))


async def read_files(context: Context, home: Home, digests: Sequence[str]) -> dict[str, Item | None]:
    """The records of files, as they are now."""
    return await _read(context, home, {sha256: file_key(home, sha256) for sha256 in digests})


async def read_pairs(
    context: Context, home: Home, manifest: str, digests: Sequence[str]
) -> dict[str, Item | None]:
    """The pairs of a manifest and these files, as they are now."""
    return await _read(context, home, {sha256: pair_key(home, manifest, sha256) for sha256 in digests})


async def _read(
    context: Context, home: Home, keys: dict[str, dict[str, Attribute]]
) -> dict[str, Item | None]:
    found: dict[str, Item | None] = {}
    names = list(keys)
    for at in range(0, len(names), _READS):
        some = names[at : at + _READS]
        reads = tuple(replace(home.get("", ""), key=keys[name]) for name in some)
        found |= zip(some, (await context.port.send(BatchGet(reads))).items, strict=True)
    return found


async def all_pairs(context: Context, home: Home, manifest: str) -> dict[str, bool]:
    """The files that a manifest has been paired with, each with whether it is still counted."""
    query = home.query(_MANIFEST + manifest, prefix=_PAIR)
    found: dict[str, bool] = {}
    while True:
        page = await context.port.send(query)
        found |= {home.sk_of(item).removeprefix(_PAIR): "taken" not in item for item in page.items}
        if page.last_key is None:
            return found
        query = replace(query, start_after=page.last_key)


# --- writes -----------------------------------------------------------------------------------------------


async def transact(context: Context, actions: Iterable[TransactAction]) -> None:
    """Write all of it or nothing; while others are just at one of the items, again."""
    asked = tuple(actions)
    for turn in range(TRIES):
        try:
            await context.port.send(TransactWrite(asked, context.port.new_id()))
        except (TransactionCanceledError, ConflictError) as error:
            if not error.retryable or turn == TRIES - 1:
                raise
            await pause(context, turn)
        else:
            return


async def pause(context: Context, turn: int) -> None:
    """Wait a little, longer each time, and by chance: who collided should not collide again."""
    await context.port.sleep(context.port.random() * min(1.0, 0.01 * 2**turn))


def failed(error: TransactionCanceledError, place: int) -> bool:
    """Whether it was the condition of this action."""
    return len(error.reasons) > place and error.reasons[place].code == "ConditionalCheckFailed"


def contention(manifest: str) -> ContentionError:
    """Others were faster each time."""
    return ContentionError(
        f"the files of the directory {manifest[:12]} are being changed by others, again and again"
    )
