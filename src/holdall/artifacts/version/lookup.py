"""Flows that read artifacts: one, or all versions of one. Strongly consistent.

A version that versioned wrote has no note of ours: `get` then asks its object, a listing leaves out what it cannot
know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypedDict

from holdall.artifacts.alias.alias import Alias
from holdall.artifacts.alias.state import explain_no_alias, read_aliases, read_state
from holdall.artifacts.home import Home, Pages, home_of
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
from holdall.artifacts.version.content import artifact_of, content_of, find_content
from holdall.artifacts.version.latest import look, settle, tags_of
from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.core.objects import DescribeService
from holdall.errors import ArtifactNotFoundError, IntegrityError, InvalidOptionsError
from holdall.tables.record import fetch

_PAGE = 100


class Where(TypedDict, total=False):
    """Which versions to list: changed at or after ``after`` and before ``before``, with these tags and this metadata
    (all of them, maybe others besides), with a digest; ``deleted``: True for deleted ones, None for all."""

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
    """A version, LATEST without one; or what an alias serves, to ``key`` if one is given.

    `ArtifactNotFoundError` when it is not there, or deleted; ``deleted=True`` finds it also then.
    """
    check_name(name)
    home = await home_of(context)
    sk = await resolve_reference(context, name, version, key)
    served = await aliases_of(context, home, name)
    return await read_artifact(context, home, name, sk, deleted, served.get(sk, ()))


async def read_artifact(
    context: Context, home: Home, name: str, sk: str, deleted: bool = False, aliases: Iterable[str] = ()
) -> Artifact:
    """A version by its sort key, with the aliases that somebody else has looked up."""
    if sk == LATEST:
        return await _read_latest(context, home, name, deleted, aliases)
    row, note = await fetch(context.port, VersionRow.at(home, name, sk), Note.at(home, name, sk))
    if not row.is_version or not (deleted or row.is_live):
        raise explain_missing(name, sk)
    return await _fill(context, home, row, note, aliases)


async def resolve_reference(
    context: Context, name: str, reference: int | str | None, key: str | int | None = None
) -> str:
    """The sort key of what a caller names: a version, or an alias, which serves one."""
    if is_version(reference):
        return encode_version_sk(reference)
    found = (await read_state(context, await home_of(context), name, str(reference))).value()
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
    content = latest.content or content_of(info, await tags_of(context, home, info.key))
    return artifact_of(latest.row, latest.head, content=content, aliases=aliases)


async def _fill(
    context: Context, home: Home, row: VersionRow, note: Note, aliases: Iterable[str]
) -> Artifact:
    """A version with all that is known of it; its object is asked if the table does not know."""
    if find_content(row, note) is not None:
        return artifact_of(row, note, aliases=aliases)
    name, sk = row.pk, row.sk
    check_unaltered(name, sk, row, note)
    object_key = home.object_key(name, sk)
    info = await look(context, home, object_key)
    if info is None:
        raise await _report_loss(context, home, name, sk)
    content = content_of(info, await tags_of(context, home, object_key))
    if content is None or content.sha256 != row.sha256:
        raise IntegrityError(
            f"version {display_version(sk)} of {name!r:.60} should have the sha256 {row.sha256}, "
            f"and its object says {None if content is None else content.sha256}"
        )
    return artifact_of(row, note, content=content, aliases=aliases)


def check_unaltered(name: str, sk: str, row: VersionRow, note: Note) -> None:
    """Refuse a version whose row no longer has the digest that it was published with, even if its object agrees."""
    if note.etag is not None and note.sha256 != row.sha256:
        raise IntegrityError(
            f"version {display_version(sk)} of {name!r:.60} was published with the sha256 {note.sha256}, "
            f"but its row now has {row.sha256:.64}",
            hint="a published version never changes: purge it, and publish its content under a new number",
        )


def explain_missing(name: str, sk: str) -> ArtifactNotFoundError:
    """There is no such version."""
    return ArtifactNotFoundError(f"there is no version {display_version(sk)} of the artifact {name!r:.60}")


async def _report_loss(context: Context, home: Home, name: str, sk: str) -> ArtifactNotFoundError:
    """The error for a version whose row exists, but whose bytes are missing."""
    place = (await context.port.send(DescribeService(home.service))).place or f"the service {home.service}"
    key = home.object_key(name, sk)
    return ArtifactNotFoundError(
        f"version {display_version(sk)} of {name!r:.60} is in the table, "
        f"but its bytes are not under {key!r:.80} in {place}",
        hint="is this the right bucket? Was the prefix or the suffix changed, or the object deleted by hand?",
    )


async def aliases_of(context: Context, home: Home, name: str) -> dict[str, list[str]]:
    """Which aliases serve which version, by sort key: as they are now, whoever wrote them."""
    found: dict[str, list[str]] = {}
    for each in await read_aliases(context, home, name):
        for sk, _ in each.arms:
            found.setdefault(sk, []).append(each.alias)
    return found


def find_serving(aliases: Iterable[Alias], sk: str) -> list[Alias]:
    """Those that serve a version."""
    return [each for each in aliases if any(arm == sk for arm, _ in each.arms)]


# --- listing ----------------------------------------------------------------------------------------------


class VersionPages:
    """The versions of an artifact, a page at a time: LATEST first, then the newest first."""

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
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise InvalidOptionsError(f"limit is {limit!r:.60}, and has to be a whole number from 1 up")
        self._left = limit
        self._before = None if before is None else encode_version_sk(before)
        self._pages: Pages[VersionRow] | None = None
        self._served: dict[str, list[str]] = {}

    async def next_page(self) -> list[Artifact] | None:
        """Some more versions, perhaps none; None at the end."""
        if self._left == 0:
            return None
        home = await home_of(self._context)
        if self._pages is None:
            limit = _PAGE if self._left is None or self._filter.narrows else min(_PAGE, self._left + 1)
            query = home.query_versions(self._name, limit=limit, before=self._before)
            self._pages = Pages(self._context, home, VersionRow, query)
            self._served = await aliases_of(self._context, home, self._name)
        rows = await self._pages.next()
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
        except ArtifactNotFoundError:  # purged since, or without its bytes: then what the row says
            return artifact_of(row, aliases=aliases)

    async def _fetch_notes(self, home: Home, numbered: list[str]) -> dict[str, VersionNote]:
        """The notes about numbered versions, read as one range."""
        if not numbered:
            return {}
        pk = encode_meta_pk(self._name)
        query = home.query_range(pk, note_sk(min(numbered)), note_sk(max(numbered)))
        notes = await Pages(self._context, home, VersionNote, query).all()
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
            raise InvalidOptionsError(f"where is {where!r:.60}", hint='as in where={"tags": {"team": "ml"}}')
        given: dict[str, Any] = dict(where or {})
        unknown = sorted(str(each) for each in given.keys() - set(cls.__match_args__))
        if unknown:
            raise InvalidOptionsError(
                f"where= asks for {', '.join(unknown)}",
                hint=f"it can ask for: {', '.join(cls.__match_args__)}",
            )
        for each in ("after", "before"):
            moment = given.get(each)
            if moment is not None and (not isinstance(moment, datetime) or moment.tzinfo is None):
                raise InvalidOptionsError(
                    f"where= has {each} {moment!r:.60}", hint="give a time with a time zone"
                )
        for each in ("tags", "metadata"):
            if given.get(each) is not None and not isinstance(given[each], Mapping):
                raise InvalidOptionsError(
                    f"where= has {each} {given[each]!r:.60}", hint="it maps texts to texts"
                )
        if not isinstance(given.get("sha256") or "", str):
            raise InvalidOptionsError(f"where= has sha256 {given['sha256']!r:.60}", hint="it is text")
        return cls(**given)

    @property
    def narrows(self) -> bool:
        """Whether some versions may be left out besides those that are deleted."""
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
