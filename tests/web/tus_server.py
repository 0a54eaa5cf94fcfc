"""Serve files in a directory until killed: ``tus_server.py DIRECTORY``. The first line of output is the port."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path

import uvicorn

from holdall import AsyncDatabase
from holdall.web import create_app

SECRET = "a secret of some length"


async def main(directory: Path) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    files = f"file:{directory / 'files'}"
    async with AsyncDatabase(f"embedded:{directory / 'app.db'}", files=files, secret=SECRET) as db:
        config = uvicorn.Config(create_app(db), log_level="critical", lifespan="off")
        await uvicorn.Server(config).serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
