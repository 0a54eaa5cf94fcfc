"""Files: bytes under keys, in a service on disk, in memory or in S3, with the same calls for each.

``db.files`` is the public interface. The flows behind it send the requests of `holdall.core.objects`.
"""

from __future__ import annotations

from holdall.lazy import fetch_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdall.core.object_url import DirectUpload, Download
    from holdall.core.objects import ListedObject, ObjectHeaders, ObjectInfo, SignedUrl
    from holdall.files.api import AsyncFiles, Files
    from holdall.files.handle import AsyncObjectHandle, ObjectHandle
    from holdall.files.mirror import MirrorReport

__all__ = [
    "AsyncFiles",
    "AsyncObjectHandle",
    "DirectUpload",
    "Download",
    "Files",
    "ListedObject",
    "MirrorReport",
    "ObjectHandle",
    "ObjectHeaders",
    "ObjectInfo",
    "SignedUrl",
]

_HOMES = {
    "AsyncFiles": "holdall.files.api",
    "Files": "holdall.files.api",
    "AsyncObjectHandle": "holdall.files.handle",
    "ObjectHandle": "holdall.files.handle",
    "MirrorReport": "holdall.files.mirror",
    **dict.fromkeys(("DirectUpload", "Download"), "holdall.core.object_url"),
    **dict.fromkeys(("ListedObject", "ObjectHeaders", "ObjectInfo", "SignedUrl"), "holdall.core.objects"),
}

__getattr__ = fetch_names(__name__, _HOMES)
