"""The requests of the gem activestorage-aws-record: its queries and writes, in its own format."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from attachments_rig import Rig

from holdall.attachments.home import Owner
from holdall.core.expressions import (
    Add,
    BeginsWith,
    Exists,
    KeyCondition,
    NotExists,
    Path,
    Set,
    Update,
    Value,
)
from holdall.core.requests import DeleteItem, GetItem, PutItem, Query, TransactWrite, UpdateItem
from holdall.core.values import Item

__all__ = ["Gem"]

MOMENT = "2026-06-02T10:11:12.123456Z"


class Gem:
    """The gem, as a second program on the same table."""

    def __init__(self, db: Rig) -> None:
        self._db = db
        self.mode = db.way.mode

    async def send(self, request: Any) -> Any:
        """Send a request directly, without Holdall's rules."""
        result = self._db.database.send(request)
        return await result if self._db.way.colour == "awaiting" else result

    @property
    def table(self) -> str:
        """The table's name."""
        return str(self._db.database._context.settings.table_name)

    def key(self, h: str, r: str, item_id: str) -> dict[str, Any]:
        """An item's key in the table."""
        if self.mode == "A":
            return {"pk": {"S": h}, "sk": {"S": r}}
        return {"pk": {"S": item_id}, "sk": {"N": "0"}}

    def _all(self, h: str, r: str, item_id: str) -> dict[str, Any]:
        key = self.key(h, r, item_id)
        return key if self.mode == "A" else {**key, "as_index_pk": {"S": h}, "as_index_sk": {"S": r}}

    # --- writes -------------------------------------------------------------------------------------------

    def blob_item(self, id: str, key: str, data: bytes) -> dict[str, Any]:
        """A blob as the gem writes it."""
        h = f"ActiveStorage#Blob#{id}"
        return {
            **self._all(h, h, h),
            "as_id": {"S": id},
            "as_key": {"S": key},
            "as_filename": {"S": "gem.txt"},
            "as_content_type": {"S": "text/plain"},
            "as_byte_size": {"N": str(len(data))},
            "as_metadata": {"M": {"identified": {"BOOL": True}, "analyzed": {"BOOL": True}}},
            "as_service_name": {"S": "default"},
            "as_created_at": {"S": MOMENT},
            "as_attachments_count": {"N": "0"},
            "as_entity": {"S": "Blob"},
        }

    async def create_blob(self, data: bytes = b"of the gem") -> str:
        """Create a blob with its bytes."""
        id, key = str(uuid4()), uuid4().hex[:28]
        await self.send(PutItem(self.table, self.blob_item(id, key, data), NotExists(Path(("pk",)))))
        await self._db.files.put(key, data)
        return id

    async def attach(self, owner: Owner, name: str, blob_id: str) -> str:
        """Write a row, and increase the blob's count."""
        row = self.row_item(owner, name, blob_id)
        await self.send(
            TransactWrite(
                (PutItem(self.table, row, NotExists(Path(("pk",)))), self._count(blob_id, "1")), str(uuid4())
            )
        )
        return str(row["as_id"]["S"])

    def row_item(self, owner: Owner, name: str, blob_id: str) -> dict[str, Any]:
        """An attachment as the gem writes it."""
        id = str(uuid4())
        h = f"ActiveStorage#Owner#{owner.record_type}#{owner.record_id}"
        return {
            **self._all(h, f"ActiveStorage#Attachment#{name}#{id}", f"ActiveStorage#Attachment#{id}"),
            "as_id": {"S": id},
            "as_record_type": {"S": owner.record_type},
            "as_record_id": {"S": owner.record_id},
            "as_name": {"S": name},
            "as_blob_id": {"S": blob_id},
            "as_created_at": {"S": MOMENT},
            "as_entity": {"S": "Attachment"},
        }

    async def create_variant(self, blob_id: str, digest: str) -> None:
        """Record a variant of a blob."""
        h, r = f"ActiveStorage#Blob#{blob_id}", f"ActiveStorage#VariantRecord#{digest}"
        values = {"as_blob_id": blob_id, "as_variation_digest": digest, "as_entity": "VariantRecord"}
        item = self._all(h, r, f"{h}#VariantRecord#{digest}")
        item |= {name: {"S": text} for name, text in values.items()}
        await self.send(PutItem(self.table, item, NotExists(Path(("pk",)))))

    async def detach(self, row: Item) -> None:
        """Delete a row, and decrease the blob's count."""
        key = {"pk": row["pk"], "sk": row["sk"]}
        delete = DeleteItem(self.table, key, Exists(Path(("pk",))))
        await self.send(TransactWrite((delete, self._count(row["as_blob_id"]["S"], "-1")), str(uuid4())))

    async def destroy_blob(self, id: str) -> None:
        """Delete a blob's item even if rows refer to it, as an operator may."""
        h = f"ActiveStorage#Blob#{id}"
        await self.send(DeleteItem(self.table, self.key(h, h, h)))

    async def miscount(self, blob_id: str) -> None:
        """Increase a blob's count without writing a row."""
        await self.send(self._count(blob_id, "1"))

    async def set_checksum(self, blob_id: str, checksum: str) -> None:
        """Store a checksum in a blob's item."""
        h = f"ActiveStorage#Blob#{blob_id}"
        change = Update((Set(Path(("as_checksum",)), Value({"S": checksum})),))
        await self.send(UpdateItem(self.table, self.key(h, h, h), change, Exists(Path(("pk",)))))

    def _count(self, blob_id: str, number: str) -> UpdateItem:
        h = f"ActiveStorage#Blob#{blob_id}"
        add = Update((Add(Path(("as_attachments_count",)), Value({"N": number})),))
        return UpdateItem(self.table, self.key(h, h, h), add, Exists(Path(("pk",))))

    # --- reads --------------------------------------------------------------------------------------------

    async def rows(self, owner: Owner, name: str | None = None) -> list[Item]:
        """The rows of an owner, as the gem lists them."""
        prefix = "ActiveStorage#Attachment#" + ("" if name is None else f"{name}#")
        return await self._list(f"ActiveStorage#Owner#{owner.record_type}#{owner.record_id}", prefix)

    async def variants(self, blob_id: str) -> list[Item]:
        """The variants of a blob, as the gem lists them."""
        return await self._list(f"ActiveStorage#Blob#{blob_id}", "ActiveStorage#VariantRecord#")

    async def _list(self, h: str, prefix: str) -> list[Item]:
        pk, sk, index = (
            ("pk", "sk", None) if self.mode == "A" else ("as_index_pk", "as_index_sk", "active_storage_index")
        )
        condition = KeyCondition(pk, {"S": h}, BeginsWith(Path((sk,)), Value({"S": prefix})))
        return list(
            (await self.send(Query(self.table, condition, index=index or None, consistent=not index))).items
        )

    async def blob(self, id: str) -> Item | None:
        """A blob's item."""
        h = f"ActiveStorage#Blob#{id}"
        return (await self.send(GetItem(self.table, self.key(h, h, h), consistent=True))).item  # type: ignore[no-any-return]
