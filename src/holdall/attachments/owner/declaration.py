"""``has_one_attached`` and ``has_many_attached``: class attributes whose files belong to the instances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeAlias, overload
from uuid import UUID

from holdall.attachments.home import Owner, pack_segment
from holdall.attachments.owner.given import Given, NewFile
from holdall.attachments.owner.proxy import (
    NOTHING,
    Dependent,
    ManyAttached,
    OneAttached,
    Pending,
    Removal,
    Removed,
)
from holdall.attachments.owner.wish import Wish
from holdall.attachments.picture.variant import Moment, Variant, check_moment
from holdall.core.frozen import dataclass
from holdall.core.internal import internal
from holdall.errors import InvalidFileError, InvalidOptionsError
from holdall.models.hydrator import Joining, Role
from holdall.models.model import find_kept

if TYPE_CHECKING:
    from holdall.attachments.owner.participant import AttachmentsParticipant
    from holdall.core.context import Context
    from holdall.models.keys.key import ModelKey
    from holdall.models.model import Model

Service: TypeAlias = str | Callable[[Any], str]
"""The name of a file service, or a function that returns the name for an owner."""


@dataclass(frozen=True, slots=True)
class Accept:
    """The files that may be attached: their content types, the most bytes per file, and the most files.

    ``types`` may contain wildcards, such as ``"image/*"``; if it is empty, all types are accepted.
    """

    types: Sequence[str] = ()
    max_bytes: int | None = None
    max_count: int | None = None

    def check_type(self, field: str, content_type: str) -> None:
        """Raise `InvalidFileError`, which names the field, if files of this content type are not accepted."""
        if self.types and not any(_fits(content_type, each) for each in self.types):
            raise InvalidFileError(
                f"{field}: files of type {content_type} are not accepted",
                field=field,
                hint=f"accepted types: {', '.join(self.types)}",
            )

    def check_size(self, field: str, size: int) -> None:
        """Raise `InvalidFileError`, which names the field, if a file of this many bytes is too large."""
        if self.max_bytes is not None and size > self.max_bytes:
            raise InvalidFileError(
                f"{field}: a file of {size:,} bytes is too large",
                field=field,
                hint=f"a file may have at most {self.max_bytes:,} bytes",
            )

    @internal
    def check_count(self, field: str, count: int) -> None:
        """Raise `InvalidFileError` if there are too many files."""
        if self.max_count is not None and count > self.max_count:
            raise InvalidFileError(
                f"{field}: {count} files are too many",
                field=field,
                hint=f"at most {self.max_count} may be attached",
            )


def _fits(content_type: str, accepted: str) -> bool:
    return content_type == accepted or (accepted.endswith("/*") and content_type.startswith(accepted[:-1]))


class Declaration:
    """The files that instances of a class have under one name."""

    kind = "attachments"
    is_one = True

    def __init__(
        self,
        *,
        dependent: Dependent,
        service: Service | None = None,
        analyze: Moment | None = None,
        variants: Mapping[str, Variant] | None = None,
        validate: Accept | None = None,
        name: str = "",
        in_batches: bool = False,
    ) -> None:
        if dependent not in ("purge", "purge_later", False):
            raise InvalidOptionsError(
                f'dependent must be "purge_later", "purge" or False, not {dependent!r:.40}'
            )
        self.variants = dict(variants or {})
        for each, variant in self.variants.items():
            if not isinstance(variant, Variant):
                raise InvalidOptionsError(
                    f"the variant {each!r:.60} must be a Variant, not {variant!r:.60}",
                    hint="as in Variant(resize_to_limit=(100, 100))",
                )
        self.removal: Removal = "detach" if dependent is False else dependent
        self.service = service
        at_once = any(variant.process == "immediately" for variant in self.variants.values())
        by_default: Moment = "immediately" if at_once else "later"
        self.analyze_at = check_moment("analyze", by_default if analyze is None else analyze)
        self.validate = validate or Accept()
        self.name = name
        self.in_batches = in_batches

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def proxy_of(self, owner: Any) -> OneAttached | ManyAttached:
        """The value of the attribute for an owner. A new owner has no stored files."""
        kept = find_kept(owner)
        proxy: OneAttached | ManyAttached | None = kept.get(self.name)
        if proxy is None:
            stored = () if not is_persisted(owner) else None
            proxy = kept[self.name] = (OneAttached if self.is_one else ManyAttached)(owner, self, stored)
        return proxy

    def allow_change(self, owner: Any) -> None:
        """Raise if the owner cannot be changed now."""
        marks = getattr(owner, "_marks", None)
        if marks is not None:
            marks.change(owner)

    def check(self, given: Given) -> Given:
        """Return what was given; raise early if it is already certain that it will not be accepted."""
        if isinstance(given, NewFile) and isinstance(given.source, bytes):
            self.validate.check_size(self.name, len(given.source))
        return given

    # --- taking part in transactions ------------------------------------------------------------------------

    def wish(self, owner: Owner, pending: Pending, *, is_new: bool = False, is_gone: bool = False) -> Wish:
        """The changes recorded for an owner, as a wish."""
        return Wish(
            owner,
            self.name,
            self.is_one,
            pending,
            is_new=is_new,
            is_gone=is_gone,
            is_limited=self.validate.max_count is not None,
            in_batches=self.in_batches,
        )

    def participate(
        self, key: ModelKey[Any], item: Model | None, role: Role, run: Joining
    ) -> AttachmentsParticipant | None:
        """Join the transaction with the recorded changes, or because the owner is deleted."""
        proxy = None if item is None else find_kept(item).get(self.name)
        pending = NOTHING if proxy is None else proxy.pending
        if role == "deleted":
            pending = Pending((Removed(None, self.removal),))
        if pending is NOTHING:
            return None
        from holdall.attachments.owner.participant import AttachmentsParticipant, Order, Uploads

        wish = self.wish(owner_of(key), pending, is_new=role == "created", is_gone=role == "deleted")
        joined = run.find(AttachmentsParticipant)
        participant = joined or AttachmentsParticipant(run.carry.of(Uploads))
        participant.add(Order(wish, self, proxy))
        return None if joined else participant

    async def load_for(self, context: Context, items: Sequence[Any], names: Sequence[str]) -> None:
        """Load the attachments of many owners."""
        from holdall.attachments.owner.loader import load_attachments

        await load_attachments(context, items, names)


def is_persisted(owner: Any) -> bool:
    """Whether an owner is stored."""
    is_new = getattr(owner, "is_new", None)
    return bool(owner.is_persisted()) if is_new is None else not is_new


def owner_of(key: ModelKey[Any]) -> Owner:
    """An item as an owner of attachments: its model's record type, and an id that fits into one segment of a key."""
    record_type = key.schema.record_type
    values = list(key.components.values())
    if len(values) == 1 and isinstance(values[0], str | int | UUID) and not isinstance(values[0], bool):
        text = str(values[0])
        if text and "#" not in text:
            return Owner(record_type, text)
    partition, sort = key.encoded
    text = str(partition) if sort is None else f"{partition}\0{sort}"
    return Owner(record_type, pack_segment(text))


