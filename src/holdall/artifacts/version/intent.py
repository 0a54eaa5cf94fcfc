"""The flow that puts LATEST: bytes, a file, a stream or a directory.

Why it is safe wherever it stops: until the object is replaced, nothing has changed, and it is replaced in one step.
From then on LATEST is the new content; the next process finds that the row is outdated, and corrects it (`latest`).
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from holdall.artifacts.home import Home, find_home
from holdall.artifacts.name import LATEST, check_new_name
from holdall.artifacts.record import Head, VersionRow, show_moment
from holdall.artifacts.version.artifact import Artifact
from holdall.artifacts.version.content import (
    MANIFEST_KEY,
    NAME_KEY,
    OURS,
    SHA_KEY,
    Content,
    artifact_of,
    object_sha256,
)
from holdall.artifacts.version.expectation import Expected
from holdall.artifacts.version.latest import (
    Latest,
    check_home,
    is_in_line,
    put_right,
    read_latest,
    settle,
    update_head,
)
from holdall.artifacts.version.material import Material, of_manifest, open_material
from holdall.artifacts.version.vacancy import await_vacancy
from holdall.core.context import Context
from holdall.core.digests import hex_of
from holdall.core.frozen import dataclass, replace
from holdall.core.objects import ObjectHeaders, ObjectInfo, PutObject
from holdall.core.rules.object import check_object_request
from holdall.errors import ContentionError, InvalidOptionsError, PreconditionFailedError
from holdall.files.progress import Progress
from holdall.files.transfer import find_object
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import Attempts, commit, commit_once

if TYPE_CHECKING:
    from holdall.artifacts.directory.record import Hold

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Intent:
    """The content that LATEST will have, and its bytes.

    ``content`` has no etag yet; ``headers`` are those of the object, with Holdall's metadata. A directory has a
    ``hold`` that keeps its files until LATEST has them, and, if it will be published, a ``version_hold`` that keeps
    them until the version has them.
    """

    name: str
    content: Content
    headers: ObjectHeaders
    tags: Mapping[str, str]
    material: Material
    expected: Expected
    progress: Progress | None
    hold: Hold | None = None
    version_hold: Hold | None = None

    def is_that(self, info: ObjectInfo, sent: ObjectInfo) -> bool:
        """Whether an object is the one that was sent, and not another process's with the same bytes."""
        headers = info.headers
        found = info.etag, headers.metadata, headers.content_type
        return found == (sent.etag, self.headers.metadata, self.headers.content_type)

    def is_there(self, latest: Latest) -> bool:
        """Whether LATEST already has this content, as far as the table knows."""
        content = latest.content
        return latest.is_live and content is not None and content.is_like(self.content)


