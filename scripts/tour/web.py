"""A step about files over HTTP: served, uploaded directly by a client, and refused."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from hashlib import md5
from typing import Any

from httpx import ASGITransport, AsyncClient, Response

from holdall import Database, Key, Model, has_one_attached
from holdall.web import create_app
from tour.files import SECRET, open_disk
from tour.stage import Tour, step


class Visitor(Model):
    name: Key[str]
    portrait = has_one_attached()


@step("Files over HTTP: served and uploaded")
def files_over_http(tour: Tour) -> None:
    """The client receives a URL for its bytes and a signed id for the form. The file's own URL is signed, too."""
    service = open_disk(tour, "served", secret=[SECRET], base_url="/attachments/disk")
    db = Database(backend=tour.store, files=service, secret=SECRET, manage_table=True)
    asyncio.run(_visit(tour, db, create_app(db)))


async def _visit(tour: Tour, db: Database, app: Any) -> None:
    data, rows = b"\x89PNG\r\n\x1a\n" + bytes(50_000), []
    async with AsyncClient(transport=ASGITransport(app=app), base_url="http://tour") as client:

        async def ask(what: str, status: int, method: str, url: str, **options: Any) -> Response:
            reply = await client.request(method, url, **options)
            assert reply.status_code == status, (what, reply.status_code)
            rows.append((what, f"{method} {url[:40]}{'…' if len(url) > 40 else ''}", status))
            return reply

        checksum = b64encode(md5(data).digest()).decode()
        blob = {
            "filename": "ada.png",
            "content_type": "image/png",
            "byte_size": len(data),
            "checksum": checksum,
        }
        reply = await ask("announce a file", 200, "POST", "/attachments/direct_uploads", json={"blob": blob})
        answer = reply.json()
        url, headers = answer["direct_upload"].values()
        await ask("put other bytes", 422, "PUT", url, content=data[:-1] + b"x", headers=headers)
        await ask("put its bytes", 204, "PUT", url, content=data, headers=headers)
        async with db.aio.transaction() as tx:
            tx.create(Visitor, name="Ada").portrait = answer["signed_id"]
        portrait = (await db.aio.get_one(Visitor, "Ada", include=["portrait"])).portrait
        address = str(portrait.url(proxied=True))
        whole = await ask("get it", 200, "GET", address)
        assert whole.content == data
        await ask("get the first bytes", 206, "GET", address, headers={"Range": "bytes=0-7"})
        await ask(
            "ask whether it changed", 304, "GET", address, headers={"If-None-Match": whole.headers["etag"]}
        )
        await ask(
            "ask for a thousand ranges",
            416,
            "GET",
            address,
            headers={"Range": "bytes=" + "0-0," * 999 + "1-1"},
        )
        await ask("change a character of the address", 404, "GET", address.replace(".", "x", 1))
    tour.voice.table(["a client wants to", "request", "status"], rows)
