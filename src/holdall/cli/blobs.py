"""``holdall blobs``: list, upload, download, attach and purge attached files; sweep and check them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdall import Variant
from holdall.cli.exit_status import ExitStatus
from holdall.cli.output import (
    Refusal,
    format_json,
    json_option,
    say,
    show,
    show_json,
    show_pairs,
    show_table,
)
from holdall.cli.phrase import format_count, format_size
from holdall.cli.progress import transfer
from holdall.cli.session import command_text, open_database, url_option
from holdall.errors import ForeignKeyViolation, RecordNotFound

if TYPE_CHECKING:
    from holdall.attachments import Attachment, Blob


@click.group()
def blobs() -> None:
    """Upload, attach, list, download, purge and check files.

    A blob is a stored file with its name and type. A blob that is attached to something is never deleted.
    """


@blobs.command("list")
@click.argument("record_type", metavar="OWNER")
@click.argument("record_id", metavar="ID")
@click.option("--name", metavar="NAME", help="Only files attached under this name.")
@json_option
@url_option
def list_(record_type: str, record_id: str, name: str | None, as_json: bool) -> None:
    """List the files attached to an owner. OWNER is its class (or record type), and ID is its ID."""
    with open_database() as db:
        found = list(db.blobs.list(record_type, record_id, name))
    if as_json:
        show_json({"attachments": [_place(each) | {"blob": _facts(each.blob)} for each in found]})
        return
    if not found:
        say(f"{record_type} {record_id} has no attached files" + (f" under {name}" if name else ""))
        return
    rows = [
        (
            each.name,
            str(each.blob.filename),
            each.blob.content_type or "",
            format_size(each.blob.byte_size),
            each.blob.id,
            each.id,
        )
        for each in found
    ]
    show_table(("name", "file", "type", "size", "blob", "attachment"), rows)


@blobs.command("show")
@click.argument("id")
@json_option
@url_option
def show_blob(id: str, as_json: bool) -> None:
    """Show a blob, and where it is attached."""
    with open_database() as db:
        blob = db.blobs.find(id)
        attachments = db.blobs.attachments(blob)
    facts = _facts(blob)
    if as_json:
        show_json(facts | {"attachments": [_place(each) for each in attachments]})
        return
    _show_facts(facts)
    if attachments:
        show("\n")
        rows = [(each.record_type, each.record_id, each.name, each.id) for each in attachments]
        show_table(("owner", "id", "name", "attachment"), rows)


@blobs.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--filename", metavar="NAME", help="The blob's name, if not the file's.")
@click.option(
    "--type", "content_type", metavar="TYPE", help="The content type, if the bytes do not reveal it."
)
@click.option("--service", metavar="NAME", help="The file service to store it in.")
@click.option("--dedupe", is_flag=True, help="Reuse an existing blob with the same bytes, name and type.")
@json_option
@url_option
def upload(path: Path, as_json: bool, **options: Any) -> None:
    """Store a file as a blob. Attach it within two days, or a sweep deletes it."""
    with open_database() as db, transfer(path.name) as progress:
        blob = db.blobs.create_and_upload(path, progress=progress, **options)
    if as_json:
        show_json(_facts(blob))
    else:
        _show_facts(_facts(blob))


@blobs.command()
@click.argument("id")
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    help="The file to write; by default, the blob's name in the working directory.",
)
@url_option
def download(id: str, to: Path | None) -> None:
    """Write a blob's bytes to a file, and verify them."""
    with open_database() as db:
        blob = db.blobs.find(id)
        place = to or Path(str(blob.filename))
        if to is None and place.exists():
            raise Refusal(
                f"{place} already exists", "name another file with --to", status=ExitStatus.CONFLICT
            )
        with transfer(str(blob.filename)) as progress:
            db.blobs.download(blob, place, progress=progress)
    say(f"{place}: {format_size(blob.byte_size)}")


@blobs.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@json_option
@url_option
def analyze(ids: tuple[str, ...], as_json: bool) -> None:
    """Analyze the bytes of blobs, and store metadata.

    The metadata is what the bytes reveal, such as the width and height of a picture or the duration of a video.
    """
    with open_database() as db:
        found = [db.blobs.analyze(id) for id in ids]
    if as_json:
        show_json({"blobs": [_facts(each) for each in found]})
        return
    show_table(("blob", "metadata"), [(each.id, format_json(dict(each.metadata))) for each in found])