async def put(
    context: Context,
    name: str,
    content: Any,
    *,
    content_type: str | None = None,
    metadata: Mapping[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
    expect_sha256: str | None = None,
    expect_version: int | str | None = None,
    expect_revision: str | None = None,
    progress: Progress | None = None,
) -> Artifact:
    """Store content as the LATEST of an artifact: bytes, the path of a file or directory, or a stream.

    If LATEST already has this content, with the same type, metadata and tags, nothing is uploaded. A deleted LATEST is
    restored. ``expect_sha256`` and ``expect_revision`` are what LATEST must have, ``expect_version`` is what the newest
    version must be (0 if there must be none). If one of them does not hold, nothing changes, and this raises
    `ArtifactChangedError`. ``progress`` is called with the bytes done and the total.
    """
    expected = Expected(expect_sha256, expect_version, expect_revision).check_given()
    home, intent = await prepare_intent(
        context, name, content, content_type, metadata, tags, expected, progress
    )
    return await use_intent(context, home, intent, put_intent(context, home, intent))


async def prepare_intent(
    context: Context,
    name: str,
    content: Any,
    content_type: str | None,
    metadata: Mapping[str, str] | None,
    tags: Mapping[str, str] | None,
    expected: Expected,
    progress: Progress | None,
    *,
    publish: bool = False,
) -> tuple[Home, Intent]:
    """Check and hash the caller's content; store and hold the files of a directory. `use_intent` releases it.

    ``publish``: the content will also become a version.
    """
    check_new_name(name)
    given, kept_tags = _texts("metadata", metadata), _texts("tags", tags)
    _check_metadata(given)
    home = await find_home(context)
    key = home.object_key(name, LATEST)
    # with room for what Holdall adds to it, and for the id that a copy of it leaves
    trial = {**given, NAME_KEY: name, SHA_KEY: "0" * 64, MANIFEST_KEY: "0" * 13, "put": "0" * 47}
    put = PutObject(home.service, key, b"", ObjectHeaders(content_type, metadata=trial), tags=kept_tags)
    check_object_request(put)
    holds: tuple[Hold | None, Hold | None] = None, None
    total: int | None = None
    material = await open_material(context, home, content, progress)
    if material is None:
        from holdall.artifacts.directory.manifest import CONTENT_TYPE

        holds, material, total = await _hold_directory(
            context, home, name, content, expected, progress, publish
        )
        content_type = CONTENT_TYPE if content_type is None else content_type
        progress = None  # the files were reported
    sha256 = hex_of(material.digest)
    ours, manifest = {NAME_KEY: name, SHA_KEY: sha256}, None
    if total is not None:
        ours[MANIFEST_KEY], manifest = str(total), sha256
    kept = Content(sha256, "", material.size, key, content_type, given, kept_tags, manifest, total)
    headers = ObjectHeaders(content_type, metadata={**given, **ours})
    return home, Intent(name, kept, headers, kept_tags, material, expected, progress, *holds)


async def use_intent(context: Context, home: Home, intent: Intent, work: Coroutine[Any, Any, T]) -> T:
    """Do the work with an intent, and release its holds, however the work ends."""
    try:
        return await work
    except BaseException as error:
        for hold in (intent.hold, intent.version_hold):
            if hold is not None:
                from holdall.artifacts.directory.hold import drop_hold

                await context.port.finish(drop_hold(context, home, hold, error))
        raise
    finally:
        await context.port.finish(intent.material.discard_waiting(context, home))


async def _hold_directory(
    context: Context,
    home: Home,
    name: str,
    path: Any,
    expected: Expected,
    progress: Progress | None,
    publish: bool,
) -> tuple[tuple[Hold, Hold | None], Material, int]:
    """Store and hold the files of a directory; there may be many, so expectations are checked first.

    If they will be published, they are held twice: if LATEST is replaced, nothing else would keep them for the version.
    A process that dies between the two leaves a hold that expires by itself.
    """
    from holdall.artifacts.directory.hold import drop_hold, hold_files
    from holdall.artifacts.directory.inventory import gather_directory

    directory = await gather_directory(context, path)
    await expected.check(context, home, name)
    hold, version_hold = await hold_files(context, home, directory, progress=progress), None
    if publish:
        try:
            version_hold = await hold_files(context, home, directory)
        except BaseException as error:
            await context.port.finish(drop_hold(context, home, hold, error))
            raise
    return (hold, version_hold), of_manifest(directory.manifest), directory.total


def _texts(option: str, given: object) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(each, str) for each in (*given, *given.values())):
        raise InvalidOptionsError(
            f"{option} must be a mapping of strings to strings, not {given!r:.60}",
            hint='as in {"build": "17"}',
        )
    return dict(given)


def _check_metadata(metadata: Mapping[str, str]) -> None:
    taken = sorted({each for each in metadata if each in (*OURS, MANIFEST_KEY)})
    if taken:
        raise InvalidOptionsError(
            f"the metadata {', '.join(taken)} cannot be set, because Holdall uses it to describe the content",
            hint="use other names",
        )


