"""Upload and share: the bytes go to a service, an item says what they are, and a link lets others in for an hour.

Run it: python examples/upload_and_share.py. The service is a directory here; with files="s3://bucket?region=..." the
links would lead to S3, and there would be nothing to serve.
"""

from __future__ import annotations

import tempfile
from uuid import uuid4

from holdall import Database, Key, Model, Transaction
from holdall.backends.disk import DiskService
from holdall.errors import IntegrityError, InvalidTokenError

SECRET = "in production, a long random text"


class Photo(Model):
    id: Key[str]
    title: str
    size: int
    sha256: str


def upload(db: Database, title: str, data: bytes, *, md5: str | None = None) -> Photo:
    """The bytes first, under a key that nobody has; then the item. Who reads the item finds the bytes."""
    photo_id = str(uuid4())
    info = db.files.put(f"photos/{photo_id}", data, content_type="image/png", if_absent=True, md5=md5)

    def describe(tx: Transaction) -> Photo:
        return tx.create(Photo, id=photo_id, title=title, size=info.size, sha256=info.sha256 or "")

    return db.run(describe)


def link(db: Database, photo: Photo) -> str:
    """A URL that is good for an hour, for a file with a readable name."""
    return db.files.url(
        f"photos/{photo.id}", expires=3600, disposition="attachment", filename=f"{photo.title}.png"
    )


def served(db: Database, service: DiskService, url: str) -> tuple[str | None, bytes]:
    """What a web app does with such a URL: it verifies the token, and serves what that permits."""
    permitted = service.verified_download(url.rpartition("/")[2])
    return permitted.headers.disposition, db.files.get(permitted.key)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        service = DiskService(folder, secret=[SECRET], base_url="https://photos.example/files")
        with Database("memory:", files=service) as db:
            photo = upload(db, "Zoë am Strand", b"\x89PNG" + bytes(1000))
            print(f"{photo.title}: {photo.size:,} bytes, sha256 {photo.sha256[:16]}…")

            try:
                upload(db, "Cut short on its way", b"\x89PNG", md5="rL0Y20zC+Fzt72VPzMSk2A==")
            except IntegrityError:
                print("an upload with the wrong checksum left nothing")
            assert len(list(db.files.list("photos/"))) == 1

            url = link(db, photo)
            disposition, data = served(db, service, url)
            print(disposition)
            assert data == db.files.get(f"photos/{photo.id}")

            try:
                served(db, service, url[:-4] + "0000")
            except InvalidTokenError:
                print("a link that was tampered with is refused")


if __name__ == "__main__":
    main()
