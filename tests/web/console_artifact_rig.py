"""An artifact for the tests of the console, with versions, aliases, a history and a rollout."""

from __future__ import annotations

from holdall import Database

__all__ = ["publish_model"]


def publish_model(db: Database, name: str = "console-model") -> str:
    """Publish three versions of an artifact; return its name."""
    for number in range(1, 4):
        db.artifacts.put(name, b"model" * number, content_type="text/plain", tags={"team": "ml"})
        db.artifacts.publish(name)
    db.artifacts.put_alias(name, "live", 1, by="ada")
    db.artifacts.put_alias(name, "live", weights={2: 90, 3: 10}, by="ada", reason="a <try>")
    db.artifacts.put_alias(name, "next", 2)
    db.artifacts.start_rollout(name, "next", 3, [(5, 3600), (50, None)], by="grace")
    db.artifacts.put_alias(name, "kept", 1, protected=True)
    return name
