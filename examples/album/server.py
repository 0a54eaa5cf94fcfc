"""Run the photo album: python examples/album/server.py, then open the address that it prints.

It needs the extras media and web, and fastapi. It keeps files and rows in --data; --samples fills an empty album.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import socket
from pathlib import Path

import uvicorn
from application import create_album, fill_album
from sample import make_samples

from holdall import AsyncDatabase


def open_database(data: Path) -> AsyncDatabase:
    data.mkdir(parents=True, exist_ok=True)
    secret = data / "secret"
    if not secret.exists():
        secret.write_text(secrets.token_hex())
        secret.chmod(0o600)
    return AsyncDatabase(
        f"embedded:{data / 'album.db'}", files=f"file:{data / 'files'}", secret=secret.read_text()
    )


async def main() -> None:
    parser = argparse.ArgumentParser(prog="server.py", description="A photo album.")
    parser.add_argument(
        "--data", type=Path, default=Path("album-data"), help="the directory for files and rows"
    )
    parser.add_argument("--port", type=int, default=8000, help="0 for any free port")
    parser.add_argument("--samples", action="store_true", help="fill an empty album with pictures")
    options = parser.parse_args()
    async with open_database(options.data) as db:
        if options.samples:
            await fill_album(db, make_samples(options.data / "samples"))
        with socket.create_server(("127.0.0.1", options.port)) as listening:
            print(f"The album is at http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
            config = uvicorn.Config(create_album(db), log_level="warning")
            await uvicorn.Server(config).serve([listening])


if __name__ == "__main__":
    asyncio.run(main())