def identify_owner(key: ModelKey[Any]) -> tuple[str, str]:
    """Return the record type and the record id of an item's attachments, as ``db.blobs.list`` takes them."""
    owner = owner_of(key)
    return owner.record_type, owner.record_id


class HasOne(Declaration):
    """Each instance has at most one file; made by `has_one_attached`."""

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: object, kind: type) -> OneAttached: ...
    def __get__(self, owner: Any, kind: type) -> Self | OneAttached:
        return self if owner is None else self.proxy_of(owner)  # type: ignore[return-value]

    def __set__(self, owner: object, given: object) -> None:
        proxy = self.__get__(owner, type(owner))
        if given is None or given == "":
            proxy._remove(self.removal)
        else:
            proxy.attach(given)


class HasMany(Declaration):
    """Each instance has any number of files; made by `has_many_attached`."""

    is_one = False

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: object, kind: type) -> ManyAttached: ...
    def __get__(self, owner: Any, kind: type) -> Self | ManyAttached:
        return self if owner is None else self.proxy_of(owner)  # type: ignore[return-value]

    def __set__(self, owner: object, given: Iterable[object] | None) -> None:
        self.__get__(owner, type(owner)).replace(*(() if given is None else given))


def has_one_attached(
    *,
    dependent: Dependent = "purge_later",
    service: Service | None = None,
    analyze: Moment | None = None,
    variants: Mapping[str, Variant] | None = None,
    validate: Accept | None = None,
) -> HasOne:
    """Declare that each instance may have one file under this name.

    ``dependent`` decides what happens to a blob that is replaced, or whose owner is deleted: a job deletes it
    (``"purge_later"``), it is deleted right after the commit (``"purge"``), or it stays (False). A blob that is also
    attached elsewhere always stays. ``service`` is the name of the file service for the bytes, or a function that
    returns the name for an owner. ``analyze`` decides when pictures, videos, audio and PDFs are analyzed: before the
    commit (``"immediately"``; a file that cannot be read is refused), by a job (``"later"``, the default unless a
    variant is made immediately), or when you call ``db.blobs.analyze`` (``"lazily"``). ``variants`` maps names to
    `Variant` objects: the pictures that can be made of the file. ``validate=Accept(...)`` limits what may be attached.
    """
    return HasOne(dependent=dependent, service=service, analyze=analyze, variants=variants, validate=validate)


def has_many_attached(
    *,
    dependent: Dependent = "purge_later",
    service: Service | None = None,
    analyze: Moment | None = None,
    variants: Mapping[str, Variant] | None = None,
    validate: Accept | None = None,
    in_batches: bool = False,
) -> HasMany:
    """Declare that each instance may have any number of files under this name; options as for `has_one_attached`.

    With ``in_batches=True``, one transaction can remove more files than fit into it, for example when their owner is
    deleted. They disappear when the transaction commits, and a job deletes them. Loading them takes one more request.
    """
    return HasMany(
        dependent=dependent,
        service=service,
        analyze=analyze,
        variants=variants,
        validate=validate,
        in_batches=in_batches,
    )
