"""Flows that read one version of an artifact, or all of them. Strongly consistent.

A version that versioned wrote has no note. `get` then asks its object; a listing leaves out what it cannot know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypedDict

from holdall.artifacts.alias.alias import Alias
from holdall.artifacts.alias.state import explain_no_alias, read_aliases, read_state
from holdall.artifacts.home import Home, find_home
from holdall.artifacts.name import (
    LATEST,
    check_name,
    display_version,
    encode_meta_pk,
    encode_version_sk,
    is_version,
    number_of,
)
from holdall.artifacts.record import Note, VersionNote, VersionRow, note_sk
from holdall.artifacts.version.artifact import Artifact
from holdall.artifacts.version.content import artifact_of, find_content
from holdall.artifacts.version.latest import read_content, settle
from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.core.objects import DescribeService
from holdall.core.option import check_count
from holdall.errors import ArtifactNotFoundError, IntegrityError, InvalidOptionsError
from holdall.files.transfer import find_object
from holdall.tables.record import RecordPages, fetch

_PAGE = 100


class Where(TypedDict, total=False):
    """Which versions to list: all conditions that are given must be met.

    A version must have changed at or after ``after`` and before ``before``; it must have all these ``tags`` and all
    this ``metadata``, and may have more; and it must have the digest ``sha256``. Deleted versions are left out, unless
    ``deleted`` is True (only those) or None (all versions).
    """

    after: datetime
    before: datetime
    tags: Mapping[str, str]
    metadata: Mapping[str, str]
    sha256: str
    deleted: bool | None


async def get(
    context: Context,
    name: str,
    version: int | str | None = None,
    *,
    key: str | int | None = None,
    deleted: bool = False,
) -> Artifact:
    """Return a version of an artifact, LATEST by default; or the version that an alias serves.

    If the alias splits its traffic, ``key`` (for example a user's id) decides which version. `ArtifactNotFoundError` if
    the version does not exist or is deleted; ``deleted=True`` also returns a deleted one.
    """
    check_name(name)
    home = await find_home(context)
    sk = await resolve_reference(context, name, version, key)
    served = await find_serving_aliases(context, home, name)
    return await read_artifact(context, home, name, sk, deleted, served.get(sk, ()))


async def read_artifact(
    context: Context, home: Home, name: str, sk: str, deleted: bool = False, aliases: Iterable[str] = ()
) -> Artifact:
    """Read a version by its sort key; ``aliases`` are those that serve it, which the caller has read."""
    if sk == LATEST:
        return await _read_latest(context, home, name, deleted, aliases)
    row, note = await fetch(context.port, VersionRow.at(home, name, sk), Note.at(home, name, sk))
    if not row.is_version or not (deleted or row.is_live):
        raise explain_missing(name, sk)
    return await _fill(context, home, row, note, aliases)


async def resolve_reference(
    context: Context, name: str, reference: int | str | None, key: str | int | None = None
) -> str:
    """The sort key of the version that a caller refers to: a version, or an alias that serves one."""
    if is_version(reference):
        return encode_version_sk(reference)
    found = (await read_state(context, await find_home(context), name, str(reference))).value()
    if found is None:
        raise explain_no_alias(name, str(reference))
    return encode_version_sk(found.resolve(key))


async def _read_latest(
    context: Context, home: Home, name: str, deleted: bool, aliases: Iterable[str]
) -> Artifact:
    latest, info = await settle(context, home, name)
    if not latest.row.is_version or not (deleted or latest.is_live):
        raise explain_missing(name, LATEST)
    if info is None:
        raise await _report_loss(context, home, name, LATEST)
    content = latest.content or await read_content(context, home, info)
    return artifact_of(latest.row, latest.head, content=content, aliases=aliases)


async def _fill(
    context: Context, home: Home, row: VersionRow, note: Note, aliases: Iterable[str]
) -> Artifact:
    """Complete a version with everything known about it; from its object, if the table does not have it."""
    if find_content(row, note) is not None:
        return artifact_of(row, note, aliases=aliases)
    name, sk = row.pk, row.sk
    check_unaltered(name, sk, row, note)
    info = await find_object(context, home.service, home.object_key(name, sk))
    if info is None:
        raise await _report_loss(context, home, name, sk)
    content = await read_content(context, home, info)
    if content is None or content.sha256 != row.sha256:
        raise IntegrityError(
            f"version {display_version(sk)} of {name!r:.60} should have the SHA-256 {row.sha256}, "
            f"but its object has {None if content is None else content.sha256}"
        )
    return artifact_of(row, note, content=content, aliases=aliases)


def check_unaltered(name: str, sk: str, row: VersionRow, note: Note) -> None:
    """Raise `IntegrityError` if a row no longer has the digest that was published, even if the object agrees."""
    if note.etag is not None and note.sha256 != row.sha256:
        raise IntegrityError(
            f"version {display_version(sk)} of {name!r:.60} was published with the SHA-256 {note.sha256}, "
            f"but its row in the table now has {row.sha256:.64}",
            hint="another program changed a published version: purge it, and publish its content as a new version",
        )


def explain_missing(name: str, sk: str) -> ArtifactNotFoundError:
    """The error for a version that does not exist."""
    if sk == LATEST:
        return ArtifactNotFoundError(
            f"the artifact {name!r:.60} has no LATEST", hint="put it first, or restore it if it was deleted"
        )
    return ArtifactNotFoundError(f"there is no version {display_version(sk)} of the artifact {name!r:.60}")


async def _report_loss(context: Context, home: Home, name: str, sk: str) -> ArtifactNotFoundError:
    """The error for a version whose row exists, but whose bytes are missing."""
    place = (await context.port.send(DescribeService(home.service))).place or f"the service {home.service}"
    key = home.object_key(name, sk)
    return ArtifactNotFoundError(
        f"version {display_version(sk)} of {name!r:.60} is in the table, "
        f"but its bytes are missing: there is no object {key!r:.80} in {place}",
        hint="check that this is the right bucket, that prefix and suffix are unchanged, and that the object was not "
        "deleted by hand",
    )


async def find_serving_aliases(context: Context, home: Home, name: str) -> dict[str, list[str]]:
    """Read which aliases serve which version, by sort key; including aliases that versioned wrote."""
    found: dict[str, list[str]] = {}
    for each in await read_aliases(context, home, name):
        for sk, _ in each.arms:
            found.setdefault(sk, []).append(each.alias)
    return found


def find_serving(aliases: Iterable[Alias], sk: str) -> list[Alias]:
    """The aliases that serve a version."""
    return [each for each in aliases if any(arm == sk for arm, _ in each.arms)]


# --- listing ----------------------------------------------------------------------------------------------


class VersionPages:
    """The versions of an artifact, a page at a time: LATEST, then the numbered ones, newest first."""

    def __init__(
        self,
        context: Context,
        name: str,
        where: Where | None = None,
        before: int | str | None = None,
        limit: int | None = None,
    ) -> None:
        self._context = context
        self._name = check_name(name)
        self._filter = _Filter.of(where)
        if limit is not None:
            check_count(limit, "limit")
        self._left = limit
        self._before = None if before is None else encode_version_sk(before)
        self._pages: RecordPages[VersionRow] | None = None
        self._served: dict[str, list[str]] = {}

    async def next_page(self) -> list[Artifact] | None:
        """Return the versions of the next page, which may be empty; None at the end."""
        if self._left == 0:
            return None
        home = await find_home(self._context)
        if self._pages is None:
            limit = _PAGE if self._left is None or self._filter.narrows else min(_PAGE, self._left + 1)
            query = home.query_versions(self._name, limit=limit, before=self._before)
            self._pages = RecordPages(self._context.port, VersionRow, query, home.address_of)
            self._served = await find_serving_aliases(self._context, home, self._name)
        rows = await self._pages.next_page()
        if rows is None:
            return None
        found = await self._describe(
            home,
            [row for row in rows if row.is_version and (row.sk == LATEST or number_of(row.sk) is not None)],
        )
        if self._left is not None:
            found = found[: self._left]
            self._left -= len(found)
        return found

    async def _describe(self, home: Home, rows: list[VersionRow]) -> list[Artifact]:
        notes = await self._fetch_notes(home, [row.sk for row in rows if row.sk != LATEST])
        found = []
        for row in rows:
            aliases = self._served.get(row.sk, ())
            if row.sk == LATEST:
                each = await self._describe_latest(home, row, aliases)
            else:
                note = notes.get(row.sk) or Note.at(home, self._name, row.sk)
                each = artifact_of(row, note, aliases=aliases)
                if self._filter.asks_content and each.metadata is None:
                    each = await _fill(self._context, home, row, note, aliases)
            if self._filter.takes(each):
                found.append(each)
        return found

    async def _describe_latest(self, home: Home, row: VersionRow, aliases: Iterable[str]) -> Artifact:
        try:
            return await _read_latest(self._context, home, self._name, True, aliases)
        except ArtifactNotFoundError:  # purged since, or its bytes are missing: then only what the row has
            return artifact_of(row, aliases=aliases)

    async def _fetch_notes(self, home: Home, numbered: list[str]) -> dict[str, VersionNote]:
        """The notes about numbered versions, read as one range."""
        if not numbered:
            return {}
        pk = encode_meta_pk(self._name)
        query = home.query_range(pk, note_sk(min(numbered)), note_sk(max(numbered)))
        notes = await RecordPages(self._context.port, VersionNote, query, home.address_of).read_all()
        return {note.sk.removeprefix(VersionNote.prefix): note for note in notes}


@dataclass(frozen=True, slots=True)
class _Filter:
    """A `Where`, checked."""

    after: datetime | None = None
    before: datetime | None = None
    tags: Mapping[str, str] | None = None
    metadata: Mapping[str, str] | None = None
    sha256: str | None = None
    deleted: bool | None = False

    @classmethod
    def of(cls, where: Where | None) -> _Filter:
        if where is not None and not isinstance(where, Mapping):
            raise InvalidOptionsError(
                f"where must be a mapping of conditions, not {where!r:.60}",
                hint='as in where={"tags": {"team": "ml"}}',
            )
        given: dict[str, Any] = dict(where or {})
        unknown = sorted(str(each) for each in given.keys() - set(cls.__match_args__))
        if unknown:
            raise InvalidOptionsError(
                f"where has an unknown condition: {', '.join(unknown)}",
                hint=f"known conditions: {', '.join(cls.__match_args__)}",
            )
        for each in ("after", "before"):
            moment = given.get(each)
            if moment is not None and (not isinstance(moment, datetime) or moment.tzinfo is None):
                raise InvalidOptionsError(
                    f"{each} in where must be a datetime with a time zone, not {moment!r:.60}"
                )
        for each in ("tags", "metadata"):
            if given.get(each) is not None and not isinstance(given[each], Mapping):
                raise InvalidOptionsError(
                    f"{each} in where must be a mapping of strings to strings, not {given[each]!r:.60}"
                )
        if not isinstance(given.get("sha256") or "", str):
            raise InvalidOptionsError(f"sha256 in where must be a string, not {given['sha256']!r:.60}")
        return cls(**given)

    @property
    def narrows(self) -> bool:
        """Whether versions that are not deleted may be left out."""
        return self != _Filter()

    @property
    def asks_content(self) -> bool:
        return self.tags is not None or self.metadata is not None

    def takes(self, artifact: Artifact) -> bool:
        moment = artifact.update_at
        return (
            (self.deleted is None or artifact.is_deleted == self.deleted)
            and (self.sha256 is None or artifact.sha256 == self.sha256)
            and (self.after is None or (moment is not None and moment >= self.after))
            and (self.before is None or (moment is not None and moment < self.before))
            and _has(artifact.tags, self.tags)
            and _has(artifact.metadata, self.metadata)
        )


def _has(found: Mapping[str, str] | None, wanted: Mapping[str, str] | None) -> bool:
    return wanted is None or all((found or {}).get(name) == value for name, value in wanted.items())
