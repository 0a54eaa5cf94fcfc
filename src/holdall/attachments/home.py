"""The home of a database's attachments: the key of each of their items, in a table of either mode.

Pure, except for `find_home`. Every key is built from segments, which cannot be empty or contain the separator; so no id
or name can produce the key of another item.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime

from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.core.requests import Query
from holdall.core.values import Item
from holdall.errors import InvalidKeyError
from holdall.tables.flow import discover
from holdall.tables.layout import Address, Layout

_UNATTACHED = "holdall#Unattached"
_SHARDS = "0123456789abcdef"


@dataclass(frozen=True, slots=True)
class Owner:
    """What attachments belong to: the type of a record, and its id."""

    record_type: str
    record_id: str


@dataclass(frozen=True, slots=True)
class Home:
    """A table's layout, and the prefix of the keys of attachments."""

    layout: Layout
    namespace: str
    separator: str

    def join(self, *segments: str) -> str:
        """Join segments into a key below the namespace."""
        for segment in segments:
            if not segment or self.separator in segment:
                raise InvalidKeyError(
                    f"{segment!r:.80} cannot be part of an attachment's key: it is empty or contains "
                    f"{self.separator!r}"
                )
        return self.separator.join((self.namespace, *segments))

    def blob(self, id: str) -> Address:
        """The address of a blob."""
        key = self.join("Blob", id)
        return self.layout.address(key, key, key)

    def variant(self, blob_id: str, digest: str) -> Address:
        """The address of the record of a blob's variant."""
        blob, record = self.join("Blob", blob_id), self.join("VariantRecord", digest)
        return self.layout.address(blob, record, self.join("Blob", blob_id, "VariantRecord", digest))

    def reference(self, blob_id: str, attachment_id: str) -> Address:
        """The address of a blob's reference to an attachment, if it has too many for its row."""
        blob, record = self.join("Blob", blob_id), self.join("Reference", attachment_id)
        return self.layout.address(blob, record, self.join("Blob", blob_id, "Reference", attachment_id))

    def attachment(self, owner: Owner, name: str, id: str) -> Address:
        """The address of an attachment."""
        h, r = self._owner(owner), self.join("Attachment", name, id)
        return self.layout.address(h, r, self.join("Attachment", id))

    def slot(self, owner: Owner, name: str) -> Address:
        """The address of the slot of a name."""
        h, r = self._owner(owner), self.join("AttachmentSlot", name)
        item_id = self.join("Owner", owner.record_type, owner.record_id, "AttachmentSlot", name)
        return self.layout.address(h, r, item_id)

    def intent(self, id: str, part: int) -> Address:
        """The address of a part of an intent."""
        h = f"holdall#AttachmentIntent#{id}"
        return self.layout.address(h, str(part), f"{h}#{part}")

    def marker(self, moment: datetime, blob_id: str) -> Address:
        """The address of the marker for a blob whose bytes may exist without an attachment."""
        return self.marker_at(format_hour(moment), blob_id)

    def marker_at(self, hour: str, blob_id: str) -> Address:
        """The address of the marker for a blob in an hour."""
        h = f"{_UNATTACHED}#{hour}#{blob_id[-1]}"
        return self.layout.address(h, blob_id, f"{h}#{blob_id}")

    def upload(self, id: str) -> Address:
        """The address of a resumable upload."""
        h = f"holdall#Upload#{id}"
        return self.layout.address(h, "#", h)

    def hour(self, moment: datetime) -> Address:
        """The address of the entry for an hour with markers."""
        hour = format_hour(moment)
        return self.layout.address(_UNATTACHED, hour, f"{_UNATTACHED}#{hour}")

    def content(self, service: str, sha256: str) -> Address:
        """The address of the record that names the blob with certain bytes in a service."""
        h = f"holdall#BlobDigest#{service}#{sha256}"
        return self.layout.address(h, "#", h)

    def format_place(self, owner: Owner, name: str) -> str:
        """An owner and a name as a reference stores them; they are segments, and cannot contain the separator."""
        return self.separator.join((owner.record_type, owner.record_id, name))

    def parse_place(self, place: str) -> tuple[Owner, str]:
        """The owner and the name in a reference."""
        record_type, record_id, name = place.split(self.separator)
        return Owner(record_type, record_id), name

    def parse_slot(self, item: Item) -> tuple[Owner, str]:
        """The owner and the name of a stored slot; `ValueError` if it is stored under another key."""
        h, r = self.layout.logical(item)
        head, prefix = self.join("Owner") + self.separator, self.join("AttachmentSlot") + self.separator
        if not h.startswith(head) or not r.startswith(prefix):
            raise ValueError("its key is not that of a slot")
        record_type, record_id = h.removeprefix(head).split(self.separator)
        return Owner(record_type, record_id), r.removeprefix(prefix)

    # --- lists ----------------------------------------------------------------------------------------------

    def attachments(self, owner: Owner, name: str | None = None) -> Query:
        """The query for an owner's attachments, or those under one name."""
        prefix = self.join("Attachment") if name is None else self.join("Attachment", name)
        return self.layout.listing(self._owner(owner), prefix + self.separator)

    def slots(self, owner: Owner) -> Query:
        """The query for an owner's slots."""
        return self.layout.listing(self._owner(owner), self.join("AttachmentSlot") + self.separator)

    def variants(self, blob_id: str) -> Query:
        """The query for the variants of a blob."""
        return self.layout.listing(self.join("Blob", blob_id), self.join("VariantRecord") + self.separator)

    def references(self, blob_id: str) -> Query:
        """The query for the references of a blob that are separate items."""
        return self.layout.listing(self.join("Blob", blob_id), self.join("Reference") + self.separator)

    def hours(self, before: datetime) -> Query:
        """The query for the hours with markers, up to a moment."""
        return self.layout.listing(_UNATTACHED, before=format_hour(before))

    def markers(self, hour: str) -> list[Query]:
        """The queries for the markers of an hour, one for each part."""
        return [self.layout.listing(f"{_UNATTACHED}#{hour}#{shard}") for shard in _SHARDS]

    def _owner(self, owner: Owner) -> str:
        return self.join("Owner", owner.record_type, owner.record_id)


async def find_home(context: Context) -> Home:
    """The home of a database's attachments."""
    settings = context.settings
    return Home(await discover(context), settings.namespace, settings.separator)


def pack_segment(text: str) -> str:
    """Any text as a segment of a key."""
    return urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def unpack_segment(segment: str) -> str:
    """The text in a segment; `ValueError` if it was not packed."""
    return urlsafe_b64decode(segment + "=" * (-len(segment) % 4)).decode()


def format_hour(moment: datetime) -> str:
    """An hour, in UTC."""
    return f"{moment.astimezone(UTC):%Y%m%dT%H}"
