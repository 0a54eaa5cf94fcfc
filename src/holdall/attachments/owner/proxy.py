"""The value of an owner's attribute: the attachments that were loaded, with the changes that are not yet committed.

Pure: a change is only recorded here; the owner's transaction commits it together with the owner.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from holdall.attachments.blob.blob import Blob
from holdall.attachments.blob.filename import Filename
from holdall.attachments.owner.attachment import Attachment
from holdall.attachments.owner.given import Given, NewFile, read_given
from holdall.core.frozen import dataclass
from holdall.core.internal import internal
from holdall.errors import AttachmentNotLoadedError

if TYPE_CHECKING:
    from holdall.attachments.blob.delivery import Disposition
    from holdall.attachments.owner.declaration import Declaration
    from holdall.attachments.picture.representation import Representation
    from holdall.attachments.picture.variant import Variant

Dependent: TypeAlias = Literal["purge_later", "purge", False]
"""What a declaration says about a blob that is replaced, or whose owner is deleted."""

Removal: TypeAlias = Literal["detach", "purge", "purge_later"]
"""What happens to the blob of a removed attachment: it stays, it is deleted at once, or a job deletes it."""


@dataclass(frozen=True, slots=True)
class Removed:
    """What to remove (everything stored under the name, or the attachments with these ids), and how."""

    ids: frozenset[str] | None
    how: Removal


@dataclass(frozen=True, slots=True)
class Pending:
    """The changes recorded for one name of an owner: removals, then additions."""

    removed: tuple[Removed, ...] = ()
    added: tuple[Given, ...] = ()

    @property
    def removes_all(self) -> bool:
        """Whether everything that is stored is removed."""
        return any(each.ids is None for each in self.removed)

    def keeps(self, attachment: Attachment) -> bool:
        """Whether a stored attachment stays."""
        return not any(each.ids is None or attachment.id in each.ids for each in self.removed)


NOTHING = Pending()


class _Proxy:
    """The attachments of one owner under one name."""

    __slots__ = ("_declaration", "_owner", "_stored", "pending")

    @internal
    def __init__(self, owner: Any, declaration: Declaration, stored: Sequence[Attachment] | None) -> None:
        self._owner = owner
        self._declaration = declaration
        self._stored = stored
        self.pending = NOTHING

    @property
    def owner(self) -> Any:
        """The object that the files belong to."""
        return self._owner

    @property
    def is_loaded(self) -> bool:
        """Whether the stored attachments have been loaded."""
        return self._stored is not None or self.pending.removes_all

    @property
    def attached(self) -> bool:
        """Whether there is a file, counting changes that are not yet committed."""
        return bool(self.pending.added or self._list_kept())

    @internal
    def take(self, stored: Sequence[Attachment]) -> None:
        """Set the stored attachments."""
        self._stored = stored
        for each in stored:
            each.belong(self._owner, self._declaration.variants)

    @internal
    def commit(self, stored: Sequence[Attachment] | None) -> None:
        """Note that the recorded change is committed, and what is stored now; None if that is not known."""
        self.pending = NOTHING
        self._stored = None
        if stored is not None:
            self.take(stored)

    @internal
    def extend(self, added: Sequence[Attachment], gone: Collection[str]) -> None:
        """Note that the recorded change is committed: it added these, and removed those with these ids."""
        stored = self._stored
        self.commit(None if stored is None else [*(each for each in stored if each.id not in gone), *added])

    @internal
    def restore(self, pending: Pending | None) -> None:
        """Go back to the changes that were recorded before; None for no changes."""
        self.pending = pending or NOTHING

    def _record(self, pending: Pending) -> None:
        self._declaration.allow_change(self._owner)
        self.pending = pending

    def _list_kept(self) -> list[Attachment]:
        if self.pending.removes_all:
            return []
        if self._stored is None:
            raise AttachmentNotLoadedError(
                f"{self._declaration.name} of {self._owner!r:.80} is not loaded",
                hint=f'load it with its owner: tx.get(..., include=["{self._declaration.name}"]); '
                f'or afterwards: db.load(items, "{self._declaration.name}")',
            )
        return [each for each in self._stored if self.pending.keeps(each)]

    def _remove(self, how: Removal, ids: frozenset[str] | None = None) -> None:
        """Record that stored attachments are removed, and drop additions that were only recorded."""
        if ids is None:
            self._record(Pending((Removed(None, how),)))
        else:
            self._record(Pending((*self.pending.removed, Removed(ids, how)), self.pending.added))

    def _give(self, given: Any, options: Mapping[str, Any]) -> Given:
        return self._declaration.check(read_given(given, **options))

    def __repr__(self) -> str:
        shown = "not loaded"
        if self.is_loaded:
            names = [str(each.blob.filename) for each in self._list_kept()]
            names += [
                f"{getattr(each, 'filename', 'a signed id')} (to be stored)" for each in self.pending.added
            ]
            shown = ", ".join(names) or "nothing"
        return f"<{self._declaration.name}: {shown}>"


class OneAttached(_Proxy):
    """The file that an owner has under a name, if any; the value of a `has_one_attached` attribute."""

    __slots__ = ()

    def attach(
        self,
        given: Any,
        *,
        filename: str | Filename | None = None,
        content_type: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        identify: bool = True,
        service: str | None = None,
        key: str | None = None,
    ) -> OneAttached:
        """Attach a file, replacing the current one. It is uploaded and stored when the transaction commits.

        ``given`` is a path, an open file, bytes, an iterator of bytes, an upload of a web framework, a blob, a signed
        id, or a mapping with the file under ``"io"`` and any of these options. The declaration's ``dependent=`` decides
        what happens to the replaced blob.
        """
        new = self._give(
            given,
            {
                "filename": filename,
                "content_type": content_type,
                "metadata": metadata,
                "identify": identify,
                "service": service,
                "key": key,
            },
        )
        self._record(Pending((Removed(None, self._declaration.removal),), (new,)))
        return self

    def detach(self) -> None:
        """Detach the file; its blob stays."""
        self._remove("detach")

    def purge(self) -> None:
        """Detach the file, and delete its blob right after the commit unless it is also attached elsewhere."""
        self._remove("purge")

    def purge_later(self) -> None:
        """Detach the file; a job deletes its blob unless it is also attached elsewhere."""
        self._remove("purge_later")

    @property
    def attachment(self) -> Attachment | None:
        """The stored attachment; None if there is none, or a recorded change replaces or removes it."""
        kept = self._list_kept()
        return kept[0] if kept else None

    @property
    def blob(self) -> Blob | None:
        """The blob; None if there is none, or it is not stored yet."""
        for each in self.pending.added:
            return each if isinstance(each, Blob) else None
        attachment = self.attachment
        return None if attachment is None else attachment.blob

    def url(
        self,
        *,
        expires: datetime | None = None,
        disposition: Disposition | None = None,
        proxied: bool = False,
    ) -> str | None:
        """Return the file's signed URL in the web application; None if nothing is stored.

        With ``proxied=True`` the application sends the bytes itself, instead of redirecting to the service.
        """
        attachment = self.attachment
        if attachment is None:
            return None
        return attachment.url(expires=expires, disposition=disposition, proxied=proxied)

    def variant(self, variant: Variant | str) -> Representation | None:
        """Return a variant of the picture: a `Variant`, or its declared name; None if nothing is stored."""
        attachment = self.attachment
        return None if attachment is None else attachment.variant(variant)

    def preview(self, variant: Variant | str | None = None) -> Representation | None:
        """Return the preview of the PDF or video, or a variant of the preview; None if nothing is stored."""
        attachment = self.attachment
        return None if attachment is None else attachment.preview(variant)

    def representation(self, variant: Variant | str) -> Representation | None:
        """Return a variant of the picture, or of the preview of the PDF or video; None if nothing is stored."""
        attachment = self.attachment
        return None if attachment is None else attachment.representation(variant)

    @property
    def filename(self) -> Filename | None:
        """The file's name; None if there is none."""
        for each in self.pending.added:
            return Filename(each.filename) if isinstance(each, NewFile | Blob) else None
        return None if (attachment := self.attachment) is None else attachment.blob.filename


