# mypy: ignore-errors
"""What type checkers know about downloads: the target decides the type. E: an error, R: a revealed type."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import reveal_type

from holdall import AsyncDatabase, Database


def download(db: Database, place: Path | None) -> None:
    reveal_type(db.artifacts.download("model"))  # R: bytes
    reveal_type(db.artifacts.download("model", "prod", key="user-42", cache=False))  # R: bytes
    reveal_type(db.artifacts.download("model", 1, "file"))  # R: Path
    reveal_type(db.artifacts.download("model", to=Path("file"), resume=True))  # R: Path
    reveal_type(db.artifacts.download("model", 1, place))  # R: Path | bytes
    db.artifacts.download("model", 1, BytesIO()).decode()  # E
    db.artifacts.download("model", 1, 5)  # E
    db.artifacts.download("model", resume="yes")  # E
    db.artifacts.download("model", unknown=True)  # E
    reveal_type(db.artifacts.publish("model", b"bytes", metadata={"a": "b"}).number)  # R: int | None


async def download_async(db: AsyncDatabase) -> None:
    reveal_type(await db.artifacts.download("model"))  # R: bytes
    reveal_type(await db.artifacts.download("model", "prod", "file"))  # R: Path
    reveal_type(await db.artifacts.download("model", to="file"))  # R: Path
    (await db.artifacts.download("model", to=BytesIO())).decode()  # E
    db.artifacts.download("model").decode()  # E
