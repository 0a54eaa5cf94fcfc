"""Looking after a whole database: copying it to another one, checking it, backing it up.

The work is done by methods of a database (``db.copy_to(...)`` and others), each of which loads its part of this room
on first use. Flows here may read and write everything that a database holds, and send scans. `CopyReport` and
`CopiedPart` are what a copy returns, `BackupReport` what a backup does, `DoctorReport` with its `DoctorFinding`,
`ModelFigure` and `UntriedAction` what a check does.
"""

from __future__ import annotations

from holdall.maintenance.backup.flow import BackupReport
from holdall.maintenance.copy.report import CopiedPart, CopyReport
from holdall.maintenance.doctor.report import (
    CheckName,
    DoctorFinding,
    DoctorReport,
    ModelFigure,
    Severity,
    UntriedAction,
)

__all__ = [
    "BackupReport",
    "CheckName",
    "CopiedPart",
    "CopyReport",
    "DoctorFinding",
    "DoctorReport",
    "ModelFigure",
    "Severity",
    "UntriedAction",
]
