"""The archive: old items move to a file service, recent ones stay in the table, and both are read the same way.

`Archive` declares an archive on a model; ``db.archive`` moves items there and brings them back.
"""

from __future__ import annotations

from holdall.lazy import fetch_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdall.archive.api import ArchiveActions, AsyncArchiveActions
    from holdall.archive.declaration import Archive, find_archive
    from holdall.archive.export.export import ExportFormat, ExportReport
    from holdall.archive.flow import Holdings
    from holdall.archive.pack.compaction import Compaction
    from holdall.archive.price import Estimate, Prices
    from holdall.archive.run import ArchiveReport
    from holdall.archive.upkeep.recovery import ArchiveRebuild
    from holdall.archive.upkeep.relocation import ArchiveRekey
    from holdall.archive.upkeep.sweep import ArchiveSweep

__all__ = [
    "Archive",
    "ArchiveActions",
    "ArchiveRebuild",
    "ArchiveRekey",
    "ArchiveReport",
    "ArchiveSweep",
    "AsyncArchiveActions",
    "Compaction",
    "Estimate",
    "ExportFormat",
    "ExportReport",
    "Holdings",
    "Prices",
    "find_archive",
]

_HOMES = {
    "Archive": "holdall.archive.declaration",
    "ArchiveActions": "holdall.archive.api",
    "ArchiveRebuild": "holdall.archive.upkeep.recovery",
    "ArchiveRekey": "holdall.archive.upkeep.relocation",
    "ArchiveReport": "holdall.archive.run",
    "ArchiveSweep": "holdall.archive.upkeep.sweep",
    "AsyncArchiveActions": "holdall.archive.api",
    "Compaction": "holdall.archive.pack.compaction",
    "Estimate": "holdall.archive.price",
    "ExportFormat": "holdall.archive.export.export",
    "ExportReport": "holdall.archive.export.export",
    "Holdings": "holdall.archive.flow",
    "Prices": "holdall.archive.price",
    "find_archive": "holdall.archive.declaration",
}

__getattr__ = fetch_names(__name__, _HOMES)
