"""Objects as files in a directory: see `DiskService`."""

from holdall.backends.disk.service import DiskService
from holdall.core.object_url import DirectUpload, Download, verified_download, verified_upload

__all__ = ["DirectUpload", "DiskService", "Download", "verified_download", "verified_upload"]
