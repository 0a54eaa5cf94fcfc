"""Jobs in one file: enqueued in transactions, and run exactly once by two ``holdall worker --drain`` at once."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from holdall import Database, Key, Model

JOBS = 60
APPLICATION = """
import holdall
from holdall import Key, Model

class Tally(Model):
    number: Key[int]
    runs: int = 0

@holdall.job("count", transactional=True)
def count(tx, tally: Tally):
    tally.runs += 1
"""


class Tally(Model):
    number: Key[int]
    runs: int = 0


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "application.py").write_text(APPLICATION)
        url = f"embedded:{Path(folder, 'smoke.db')}"
        with Database(url) as db:
            for first in range(0, JOBS, 30):
                with db.transaction() as tx:
                    for number in range(first, first + 30):
                        tx.enqueue("count", tx.create(Tally, number=number))
            command = [
                sys.executable,
                "-m",
                "holdall",
                "--url",
                url,
                "worker",
                "application",
                "--drain",
                "--json",
            ]
            workers = [
                subprocess.Popen(
                    command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
                )
                for _ in range(2)
            ]
            outputs = [worker.communicate(timeout=60)[0] for worker in workers]
            assert [worker.returncode for worker in workers] == [0, 0], "a worker failed"
            assert sum(json.loads(text)["succeeded"] for text in outputs) == JOBS
            assert {db.get_one(Tally, number).runs for number in range(JOBS)} == {1}
            assert db.jobs.list() == []
    print(f"two workers ran {JOBS} jobs, each once")


if __name__ == "__main__":
    main()
