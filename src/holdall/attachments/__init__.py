"""Attachments: files that belong to items. Their metadata is in the database's table, their bytes in a file service.

`has_one_attached` and `has_many_attached` declare them on models; ``db.blobs`` works with the stored files themselves.
"""

from __future__ import annotations

from holdall.lazy import fetch_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdall.attachments.api import AsyncBlobs, Blobs
    from holdall.attachments.blob.address import SignedFile
    from holdall.attachments.blob.blob import Blob
    from holdall.attachments.blob.delivery import Delivery
    from holdall.attachments.blob.filename import Filename
    from holdall.attachments.blob.handle import BlobHandle
    from holdall.attachments.event import AttachmentEvent, on
    from holdall.attachments.owner.attachable import Attachable, Destroying, Saving
    from holdall.attachments.owner.attachment import Attachment
    from holdall.attachments.owner.declaration import (
        Accept,
        has_many_attached,
        has_one_attached,
        identify_owner,
    )
    from holdall.attachments.owner.proxy import ManyAttached, OneAttached
    from holdall.attachments.picture.analysis import analyzer
    from holdall.attachments.picture.representation import Representation
    from holdall.attachments.picture.variant import Variant
    from holdall.attachments.settings import AttachmentSettings
    from holdall.attachments.upkeep.audit import AuditReport, Finding
    from holdall.attachments.upkeep.inventory import BlobPage
    from holdall.attachments.upkeep.sweep import SweepReport
    from holdall.attachments.upload.resumable import ResumableUpload

__all__ = [
    "Accept",
    "AsyncBlobs",
    "Attachable",
    "Attachment",
    "AttachmentEvent",
    "AttachmentSettings",
    "AuditReport",
    "Blob",
    "BlobHandle",
    "BlobPage",
    "Blobs",
    "Delivery",
    "Destroying",
    "Filename",
    "Finding",
    "ManyAttached",
    "OneAttached",
    "Representation",
    "ResumableUpload",
    "Saving",
    "SignedFile",
    "SweepReport",
    "Variant",
    "analyzer",
    "has_many_attached",
    "has_one_attached",
    "identify_owner",
    "on",
]

_HOMES = {
    "Accept": "holdall.attachments.owner.declaration",
    "AsyncBlobs": "holdall.attachments.api",
    "Attachable": "holdall.attachments.owner.attachable",
    "Attachment": "holdall.attachments.owner.attachment",
    "AttachmentEvent": "holdall.attachments.event",
    "AttachmentSettings": "holdall.attachments.settings",
    "AuditReport": "holdall.attachments.upkeep.audit",
    "Blob": "holdall.attachments.blob.blob",
    "BlobHandle": "holdall.attachments.blob.handle",
    "BlobPage": "holdall.attachments.upkeep.inventory",
    "Blobs": "holdall.attachments.api",
    "Delivery": "holdall.attachments.blob.delivery",
    "Destroying": "holdall.attachments.owner.attachable",
    "Filename": "holdall.attachments.blob.filename",
    "Finding": "holdall.attachments.upkeep.audit",
    "ManyAttached": "holdall.attachments.owner.proxy",
    "OneAttached": "holdall.attachments.owner.proxy",
    "Representation": "holdall.attachments.picture.representation",
    "ResumableUpload": "holdall.attachments.upload.resumable",
    "Saving": "holdall.attachments.owner.attachable",
    "SignedFile": "holdall.attachments.blob.address",
    "SweepReport": "holdall.attachments.upkeep.sweep",
    "Variant": "holdall.attachments.picture.variant",
    "analyzer": "holdall.attachments.picture.analysis",
    "has_many_attached": "holdall.attachments.owner.declaration",
    "has_one_attached": "holdall.attachments.owner.declaration",
    "identify_owner": "holdall.attachments.owner.declaration",
    "on": "holdall.attachments.event",
}

__getattr__ = fetch_names(__name__, _HOMES)
