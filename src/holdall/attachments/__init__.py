"""Attachments: files that belong to items. Their metadata is in the database's table, their bytes in a file service.

`has_one_attached` and `has_many_attached` declare them on models; ``db.blobs`` works with the stored files themselves.
"""

from __future__ import annotations

from holdall.lazy import fetch_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdall.attachments.address import SignedFile
    from holdall.attachments.analysis import analyzer
    from holdall.attachments.api import AsyncBlobs, Blobs
    from holdall.attachments.attachable import Attachable, Destroying, Saving
    from holdall.attachments.attachment import Attachment
    from holdall.attachments.audit import AuditReport, Finding
    from holdall.attachments.blob import Blob
    from holdall.attachments.declaration import Accept, has_many_attached, has_one_attached, identify_owner
    from holdall.attachments.delivery import Delivery
    from holdall.attachments.event import AttachmentEvent, on
    from holdall.attachments.filename import Filename
    from holdall.attachments.handle import BlobHandle
    from holdall.attachments.inventory import BlobPage
    from holdall.attachments.proxy import ManyAttached, OneAttached
    from holdall.attachments.representation import Representation
    from holdall.attachments.resumable import ResumableUpload
    from holdall.attachments.settings import AttachmentSettings
    from holdall.attachments.sweep import SweepReport
    from holdall.attachments.variant import Variant

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
    "Accept": "holdall.attachments.declaration",
    "AsyncBlobs": "holdall.attachments.api",
    "Attachable": "holdall.attachments.attachable",
    "Attachment": "holdall.attachments.attachment",
    "AttachmentEvent": "holdall.attachments.event",
    "AttachmentSettings": "holdall.attachments.settings",
    "AuditReport": "holdall.attachments.audit",
    "Blob": "holdall.attachments.blob",
    "BlobHandle": "holdall.attachments.handle",
    "BlobPage": "holdall.attachments.inventory",
    "Blobs": "holdall.attachments.api",
    "Delivery": "holdall.attachments.delivery",
    "Destroying": "holdall.attachments.attachable",
    "Filename": "holdall.attachments.filename",
    "Finding": "holdall.attachments.audit",
    "ManyAttached": "holdall.attachments.proxy",
    "OneAttached": "holdall.attachments.proxy",
    "Representation": "holdall.attachments.representation",
    "ResumableUpload": "holdall.attachments.resumable",
    "Saving": "holdall.attachments.attachable",
    "SignedFile": "holdall.attachments.address",
    "SweepReport": "holdall.attachments.sweep",
    "Variant": "holdall.attachments.variant",
    "analyzer": "holdall.attachments.analysis",
    "has_many_attached": "holdall.attachments.declaration",
    "has_one_attached": "holdall.attachments.declaration",
    "identify_owner": "holdall.attachments.declaration",
    "on": "holdall.attachments.event",
}

__getattr__ = fetch_names(__name__, _HOMES)
