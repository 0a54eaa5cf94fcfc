"""What was made from a blob: the records of its variants with their pictures, and the picture of its preview."""

from __future__ import annotations

from collections.abc import Iterable

from holdall.attachments.home import Home, Owner, pack_segment, unpack_segment
from holdall.attachments.record import VariantRow
from holdall.core.context import Context
from holdall.errors import RecordNotFound
from holdall.tables.record import RecordPages, fetch_all

_BLOB = "ActiveStorage::AwsRecord::Blob"
_VARIANT = "ActiveStorage::AwsRecord::VariantRecord"


def preview_owner(blob_id: str) -> Owner:
    """The owner of a blob's preview picture."""
    return Owner(_BLOB, blob_id)


def variant_owner(blob_id: str, digest: str) -> Owner:
    """The owner of a variant's picture."""
    return Owner(_VARIANT, variant_id(blob_id, digest))


def is_variant(owner: Owner) -> bool:
    """Whether an owner is the record of a variant."""
    return owner.record_type == _VARIANT


def is_derived(owner: Owner) -> bool:
    """Whether the files of an owner were made from a blob: they are the picture of a variant or a preview."""
    return owner.record_type in (_VARIANT, _BLOB)


def variant_id(blob_id: str, digest: str) -> str:
    """The id of a variant's record."""
    return pack_segment(f"{blob_id} {digest}")


def parse_variant_id(id: str) -> tuple[str, str]:
    """Split the id of a variant's record into the blob's id and the digest; `RecordNotFound` if that fails."""
    try:
        blob_id, digest = unpack_segment(id).split(maxsplit=1)
    except ValueError:
        raise RecordNotFound(f"{id!r:.80} is not the id of a variant") from None
    return blob_id, digest


def find_source(owner: Owner) -> str | None:
    """The id of the blob whose preview or variant this owner has; None for any other owner."""
    if owner.record_type == _BLOB:
        return owner.record_id
    return parse_variant_id(owner.record_id)[0] if owner.record_type == _VARIANT else None


async def read_variants(
    context: Context, home: Home, blob_id: str, digests: Iterable[str] = ()
) -> list[VariantRow]:
    """Read the records of a blob's variants: those on the list, and those whose digests are in the blob's row.

    In mode B, the newest may be missing from the list.
    """
    pages = RecordPages(context.port, VariantRow, home.variants(blob_id), home.layout.address_of)
    found = {row.digest: row for row in await pages.read_all()}
    unseen = [VariantRow(home.variant(blob_id, digest)) for digest in digests if digest not in found]
    return [*found.values(), *(row for row in await fetch_all(context.port, unseen) if row.is_stored)]
