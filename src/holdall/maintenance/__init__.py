"""Looking after a whole database: copying it to another one, checking it, backing it up.

The work is done by methods of a database (``db.copy_to(...)`` and others), each of which loads its part of this room
on first use. Flows here may read and write everything that a database holds, and send scans. `CopyReport` and
`CopiedPart` are what a copy returns.
"""

from __future__ import annotations

from holdall.maintenance.backup.flow import BackupReport
from holdall.maintenance.copy.report import CopiedPart, CopyReport

__all__ = ["BackupReport", "CopiedPart", "CopyReport"]
