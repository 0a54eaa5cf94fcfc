"""Kills a process after each request of a change, and checks that other processes can continue from there.

``artifact_dying.py KIND ENDPOINT DIRECTORY STRIDE`` prints a line for each request after which it killed a process:
after every request if the stride is 0. The script fails if the audit finds anything wrong afterwards.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4
from zlib import crc32

from artifact_audit import Seen, audit
from artifact_rig import Rig, Store
from artifact_scenarios import NAME, OTHER, SCENARIOS, Scenario, trees
from rig.files import s3_service
from rig.servers import ENVIRONMENT

from holdall import Database
from holdall.backends.disk import DiskService
from holdall.core.port import run
from holdall.errors import ArtifactNotFoundError

KILLED = {
    "put another": 1,
    "put a directory over another": 2,
    "publish": 1,
    "publish a directory": 1,
    "publish a content": 3,
    "publish a content of files": 5,
    "split an alias": 1,
    "delete with aliases": 2,
    "prune unserved versions": 4,
    "purge a version": 3,
    "purge LATEST": 3,
    "purge all": 9,
}
"""The scenarios of an everyday run. The number multiplies the stride: long scenarios repeat similar steps."""

FEW = (
    "put another",
    "publish",
    "publish a content",
    "split an alias",
    "prune unserved versions",
    "purge a version",
)
"""The scenarios for servers, which are slower."""

TWO_DAYS = 2 * 24 * 3600.0


@contextmanager
def open_store(kind: str, where: str, place: Path) -> Iterator[Store]:
    """The store of a place: a file and a directory in it, or a table and a prefix named after it."""
    if kind == "disk":
        settings: dict[str, Any] = {"durability": "normal"}
        with Database(f"embedded:{place / 'store.db'}", **settings) as db:
            service = DiskService(place / "files")
            yield Store(f"embedded:{place / 'store.db'}", settings, db._backend, service, place)
        return
    settings = {"endpoint": where, "region": ENVIRONMENT["AWS_REGION"], "manage_table": True}
    url = f"dynamodb://artifacts-{place.name}"
    keys = ENVIRONMENT["AWS_ACCESS_KEY_ID"], ENVIRONMENT["AWS_SECRET_ACCESS_KEY"], None, None
    with Database(url, credentials=lambda: keys, **settings) as db:
        bucket = s3_service(where, f"artifacts/{place.name}")
        yield Store(url, settings, db._backend, bucket, place)
        bucket.close()


class DyingRun:
    """One scenario in one place."""

    def __init__(self, kind: str, where: str, place: Path, scenario: Scenario) -> None:
        self.kind = kind
        self.where = where
        self.place = place
        self.scenario = scenario

    def prepare(self, rig: Rig) -> None:
        trees(self.place)
        self.finish(rig.artifacts.put(OTHER, self.place / "first"))
        self.finish(self.scenario.before(rig.artifacts, self.place))

    def die(self, rig: Rig, at: int) -> None:
        """Make the change, and kill this process once the request with this number is done."""
        self.finish(rig.names())
        rig.watch.requests.clear()

        def after(request: Any) -> None:
            if len(rig.watch.requests) >= at:
                os.kill(os.getpid(), signal.SIGKILL)

        rig.watch.after = after
        self.finish(self.scenario.change(rig.artifacts, self.place))

    def check_recovery(self, rig: Rig) -> None:
        """Audit the store; repeat the change; then let time pass, purge everything, and check that nothing is left."""
        seen = Seen()
        self.finish(rig.names())
        home = self.finish(_home(rig))
        audit(rig.store, home, seen=seen, healed=False)
        with suppress(ArtifactNotFoundError):
            self.finish(rig.artifacts.get(NAME, deleted=True))
        audit(rig.store, home, seen=seen)
        self.finish(self.scenario.change(rig.artifacts, self.place))
        audit(rig.store, home, seen=seen)
        rig.clock.forward(TWO_DAYS)
        self.finish(rig.artifacts.put(NAME, b"the last"))
        self.finish(rig.artifacts.publish(NAME, force=True))
        self.finish(rig.artifacts.purge(NAME, "999999"))
        audit(rig.store, home, seen=seen, settled=True)
        for name in (NAME, OTHER):
            self.finish(rig.artifacts.purge(name, drop_aliases=True))
        assert not rig.store.objects()

    @staticmethod
    def finish(flow: Any) -> Any:
        return run(flow)

    def fork_child(self, work: Callable[..., None], *args: Any) -> int:
        """Do some work on the store in a child; return 0, or minus the signal that killed the child."""
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with open_store(self.kind, self.where, self.place) as store:
                    work(Rig("blocking", store), *args)
                code = 0
            except BaseException:  # noqa: BLE001 - reported before the process exits
                print(f"{self.scenario}, {work.__name__} {args}", file=sys.stderr)
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


async def _home(rig: Rig) -> Any:
    from holdall.artifacts.home import find_home

    return await find_home(rig.context)


def kill_each(kind: str, where: str, directory: Path, scenario: Scenario, stride: int) -> None:
    """Kill a process after each request of a scenario, or after some of them."""
    prepared = DyingRun(kind, where, directory / "prepared", scenario)
    if kind == "disk":
        prepared.place.mkdir()
        assert prepared.fork_child(prepared.prepare) == 0
    at = 1 + crc32(str(scenario).encode()) % stride
    while True:
        dying = DyingRun(kind, where, directory / uuid4().hex, scenario)
        if kind == "disk":
            shutil.copytree(prepared.place, dying.place)
        else:
            dying.place.mkdir()
            assert dying.fork_child(dying.prepare) == 0
        code = dying.fork_child(dying.die, at)
        assert code in (0, -signal.SIGKILL)
        assert dying.fork_child(dying.check_recovery) == 0, f"{scenario}: killed after request {at}"
        shutil.rmtree(dying.place)
        if code == 0:
            shutil.rmtree(prepared.place, ignore_errors=True)
            return
        print(f"{scenario}: killed after request {at}", flush=True)
        at += stride


def main(kind: str, where: str, directory: str, stride: str) -> None:
    first = DyingRun(kind, where, Path(directory, uuid4().hex), SCENARIOS[0])
    first.place.mkdir()
    # import here, once, what every child would have to import
    with open_store(kind, where, first.place) as store:
        first.prepare(Rig("blocking", store))
        first.check_recovery(Rig("blocking", store))
    for scenario in SCENARIOS:
        if scenario.name in (KILLED if kind == "disk" or stride == "0" else FEW):
            apart = int(stride) * KILLED[scenario.name] if int(stride) else 1
            kill_each(kind, where, Path(directory), scenario, apart)


if __name__ == "__main__":
    main(*sys.argv[1:])
