"""``holdall backup`` and ``holdall restore``: an embedded database with its files, as of one moment."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from holdall.cli.output import json_option, show, show_json
from holdall.cli.phrase import format_count, format_size
from holdall.cli.progress import transfer
from holdall.cli.session import open_database, url_option

if TYPE_CHECKING:
    from holdall.maintenance import BackupReport


@click.command()
@click.argument("target", type=click.Path())
@json_option
@url_option
def backup(target: str, as_json: bool) -> None:
    """Make a backup of an embedded database and its files.

    TARGET is the path of a new directory. The database can be in use; the backup shows it as of one moment, and is read
    back and verified before the command ends.
    """
    with open_database() as db, transfer("Copying files") as bar:
        report = db.backup(target, progress=None if bar is None else lambda found: bar(found.bytes, None))
    _show(report, "backed up to", as_json)


@click.command()
@click.argument("source", type=click.Path(exists=True, file_okay=False))
@json_option
@url_option
def restore(source: str, as_json: bool) -> None:
    """Restore a backup into a new embedded database.

    SOURCE is the directory of the backup, which is verified first. The database, given by --url, must not have a table,
    and the directory of its files must be empty. An interrupted command can be repeated.
    """
    with open_database(missing="create") as db:
        report = db.restore(source)
    _show(report, "restored from", as_json)


def _show(report: BackupReport, done: str, as_json: bool) -> None:
    if as_json:
        show_json(asdict(report))
    else:
        files = format_count(report.files, "file")
        show(f"the database and {files} ({format_size(report.bytes)}) {done} {report.path}\n")
