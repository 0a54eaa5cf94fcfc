"""``holdall blobs``: look at files, upload, download, attach and purge them; sweep and check."""

from __future__ import annotations

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
from holdall.cli.session import open_database, url_option
from holdall.errors import ForeignKeyViolation, RecordNotFound

if TYPE_CHECKING:
    from holdall.attachments import Attachment, Blob


@click.group()
def blobs() -> None:
    """Look at attached files; upload, download, attach and purge them; sweep and check.

    A blob is a stored file with its name and type. It is deleted only when no attachment refers to it.
    """


@blobs.command("list")
@click.argument("record_type", metavar="OWNER")
@click.argument("record_id", metavar="ID")
@click.option("--name", metavar="NAME", help="Only what is attached under this name.")
@json_option
@url_option
def list_(record_type: str, record_id: str, name: str | None, as_json: bool) -> None:
    """List what is attached to an owner, named by its class (or record type) and its id."""
    with open_database() as db:
        found = list(db.blobs.list(record_type, record_id, name))
    if as_json:
        show_json({"attachments": [_place(each) | {"blob": _facts(each.blob)} for each in found]})
        return
    if not found:
        say("nothing is attached")
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
@click.option("--filename", metavar="NAME", help="Its name, if it is not the file's own.")
@click.option("--type", "content_type", metavar="TYPE", help="Its content type, if the bytes do not show it.")
@click.option("--service", metavar="NAME", help="The service to store it in.")
@click.option(
    "--dedupe", is_flag=True, help="Use the blob that has the same bytes, name and type, if there is one."
)
@json_option
@url_option
def upload(
    path: Path,
    filename: str | None,
    content_type: str | None,
    service: str | None,
    dedupe: bool,
    as_json: bool,
) -> None:
    """Store a file as a blob. Attach it within two days, or a sweep deletes it."""
    with open_database() as db, transfer(path.name) as progress:
        blob = db.blobs.create_and_upload(
            path,
            filename=filename,
            content_type=content_type,
            service=service,
            dedupe=dedupe,
            progress=progress,
        )
    if as_json:
        show_json(_facts(blob))
    else:
        _show_facts(_facts(blob))


@blobs.command()
@click.argument("id")
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    help="The file to write; by default its own name in this directory.",
)
@url_option
def download(id: str, to: Path | None) -> None:
    """Write a blob's bytes into a file, and verify them."""
    with open_database() as db:
        blob = db.blobs.find(id)
        place = to or Path(str(blob.filename))
        if to is None and place.exists():
            raise Refusal(
                f"{place} exists already", "name another file with --to", status=ExitStatus.CONFLICT
            )
        with transfer(str(blob.filename)) as progress:
            db.blobs.download(blob, place, progress=progress)
    say(f"{place}: {format_size(blob.byte_size)}")


@blobs.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@json_option
@url_option
def analyze(ids: tuple[str, ...], as_json: bool) -> None:
    """Find out what the bytes of blobs say about them (sizes, durations), and keep it as their metadata."""
    with open_database() as db:
        found = [db.blobs.analyze(id) for id in ids]
    if as_json:
        show_json({"blobs": [_facts(each) for each in found]})
        return
    show_table(("blob", "metadata"), [(each.id, format_json(dict(each.metadata))) for each in found])


@blobs.command()
@click.argument("id")
@click.argument("target", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--size", metavar="WIDTHxHEIGHT", help="The largest size that the picture may have.")
@url_option
def picture(id: str, target: Path, size: str | None) -> None:
    """Write a picture of a blob into a file; of a PDF its first page, of a video its first frame."""
    with open_database() as db:
        blob = db.blobs.representation(id, None if size is None else _read_size(size))
        db.blobs.download(blob, target)
    say(f"{target}: {blob.content_type}, {format_size(blob.byte_size)}")


def _read_size(text: str) -> Variant:
    sides = text.split("x")
    if len(sides) != 2 or not all(each.isdecimal() and int(each) for each in sides):
        raise click.BadParameter(f"{text!r} is no size", param_hint="--size")
    return Variant(resize_to_limit=(int(sides[0]), int(sides[1])))


@blobs.command()
@click.argument("id")
@click.argument("record_type", metavar="OWNER")
@click.argument("record_id", metavar="OWNER-ID")
@click.argument("name")
@click.option(
    "--one", is_flag=True, help="Replace what is there; its blob is purged unless something else has it."
)
@url_option
def attach(id: str, record_type: str, record_id: str, name: str, one: bool) -> None:
    """Attach a blob to an owner, under a name. The owner is not looked up."""
    with open_database() as db:
        db.blobs.attach(id, record_type=record_type, record_id=record_id, name=name, one=one)
    say(f"{id} is attached as {name} of {record_type} {record_id}")


@blobs.command()
@click.argument("attachment")
@click.argument("record_type", metavar="OWNER")
@click.argument("record_id", metavar="OWNER-ID")
@click.argument("name")
@click.option(
    "--purge", is_flag=True, help="Have a worker delete the blob, too, unless something else has it."
)
@url_option
def detach(attachment: str, record_type: str, record_id: str, name: str, purge: bool) -> None:
    """Remove an attachment; its blob stays."""
    with open_database() as db:
        done = db.blobs.detach(
            attachment,
            record_type=record_type,
            record_id=record_id,
            name=name,
            dependent="purge_later" if purge else False,
        )
    say("detached" if done else "it was not attached")


@blobs.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--later", is_flag=True, help="Leave it to a worker.")
@url_option
def purge(ids: tuple[str, ...], later: bool) -> None:
    """Delete blobs with their bytes, except those that something has attached."""
    with open_database() as db:
        if later:
            db.blobs.purge_later(*ids)
            say(f"{format_count(len(ids), 'blob')} to be purged")
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
            f"attached somewhere, and kept: {', '.join(kept)}",
            "see where with holdall blobs show ID",
            status=ExitStatus.REFUSED,
            code=ForeignKeyViolation.code,
        )


@blobs.command()
@click.option("--dry-run", is_flag=True, help="Only count what would be deleted.")
@json_option
@url_option
def sweep(dry_run: bool, as_json: bool) -> None:
    """Delete blobs that nothing has attached and bytes that interrupted uploads left, after two days."""
    with open_database() as db:
        report = db.blobs.sweep(dry_run=dry_run)
    if as_json:
        show_json({"blobs": report.blobs, "bytes": report.bytes, "attached": report.attached})
        return
    verb = "would be deleted" if dry_run else "deleted"
    say(
        f"{format_count(report.blobs, 'blob')} and the bytes of {format_count(report.bytes, 'upload')} {verb}; "
        f"{format_count(report.attached, 'blob')} kept: attached"
    )


@blobs.command()
@click.option("--repair", is_flag=True, help="Correct what can be corrected.")
@click.option("--no-bytes", is_flag=True, help="Do not ask the services whether the bytes are there.")
@json_option
@url_option
def check(repair: bool, no_bytes: bool, as_json: bool) -> None:
    """Compare counts, references, attachments and bytes; report what --repair would do. It reads the whole table."""
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
        rows = [(each["message"], each["repair"] or "nothing can be done") for each in findings]
        if rows:
            show_table(("found", "done" if repair else "a repair would"), rows)
    if len(findings) > report.repaired:
        raise click.exceptions.Exit(ExitStatus.CONFLICT)


@blobs.command()
@url_option
def reindex() -> None:
    """Add to blobs the references of attachments that a Rails application wrote. It reads the whole table."""
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
