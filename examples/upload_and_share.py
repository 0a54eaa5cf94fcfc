"""Upload and share: the bytes are in a file service, an item describes them, and a link to them is valid for an hour.

Run it: python examples/upload_and_share.py. The service is a directory here; with files="s3://bucket?region=..." the
links would lead to S3. Here `create_app` serves them.
"""

from __future__ import annotations

import asyncio
import tempfile
from typing import Any
from uuid import uuid4

from httpx import ASGITransport, AsyncClient, Response

from holdall import Database, Key, Model, Transaction
from holdall.errors import IntegrityError
from holdall.web import create_app

SECRET = "in production, a long random text"


class Photo(Model):
    id: Key[str]
    title: str
    size: int
    sha256: str


def upload(db: Database, title: str, data: bytes, *, md5: str | None = None) -> Photo:
    """Store the bytes first, under a new key, then the item: a program that finds the item finds the bytes."""
    photo_id = str(uuid4())
    info = db.files.put(f"photos/{photo_id}", data, content_type="image/png", if_absent=True, md5=md5)

    def describe(tx: Transaction) -> Photo:
        return tx.create(Photo, id=photo_id, title=title, size=info.size, sha256=info.sha256 or "")

    return db.run(describe)


def make_link(db: Database, photo: Photo) -> str:
    """Make a URL that is valid for an hour; the browser saves the file under the photo's title."""
    return db.files.url(
        f"photos/{photo.id}", expires=3600, disposition="attachment", filename=f"{photo.title}.png"
    )


async def fetch(app: Any, url: str) -> Response:
    """Send the request that a browser would send."""
    async with AsyncClient(transport=ASGITransport(app=app), base_url="https://photos.example") as client:
        return await client.get(url)


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        Database("memory:", files=f"file:{folder}", secret=SECRET) as db,
    ):
        photo = upload(db, "Zoë am Strand", b"\x89PNG" + bytes(1000))
        print(f"{photo.title}: {photo.size:,} bytes, sha256 {photo.sha256[:16]}…")

        try:
            upload(db, "Damaged upload", b"\x89PNG", md5="rL0Y20zC+Fzt72VPzMSk2A==")
        except IntegrityError:
            print("an upload with a wrong checksum stores nothing")
        assert len(list(db.files.list("photos/"))) == 1

        app, url = create_app(db), make_link(db, photo)
        reply = asyncio.run(fetch(app, url))
        print(reply.headers["content-disposition"])
        assert reply.content == db.files.get(f"photos/{photo.id}")

        if asyncio.run(fetch(app, url[:-4] + "0000")).status_code == 404:
            print("a changed link is a 404")


if __name__ == "__main__":
    main()
