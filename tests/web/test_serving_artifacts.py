"""Artifacts over HTTP: by version or alias, for the clients that the application authorizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from serving_rig import Place, open_place

from holdall.errors import ConfigurationError
from holdall.web import create_app


def allow(request: Any, asked: Any) -> bool:
    return bool(
        request.headers.get("x-user") == "ada" and asked.action == "download" and asked.artifact != "hidden"
    )


def fetch(place: Place, path: str, **headers: str) -> tuple[int, bytes]:
    """Request a path, and follow a redirect; return the status and the bytes."""
    reply = place.get(f"/attachments/artifacts/{path}", **headers)
    if reply.status_code == 302:
        assert reply.headers["cache-control"] == "no-store"
        reply = place.get(reply.headers["location"])
        assert reply.headers["content-disposition"].startswith("attachment")
        assert reply.headers["content-type"] == "application/octet-stream"
    return reply.status_code, reply.content


def test_an_authorized_client_gets_an_artifact_by_version_alias_and_key(tmp_path: Path) -> None:
    with open_place(tmp_path, authorize=allow, artifacts=True) as place:
        for content in (b"one", b"two"):
            place.db.artifacts.publish("model", content)
        place.db.artifacts.publish("hidden", b"secret")
        place.db.artifacts.put_alias("model", "live", weights={1: 50, 2: 50})
        ada = {"x_user": "ada"}
        assert fetch(place, "model/1", **ada) == (200, b"one")
        assert fetch(place, "model/2", **ada) == (200, b"two")
        found = {each: fetch(place, f"model/live?key={each}", **ada)[1] for each in range(20)}
        assert set(found.values()) == {b"one", b"two"}
        assert found == {each: fetch(place, f"model/live?key={each}", **ada)[1] for each in range(20)}
        for path, headers, status in (
            ("model/3", ada, 404),
            ("model/nothing", ada, 404),
            ("nothing/1", ada, 404),
            ("model/1", {}, 403),
            ("hidden/1", ada, 403),
            ("__model-alias/live", ada, 422),
            ("model/0", ada, 422),
        ):
            assert fetch(place, path, **headers)[0] == status, path
        folder = tmp_path / "folder"
        folder.mkdir()
        (folder / "a.txt").write_bytes(b"a")
        place.db.artifacts.publish("folder", folder)
        assert fetch(place, "folder/1", **ada)[0] == 422


def test_artifacts_are_served_only_if_enabled_together_with_an_authorize_function(tmp_path: Path) -> None:
    with open_place(tmp_path) as place:
        place.db.artifacts.publish("model", b"one")
        assert place.get("/attachments/artifacts/model/1").status_code == 404
        with pytest.raises(ConfigurationError, match="everyone"):
            create_app(place.db, artifacts=True)