async def put_intent(context: Context, home: Home, intent: Intent) -> Artifact:
    """Make an intent LATEST."""
    attempts = Attempts(context, f"the artifact {intent.name!r:.60}")
    while True:
        await attempts.another()
        latest = await read_latest(context, home, intent.name)
        latest = await await_vacancy(context, home, latest, intent.content.sha256)
        check_home(home, intent.name, latest.content)
        if_match = await intent.expected.check(context, home, intent.name, latest)
        if intent.is_there(latest):
            info = await find_object(context, home.service, intent.content.key)
            if info is not None and is_in_line(latest, info) and object_sha256(info) == intent.content.sha256:
                return await _keep_latest(context, home, intent, latest)
        if intent.hold is not None and not _find_marks(latest, intent.hold):
            announced = await _announce_manifest(context, home, latest, intent.hold)
            if announced is None:
                continue
            latest = announced
        sent = await _send_intent(context, home, intent, if_match)
        info = await find_object(context, home.service, intent.content.key)
        if info is not None and intent.is_that(info, sent):
            content = replace(intent.content, etag=info.etag)
            done = await put_right(context, home, latest, info, content=content, hold=intent.hold)
            if isinstance(done, Latest):
                return _describe_put(home, intent, done, sent)
        done, info = await settle(context, home, intent.name, intent.hold)
        if info is not None:  # the object of this put, settled by another process; or a later one
            if intent.hold is not None:
                await _withdraw_manifest(context, home, done, intent.hold)
            return _describe_put(home, intent, done, sent)
        # it was purged meanwhile: try again


async def _send_intent(context: Context, home: Home, intent: Intent, if_match: str | None) -> ObjectInfo:
    try:
        return await intent.material.send(
            context,
            home,
            intent.content.key,
            intent.headers,
            intent.tags,
            if_match=if_match,
            progress=intent.progress,
        )
    except PreconditionFailedError as error:
        if if_match is None:
            raise
        raise intent.expected.refusal(intent.name, "another process has replaced LATEST") from error


async def _announce_manifest(context: Context, home: Home, latest: Latest, hold: Hold) -> Latest | None:
    """Count a directory's manifest for LATEST before it is put; None if another process wrote the head meanwhile.

    The mark stays on the head until the manifest, or something else, has become LATEST.
    """
    from holdall.artifacts.directory.hold import redeem_hold

    change = Change(context)
    mark = Head.coming[f"{show_moment(context.port.now())}|{hold.id}"]
    head = update_head(change, latest, mark.set(hold.manifest))
    redeem_hold(change, home, hold)
    if await commit_once(change) is not None:
        return None
    return replace(latest, head=head)


def _find_marks(latest: Latest, hold: Hold) -> list[str]:
    """The marks on the head that count a directory's manifest while it is coming."""
    return [each for each in latest.head.coming if each.endswith(hold.id)]


async def _withdraw_manifest(context: Context, home: Home, latest: Latest, hold: Hold) -> None:
    """Stop counting a manifest as coming: it is now counted for LATEST, or it did not become LATEST."""
    from holdall.artifacts.directory.hold import count_versions
    from holdall.artifacts.directory.sweep import sweep

    known: list[Latest] = [latest]

    async def withdraw(change: Change) -> bool:
        latest = known.pop() if known else await read_latest(context, home, name)
        marks = _find_marks(latest, hold)
        if marks:
            update_head(change, latest, *(Head.coming[each].remove() for each in marks))
            count_versions(change, home, fewer=[hold.manifest])
        return bool(marks)

    name = latest.name
    try:
        withdrawn = await commit(context, withdraw, f"the artifact {name!r:.60}")
    except ContentionError:
        return  # the mark stays; a later put removes it
    if withdrawn:
        await sweep(context, home, (hold.manifest,))


async def _keep_latest(context: Context, home: Home, intent: Intent, latest: Latest) -> Artifact:
    if intent.hold is not None:
        from holdall.artifacts.directory.hold import drop_hold

        await drop_hold(context, home, intent.hold)
    return artifact_of(latest.row, latest.head, content=latest.content, aliases=latest.head.served_by)


def _describe_put(home: Home, intent: Intent, done: Latest, sent: ObjectInfo) -> Artifact:
    """Describe what was put, even if it has been replaced since."""
    served, content = done.head.served_by, done.content
    if content is not None and content.sha256 == intent.content.sha256:
        return artifact_of(done.row, done.head, content=content, aliases=served)
    row = VersionRow.make(home, intent.name, LATEST, sent.modified, intent.content.sha256)
    return artifact_of(row, content=intent.content, aliases=served)