@blobs.command()
@click.argument("id")
@click.argument("target", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--size", metavar="WIDTHxHEIGHT", help="The largest size that the picture may have, in pixels.")
@url_option
def picture(id: str, target: Path, size: str | None) -> None:
    """Write a picture of a blob to a file.

    The picture shows the first page of a PDF, or the first frame of a video.
    """
    with open_database() as db:
        blob = db.blobs.representation(id, None if size is None else _read_size(size))
        db.blobs.download(blob, target)
    say(f"{target}: {blob.content_type}, {format_size(blob.byte_size)}")


def _read_size(text: str) -> Variant:
    sides = text.split("x")
    if len(sides) != 2 or not all(each.isdecimal() and int(each) for each in sides):
        raise click.BadParameter(f"{text!r} is not a size; write 800x600", param_hint="--size")
    return Variant(resize_to_limit=(int(sides[0]), int(sides[1])))


@blobs.command()
@click.argument("id")
@click.argument("record_type", metavar="OWNER")
@click.argument("record_id", metavar="OWNER-ID")
@click.argument("name")
@click.option(
    "--one",
    is_flag=True,
    help="Replace the current attachment of that name; its blob is purged unless it is attached elsewhere.",
)
@url_option
def attach(id: str, record_type: str, record_id: str, name: str, one: bool) -> None:
    """Attach a blob to an owner, under a name. It is not checked whether the owner exists."""
    with open_database() as db:
        db.blobs.attach(id, record_type=record_type, record_id=record_id, name=name, one=one)
    say(f"{id} attached to {record_type} {record_id} as {name}")


@blobs.command()
@click.argument("attachment")
@click.argument("record_type", metavar="OWNER")
@click.argument("record_id", metavar="OWNER-ID")
@click.argument("name")
@click.option(
    "--purge", is_flag=True, help="Have a worker delete the blob, too, unless it is attached elsewhere."
)
@url_option
def detach(attachment: str, record_type: str, record_id: str, name: str, purge: bool) -> None:
    """Remove an attachment by its ID. The blob stays unless you pass --purge."""
    with open_database() as db:
        done = db.blobs.detach(
            attachment,
            record_type=record_type,
            record_id=record_id,
            name=name,
            dependent="purge_later" if purge else False,
        )
    say(f"{attachment} {'detached' if done else 'was not attached'}")


@blobs.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--later", is_flag=True, help="Have a worker do it.")
@url_option
def purge(ids: tuple[str, ...], later: bool) -> None:
    """Delete blobs with their bytes, unless they are attached."""
    with open_database() as db:
        if later:
            db.blobs.purge_later(*ids)
            say(f"{format_count(len(ids), 'blob')} will be purged by a worker")
            return
        missing: list[str] = []
        kept: list[str] = []
        for id in ids:
            try:
                found = db.blobs.find(id)
            except RecordNotFound:
                missing.append(id)
            else:
                kept += [] if db.blobs.purge(found) else [id]
    say(f"{format_count(len(ids) - len(kept) - len(missing), 'blob')} purged")
    if missing:
        raise Refusal(
            f"there is no blob {', '.join(missing)}",
            status=ExitStatus.NOT_FOUND,
            code=RecordNotFound.code,
        )
    if kept:
        raise Refusal(
            f"{format_count(len(kept), 'blob')} kept because of attachments: {', '.join(kept)}",
            f"{command_text('blobs show ID')} shows where a blob is attached",
            status=ExitStatus.REFUSED,
            code=ForeignKeyViolation.code,
        )


@blobs.command()
@click.option("--dry-run", is_flag=True, help="Delete nothing; only count what would be deleted.")
@json_option
@url_option
def sweep(dry_run: bool, as_json: bool) -> None:
    """Delete unattached blobs that are at least two days old.

    This also deletes bytes left by uploads that were interrupted more than two days ago.
    """
    with open_database() as db:
        report = db.blobs.sweep(dry_run=dry_run)
    if as_json:
        show_json(asdict(report))
        return
    verb = "would be deleted" if dry_run else "deleted"
    say(
        f"{format_count(report.blobs, 'blob')} and the bytes of {format_count(report.bytes, 'upload')} {verb}; "
        f"{format_count(report.attached, 'attached blob')} kept"
    )


@blobs.command()
@click.option("--repair", is_flag=True, help="Repair what can be repaired.")
@click.option("--no-bytes", is_flag=True, help="Do not check whether the bytes exist in the file services.")
@json_option
@url_option
def check(repair: bool, no_bytes: bool, as_json: bool) -> None:
    """Check that blobs, attachments and bytes are consistent.

    It compares blobs with their attachments, counts, references and bytes, and reports what --repair would do. This
    reads the whole table. The exit status is 4 if there are findings that were not repaired.
    """
    with open_database() as db:
        report = db.blobs.check(repair=repair, bytes=not no_bytes)
    findings: list[dict[str, Any]] = [
        {"problem": each.problem, "id": each.id, "message": each.message, "repair": each.repair}
        for each in report.findings
    ]
    if as_json:
        show_json(
            {
                "blobs": report.blobs,
                "attachments": report.attachments,
                "findings": findings,
                "repaired": report.repaired,
            }
        )
    else:
        counts = ((report.blobs, "blob"), (report.attachments, "attachment"), (len(findings), "finding"))
        say(", ".join(format_count(*each) for each in counts))
        rows = [(each["message"], each["repair"] or "no repair is possible") for each in findings]
        if rows:
            show_table(("finding", "repair" if repair else "repair would"), rows)
    if len(findings) > report.repaired:
        raise click.exceptions.Exit(ExitStatus.CONFLICT)


@blobs.command()
@url_option
def reindex() -> None:
    """Add references to blobs that a Rails application wrote. This reads the whole table."""
    with open_database() as db:
        changed = db.blobs.reindex()
    say(f"{format_count(changed, 'blob')} changed")


def _facts(blob: Blob) -> dict[str, Any]:
    return {
        "id": blob.id,
        "filename": str(blob.filename),
        "content_type": blob.content_type,
        "byte_size": blob.byte_size,
        "checksum": blob.checksum,
        "service": blob.service_name,
        "key": blob.key,
        "metadata": dict(blob.metadata),
        "created_at": None if blob.created_at is None else blob.created_at.isoformat(),
        "attachments_count": blob.attachments_count,
    }


def _show_facts(facts: dict[str, Any]) -> None:
    words = {name: str(value) for name, value in facts.items() if value is not None}
    show_pairs(words | {"metadata": format_json(facts["metadata"])})


def _place(attachment: Attachment) -> dict[str, Any]:
    return {
        "id": attachment.id,
        "record_type": attachment.record_type,
        "record_id": attachment.record_id,
        "name": attachment.name,
    }
