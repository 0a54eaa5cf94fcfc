"""Artifacts in one file: two processes publish at once, the numbers are distinct, and downloads return the content."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from holdall import Database

EACH = 5


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"embedded:{Path(folder, 'smoke.db')}"
        with Database(url) as db:
            db.artifacts.put("app", b"smoke")
            command = [
                sys.executable,
                "-m",
                "holdall",
                "--url",
                url,
                "artifacts",
                "publish",
                "app",
                "--force",
                "--json",
            ]
            numbers = []
            for _ in range(EACH):
                both = [
                    subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) for _ in range(2)
                ]
                outputs = [publisher.communicate(timeout=60)[0] for publisher in both]
                assert [publisher.returncode for publisher in both] == [0, 0], "a publisher failed"
                numbers += [int(json.loads(text)["version"]) for text in outputs]
            assert sorted(numbers) == list(range(1, 2 * EACH + 1)), numbers
            alias = db.artifacts.put_alias("app", "prod", 1, secondary_version=2, secondary_version_weight=20)
            served = {alias.resolve(key=user) for user in range(100)}
            assert served == {"1", "2"}
            assert db.artifacts.download("app", "prod", key=42) == b"smoke"
            gone = db.artifacts.purge("app", drop_aliases=True)
            assert gone.objects == 2 * EACH + 1
    print(f"two processes published {2 * EACH} versions with distinct numbers")


if __name__ == "__main__":
    main()
