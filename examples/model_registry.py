"""A model registry: publish models, serve one to a few users first, then roll it out or back.

Run it: python examples/model_registry.py. The models are directories here, with a card and weights; equal files are
stored once. With "dynamodb://..." and files="s3://..." the same program serves a team.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from datetime import datetime
from pathlib import Path

from holdall import Database
from holdall.artifacts import Artifact, ArtifactEvent, ArtifactSettings, on
from holdall.errors import ArtifactInUseError

NEWS: list[tuple[datetime, str]] = []


@on("published", "alias_moved", name="announce-model")
def announce(event: ArtifactEvent) -> None:
    """Announce a change; this runs as a job that the transaction of the change enqueues, so no event is lost."""
    if event.kind == "published":
        news = f"{event.name} {event.version} is published"
    else:
        news = f"{event.name} {event.alias}: {event.before or 'nothing'} → {event.after or 'nothing'}"
    NEWS.append((event.at, news))


def train(folder: Path, accuracy: float) -> Path:
    """Write the files that training would produce; the vocabulary is always the same."""
    folder.mkdir()
    (folder / "card.json").write_text(json.dumps({"accuracy": accuracy}))
    (folder / "weights.bin").write_bytes(repr(accuracy).encode() * 1000)
    (folder / "vocabulary.txt").write_text("\n".join(f"word {number}" for number in range(1000)))
    return folder


def register(db: Database, model: Path, accuracy: float) -> Artifact:
    """Publish the model as the next version. A version never changes, and its number is unique."""
    db.artifacts.put("spam-filter", model, metadata={"accuracy": str(accuracy)}, tags={"task": "spam"})
    return db.artifacts.publish("spam-filter")


class Server:
    """Serves each user one version of the model; it loads each version once, from the cache if possible."""

    def __init__(self, db: Database, folder: Path) -> None:
        self._db = db
        self._folder = folder
        self._folder.mkdir()
        self._loaded: dict[str, float] = {}

    def find_accuracy(self, user: str) -> float:
        alias = self._db.artifacts.alias("spam-filter", "prod")  # in production, keep it for a few seconds
        version = alias.resolve(key=user)
        if version not in self._loaded:
            to = self._folder / version
            self._db.artifacts.download("spam-filter", version, to)
            self._loaded[version] = json.loads((to / "card.json").read_text())["accuracy"]
        return self._loaded[version]


def main() -> None:
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        settings = ArtifactSettings(cache=str(folder / "cache"), cache_size=100_000_000)
        with Database(f"embedded:{folder / 'registry.db'}", artifacts=settings) as db:
            for number, accuracy in enumerate((0.91, 0.94), start=1):
                found = register(db, train(folder / f"run-{number}", accuracy), accuracy)
                print(f"version {found.version}: {found.size:,} bytes, {found.metadata}")
            files = [file.key for file in db.files.list("versioned-artifacts/__files/")]
            print(f"6 files were published, {len(files)} are stored")

            db.artifacts.put_alias("spam-filter", "prod", 1, by="ada")
            db.artifacts.put_alias("spam-filter", "prod", 1, 2, 10, by="ada", reason="canary")
            server = Server(db, folder / "models")
            users = [f"user-{number}" for number in range(1000)]
            before = {user: server.find_accuracy(user) for user in users}
            print("canary:", dict(Counter(before.values())))

            try:
                db.artifacts.delete("spam-filter", 1)
            except ArtifactInUseError as error:
                print("kept:", error.message)

            db.artifacts.put_alias("spam-filter", "prod", 2, by="grace", reason="it is better")
            assert {server.find_accuracy(user) for user in users} == {0.94}
            db.artifacts.rollback_alias("spam-filter", "prod", by="grace", reason="complaints")
            assert {user: server.find_accuracy(user) for user in users} == before, (
                "every user gets the previous version again"
            )

            db.worker().drain()
            print(*(news for _, news in sorted(NEWS)), sep="\n")


if __name__ == "__main__":
    main()
