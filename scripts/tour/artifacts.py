"""Steps about artifacts: versions that never change, a rollout, and protection against mistakes."""

from __future__ import annotations

import threading
from typing import Any

from holdall import Database
from holdall.errors import ArtifactInUseError, HoldallError, ProtectedAliasError
from tour.files import open_disk
from tour.stage import Tour, step


def open_database(tour: Tour) -> Database:
    return Database(backend=tour.store, files=open_disk(tour, "artifacts"), manage_table=True)


@step("Artifacts: versions that never change")
def versions(tour: Tour) -> None:
    """The last content put is LATEST; publishing turns it into the next version. Eight threads publish at once."""
    db = open_database(tour)
    db.artifacts.put("shop", b"the shop, first edition", tags={"team": "web"})
    first = db.artifacts.publish("shop")
    again = db.artifacts.publish("shop")
    tour.voice.say(f"Published twice without a change: version {first.version}, and version {again.version}.")
    db.artifacts.put("shop", b"the shop, second edition", tags={"team": "web"})
    numbers: list[str] = []
    threads = [
        threading.Thread(target=lambda: numbers.append(db.artifacts.publish("shop", force=True).version))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tour.voice.say(f"Eight threads got versions {', '.join(sorted(numbers, key=int))}.")
    assert sorted(map(int, numbers)) == list(range(2, 10))
    report = db.artifacts.prune("shop", keep_last=2, older_than=0)
    tour.voice.table(
        ["version", "bytes", "sha256"],
        [(each.version, each.size, f"{each.sha256:.24}…") for each in db.artifacts.versions("shop")],
    )
    tour.voice.say(f"The others were pruned, and can be restored: {', '.join(report.versions)}.")
    for number in (1, 2):
        assert db.artifacts.restore("shop", number).version == str(number)


@step("A rollout, and protection against mistakes")
def rollout(tour: Tour) -> None:
    """A version is rolled out in stages, each started by a job. A version that an alias serves cannot be deleted."""
    db = open_database(tour)
    db.artifacts.put_alias("shop", "live", 1, protected=True)
    found = db.artifacts.start_rollout("shop", "live", 9, [(10, 0), (50, 0)], allow_protected=True)
    stages = [found.percent]
    while found.is_open:
        db.worker().drain()
        found = db.artifacts.rollout("shop", "live")
        stages.append(found.percent)
    served = db.artifacts.alias("shop", "live").versions
    tour.voice.say(
        f"{stages[0]} % at once; a worker ran the other stages: {found.state}, serving {', '.join(served)}."
    )
    assert (found.state, served) == ("done", ("9",))
    attempts: list[tuple[str, type[HoldallError], Any]] = [
        ("delete a version that an alias serves", ArtifactInUseError, lambda: db.artifacts.delete("shop", 9)),
        ("move a protected alias", ProtectedAliasError, lambda: db.artifacts.put_alias("shop", "live", 1)),
    ]
    for what, kind, attempt in attempts:
        try:
            attempt()
        except kind as error:
            tour.voice.refusal(what, error.code, error.message, error.hint)
        else:
            raise AssertionError(f"not refused: {what}")
    gone = db.artifacts.purge("shop", drop_aliases=True, allow_protected=True)
    tour.voice.say(
        f"Purged in the end: {len(gone.versions)} versions, {gone.objects} objects, {gone.bytes} bytes."
    )
    assert list(db.files.list()) == []
