"""The stored records of artifacts: versioned's rows, Holdall's notes beside them, aliases, histories and rollouts.

Pure. A *row* has exactly the attributes that versioned gives it: the row of a version is ``<name>`` / ``LATEST`` or six
digits, that of an alias ``__<name>-alias`` / ``<alias>``. A *note* is Holdall's own item in the partition
``__<name>-meta``: ``head`` about LATEST (and the counter of versions), ``version#<number>`` about a version,
``alias#<alias>`` about an alias. A note repeats its row as it was when the note was written: if the two differ,
versioned has written the row since, and what the note records about the content no longer holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from holdall.artifacts.name import LATEST, encode_alias_pk, encode_meta_pk
from holdall.core.expressions import Condition
from holdall.core.values import decode, encode
from holdall.tables.record import Record
from holdall.tables.record_column import RecordColumn, family, flag, mapping, number, real, text, texts

if TYPE_CHECKING:
    from holdall.artifacts.home import Home

HEAD = "head"
NAMES = "holdall#Artifacts"
"""The partition that lists the names of all artifacts."""


# --- times ------------------------------------------------------------------------------------------------


def show_moment(moment: datetime) -> str:
    """A time as versioned writes it, always 31 characters."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:26] + "+0000"


def parse_moment(text: str) -> datetime:
    """Parse a stored time, as versioned or a less exact program writes it."""
    return datetime.fromisoformat(text.replace("+0000", "+00:00")).astimezone(UTC)


def moment(name: str) -> RecordColumn[datetime | None]:
    """A column with a time."""
    column: RecordColumn[Any] = text(name, None).through(show_moment, parse_moment)  # None is never stored
    return column


# --- versions ---------------------------------------------------------------------------------------------


class ArtifactRecord(Record):
    """An item in the table of artifacts."""

    __slots__ = ()

    @property
    def pk(self) -> str:
        """Its partition key."""
        partition, _ = self.address.key.values()
        return str(partition["S"])

    @property
    def sk(self) -> str:
        """Its sort key."""
        _, sort = self.address.key.values()
        return str(sort["S"])


class Row(ArtifactRecord):
    """An item as versioned writes it, without any attribute of Holdall. Rows of other programs may lack attributes."""

    __slots__ = ()
    update_at = text("update_at", None)

    @property
    def moment(self) -> datetime | None:
        """When it was changed; None if missing or unparseable."""
        try:
            return None if self.update_at is None else parse_moment(self.update_at)
        except ValueError:
            return None


class VersionRow(Row):
    """A version, exactly as versioned writes it."""

    __slots__ = ()
    is_deleted = flag("is_deleted", False)
    sha256 = text("sha256", None)

    @classmethod
    def at(cls, home: Home, name: str, sk: str) -> Self:
        """The row of a version, not yet read."""
        return cls(home.address(name, sk))

    @classmethod
    def make(cls, home: Home, name: str, sk: str, update_at: datetime, sha256: str) -> Self:
        """The row of a version that is not deleted."""
        return cls.new(
            home.address(name, sk),
            cls.update_at.set(show_moment(update_at)),
            cls.is_deleted.set(False),
            cls.sha256.set(sha256),
        )

    @property
    def is_version(self) -> bool:
        """Whether the version exists, deleted or not: versioned may mark a version as deleted that never existed."""
        return self.sha256 is not None

    @property
    def is_live(self) -> bool:
        """Whether the version exists and is not deleted."""
        return self.is_version and not self.is_deleted


ROW = (VersionRow.update_at, VersionRow.is_deleted, VersionRow.sha256)
"""The attributes of a row: while all of them are unchanged, no process has written it."""

LIVE: Condition = VersionRow.sha256.exists & (
    VersionRow.is_deleted.absent | VersionRow.is_deleted.equals(False)
)
"""The condition of `VersionRow.is_live`."""


class Note(ArtifactRecord):
    """What Holdall knows about a version besides its row: its content, and the aliases that serve it.

    ``revision`` changes with the content, ``referred`` with ``served_by``.
    """

    __slots__ = ()
    sha256 = text("sha256", None)
    update_at = text("update_at", None)
    etag = text("etag", None)
    size = number("size", 0)
    key = text("key", "")
    content_type = text("content_type", None)
    metadata = mapping("metadata", None)
    tags = mapping("tags", None)
    manifest = text("manifest", None)
    total = number("total", None)
    deleted_at = moment("deleted_at")
    revision = text("revision", None)
    served_by = texts("served_by")
    referred = text("referred", None)

    @staticmethod
    def at(home: Home, name: str, sk: str) -> Head | VersionNote:
        """The note about a version, not yet read; the note about LATEST is the head."""
        kind = Head if sk == LATEST else VersionNote
        return kind(home.address(encode_meta_pk(name), note_sk(sk)))


CONTENT: tuple[RecordColumn[Any], ...] = (
    Note.sha256,
    Note.etag,
    Note.size,
    Note.key,
    Note.content_type,
    Note.metadata,
    Note.tags,
    Note.manifest,
    Note.total,
)
"""The attributes of a note that describe content, named like the fields of `Content`."""


