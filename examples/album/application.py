"""A photo album: uploads from the browser, thumbnails, previews of PDFs and videos.

The browser uploads directly to the file service, as with Active Storage, and then sends the application the signed id
of the file. Thumbnails are made when they are first viewed. A worker in the same process reads metadata, and deletes
files that were uploaded but never added.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.templating import Jinja2Templates

from holdall import (
    Accept,
    AsyncDatabase,
    AsyncTransaction,
    Key,
    Model,
    Variant,
    current_job,
    has_many_attached,
    job,
)
from holdall.attachments import Attachment
from holdall.errors import RecordNotFound
from holdall.web import create_app, install_error_handlers

HERE = Path(__file__).parent
ACCEPTED = Accept(types=["image/*", "video/*", "application/pdf"], max_bytes=500_000_000)
POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


class Album(Model):
    """Pictures, films and documents."""

    name: Key[str]
    files = has_many_attached(
        validate=ACCEPTED,
        variants={
            "thumb": Variant(resize_to_fill=(400, 400), quality=82),
            "large": Variant(resize_to_limit=(1600, 1600), quality=85),
        },
    )


@job("album.sweep", every=3600)
async def sweep() -> None:
    """Delete files that were uploaded but never added."""
    await current_job().database(AsyncDatabase).blobs.sweep()


@dataclass
class Tile:
    """A file as the page shows it."""

    id: str
    name: str
    kind: str
    size: str
    original: str
    download: str
    thumb: str | None = None
    large: str | None = None

    @classmethod
    def of(cls, attachment: Attachment) -> Tile:
        blob = attachment.blob
        kind = "video" if blob.is_video else "pdf" if blob.content_type == "application/pdf" else "photo"
        tile = cls(
            attachment.id,
            str(blob.filename),
            kind,
            show_size(blob.byte_size),
            attachment.url(proxied=True),
            attachment.url(proxied=True, disposition="attachment"),
        )
        if blob.is_representable:
            tile.thumb = attachment.representation("thumb").url(proxied=True)
            tile.large = attachment.representation("large").url(proxied=True)
        return tile


def show_size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, round(size / 1e3))} KB"


def create_album(db: AsyncDatabase) -> FastAPI:
    """Create the application."""

    @asynccontextmanager
    async def run_worker(_: FastAPI) -> AsyncIterator[None]:
        async with db.worker():
            yield

    app = FastAPI(title="Album", lifespan=run_worker)
    install_error_handlers(app)
    app.mount("/attachments", create_app(db, accept=ACCEPTED))
    app.mount("/static", StaticFiles(directory=HERE / "static"))
    templates = Jinja2Templates(directory=HERE / "templates")

    @app.get("/", response_class=HTMLResponse)
    async def show(request: Request) -> Response:
        album = await db.get(Album, "home", include=["files"])
        tiles = [Tile.of(each) for each in album.files] if album is not None else []
        values = {"tiles": tiles[::-1], "accepted": ",".join(ACCEPTED.types)}
        page = templates.TemplateResponse(request, "album.html", values)
        page.headers["content-security-policy"] = POLICY
        return page

    @app.post("/files", response_class=HTMLResponse, status_code=201)
    async def add(request: Request, signed_id: Annotated[str, Body(embed=True)]) -> Response:
        album = await db.run(attach, signed_id)
        blob = await db.blobs.find_signed(signed_id, purpose="attach")
        added = next(each for each in album.files if each.blob == blob)
        return templates.TemplateResponse(request, "tile.html", {"tile": Tile.of(added)}, status_code=201)

    @app.delete("/files/{id}", status_code=204)
    async def delete(id: str) -> None:
        await db.run(remove, id)

    return app


async def attach(tx: AsyncTransaction, *given: Any) -> Album:
    """Add files to the album."""
    album = await tx.get(Album, "home", create_if_missing=True, include=["files"])
    album.files.attach(*given)
    return album


async def remove(tx: AsyncTransaction, id: str) -> None:
    """Delete a file of the album; its bytes and thumbnails go with it."""
    album = await tx.get_one(Album, "home", include=["files"])
    found = [each for each in album.files if each.id == id]
    if not found:
        raise RecordNotFound(f"the album has no file {id!r:.60}")
    album.files.purge(*found)


async def fill_album(db: AsyncDatabase, files: Iterable[Path]) -> None:
    """Add files to the album unless it exists already."""
    if await db.get(Album, "home") is None:
        await db.run(attach, *files)