class ManyAttached(_Proxy):
    """The files that an owner has under a name, in the order in which they were attached.

    The value of a `has_many_attached` attribute.
    """

    __slots__ = ()

    def attach(self, *given: Any, **options: Any) -> ManyAttached:
        """Attach more files. Each is anything that `OneAttached.attach` accepts; so are the options."""
        new = tuple(self._give(each, options) for each in _flatten(given))
        self._record(Pending(self.pending.removed, (*self.pending.added, *new)))
        return self

    def replace(self, *given: Any, **options: Any) -> ManyAttached:
        """Attach these files, replacing all current ones."""
        new = tuple(self._give(each, options) for each in _flatten(given))
        self._record(Pending((Removed(None, self._declaration.removal),), new))
        return self

    def detach(self, *attachments: Attachment) -> None:
        """Detach these attachments, or all if you pass none; their blobs stay."""
        self._remove("detach", _ids(attachments))

    def purge(self, *attachments: Attachment) -> None:
        """Detach these attachments, or all if you pass none, and delete their blobs right after the commit.

        A blob that is also attached elsewhere stays.
        """
        self._remove("purge", _ids(attachments))

    def purge_later(self, *attachments: Attachment) -> None:
        """Detach these attachments, or all if you pass none; a job deletes their blobs.

        A blob that is also attached elsewhere stays.
        """
        self._remove("purge_later", _ids(attachments))

    @property
    def attachments(self) -> list[Attachment]:
        """The stored attachments, without those that a recorded change removes."""
        return self._list_kept()

    @property
    def blobs(self) -> list[Blob]:
        """The blobs that are attached, and existing blobs that a recorded change attaches."""
        known = [each for each in self.pending.added if isinstance(each, Blob)]
        return [each.blob for each in self._list_kept()] + known

    def __len__(self) -> int:
        return len(self._list_kept()) + len(self.pending.added)

    def __iter__(self) -> Iterator[Attachment]:
        return iter(self._list_kept())


def _flatten(given: Sequence[Any]) -> Iterator[Any]:
    """The files, with lists flattened; None and empty strings are left out."""
    for each in given:
        if isinstance(each, list | tuple):
            yield from _flatten(each)
        elif each is not None and each != "":
            yield each


def _ids(attachments: Sequence[Attachment]) -> frozenset[str] | None:
    return frozenset(each.id for each in attachments) or None