class VersionNote(Note, type="holdall.ArtifactVersion"):
    """The note about a published version."""

    __slots__ = ()
    prefix = "version#"


class Head(Note, type="holdall.Artifact"):
    """The note about LATEST, and the counter of versions.

    ``counter`` is the highest number ever reserved; ``reserving`` has a mark for each number that is being published,
    by its slot, and ``reserved`` has the numbers. ``coming`` has the manifest of each directory that is about to become
    LATEST. ``purging`` describes the object of a purged LATEST that has not been deleted yet. ``published`` is the
    number that was published last; ``listed``: the name is in the list of all names. ``purged_at`` is when the last
    purge of all versions began.
    """

    __slots__ = ()
    counter = number("counter", None)
    reserving = family("reserving_", text)
    reserved = family("reserved_", number)
    coming = family("next|", text)
    purging = mapping("purging", None)
    published = number("published", None)
    listed = flag("listed", False)
    purged_at = moment("purged_at")

    @classmethod
    def of(cls, home: Home, name: str) -> Self:
        """The head of an artifact, not yet read."""
        return cls(home.address(encode_meta_pk(name), HEAD))


class PurgeMark(ArtifactRecord, type="holdall.ArtifactPurge"):
    """Names the bytes of a version that was purged ``at`` a time and that have not been deleted yet."""

    __slots__ = ()
    key = text("key")
    at = moment("at")
    prefix = "purge#"


class NameRecord(ArtifactRecord, type="holdall.ArtifactName"):
    """A name in the list of all artifacts."""

    __slots__ = ()

    @classmethod
    def of(cls, home: Home, name: str) -> Self:
        """The record of a name, to be written."""
        return cls.new(home.address(NAMES, name))


def note_sk(sk: str) -> str:
    """The sort key of the note about a version."""
    return HEAD if sk == LATEST else VersionNote.prefix + sk


# --- aliases ----------------------------------------------------------------------------------------------


def _encode_arms(arms: Sequence[tuple[str, int]]) -> Any:
    return encode([{"version": sk, "weight": weight} for sk, weight in arms])


def _decode_arms(attribute: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    return tuple((arm["version"], int(arm["weight"])) for arm in decode(attribute))


class AliasRow(Row):
    """An alias, exactly as versioned writes it."""

    __slots__ = ()
    version = text("version")
    secondary_version = text("secondary_version", None)
    weight = number("secondary_version_weight", 0)

    @classmethod
    def at(cls, home: Home, name: str, alias: str) -> Self:
        """The row of an alias, not yet read."""
        return cls(home.address(encode_alias_pk(name), alias))


FIELDS = (AliasRow.update_at, AliasRow.version, AliasRow.secondary_version, AliasRow.weight)
"""The attributes of an alias's row; a note repeats them."""


class AliasNote(ArtifactRecord, type="holdall.ArtifactAlias"):
    """What Holdall knows about an alias besides its row, which it repeats.

    That is more than two arms, protection, and the length of its history. The note stays when the alias is deleted.
    """

    __slots__ = ()
    revision = text("revision", None)
    changes = number("changes", 0)
    protected = flag("protected", False)
    arms: RecordColumn[Sequence[tuple[str, int]] | None] = RecordColumn(
        "arms", _encode_arms, _decode_arms, None
    )
    prefix = "alias#"

    @classmethod
    def at(cls, home: Home, name: str, alias: str) -> Self:
        """The note about an alias, not yet read."""
        return cls(home.address(encode_meta_pk(name), cls.prefix + alias))


def history_sk(alias: str, number: int) -> str:
    """The sort key of a change in an alias's history."""
    return f"history#{alias}#{number:09d}"


class AliasChangeRecord(ArtifactRecord, type="holdall.ArtifactAliasChange"):
    """A change in an alias's history; ``arms`` are pairs of a version and its weight, in order."""

    __slots__ = ()
    at = moment("at")
    action = text("action")
    arms: RecordColumn[Sequence[Sequence[Any]] | None] = RecordColumn("arms", encode, decode, None)
    by = text("by", None)
    reason = text("reason", None)
    of = number("of", None)
    protected = flag("protected", None)


class RolloutRecord(ArtifactRecord, type="holdall.ArtifactRollout"):
    """A staged rollout; ``stages`` are pairs of a percentage and seconds, None for a stage that waits for approval."""

    __slots__ = ()
    id = text("id")
    base = text("base")
    version = text("version")
    state = text("state")
    revision = text("revision")
    alias_revision = text("alias_revision")
    by = text("by", None)
    reason = text("reason", None)
    problem = text("problem", None)
    stages: RecordColumn[Sequence[Sequence[Any]]] = RecordColumn("stages", encode, decode)
    stage = number("stage")
    turn = number("turn")
    approve = flag("approve")
    started_at = moment("started_at")
    update_at = moment("update_at")
    due = moment("due")
    prefix = "rollout#"
    left = real("left", None)

    @classmethod
    def at(cls, home: Home, name: str, alias: str) -> Self:
        """The last rollout of an alias, not yet read."""
        return cls(home.address(encode_meta_pk(name), cls.prefix + alias))
