"""Steps about artifacts: versions that never change, a canary with real picks, a rollout, and what is protected."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from holdall import Database
from holdall.artifacts import Alias
from holdall.errors import ArtifactInUseError, HoldallError, ProtectedAliasError
from tour.files import on_disk
from tour.stage import Tour, step

USERS = [f"user-{number}" for number in range(20_000)]


def opened(tour: Tour) -> Database:
    return Database(backend=tour.store, files=on_disk(tour, "artifacts"), manage_table=True)


def picks(alias: Alias) -> dict[str, str]:
    """What each user gets."""
    return {user: alias.resolve(key=user) for user in USERS}


def chart(tour: Tour, found: Counter[str]) -> None:
    total = found.total()
    tour.voice.bars(
        (f"version {version}", float(count), f"{count:,} ({count / total:.1%})")
        for version, count in sorted(found.items())
    )


@step("Artifacts: versions that never change")
def versions(tour: Tour) -> None:
    """What was put last is LATEST; publishing makes of it the next number. Eight threads publish at once."""
    db = opened(tour)
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
    tour.voice.say(f"Eight at once got {', '.join(sorted(numbers, key=int))}.")
    assert sorted(map(int, numbers)) == list(range(2, 10))
    report = db.artifacts.prune("shop", keep_last=2, older_than=0)
    tour.voice.table(
        ["version", "bytes", "sha256"],
        [(each.version, each.size, f"{each.sha256:.24}…") for each in db.artifacts.versions("shop")],
    )
    tour.voice.say(f"The others were pruned, and can be restored: {', '.join(report.versions)}.")
    for number in (1, 2):
        assert db.artifacts.restore("shop", number).version == str(number)


@step("A canary: who gets which version")
def canary(tour: Tour) -> None:
    """An alias gives 5 % of the users the new version, then 20 %: real picks, and nobody is moved in vain."""
    db = opened(tour)
    small = db.artifacts.put_alias("shop", "prod", 1, secondary_version=2, secondary_version_weight=5)
    before = picks(small)
    tour.voice.say(f"5 % for version 2, and {len(USERS):,} users, each by their own key:")
    chart(tour, Counter(before.values()))
    large = db.artifacts.put_alias("shop", "prod", 1, secondary_version=2, secondary_version_weight=20)
    after = picks(large)
    tour.voice.say("20 %, the same users:")
    chart(tour, Counter(after.values()))
    came = sum(before[user] == "1" and after[user] == "2" for user in USERS)
    left = sum(before[user] == "2" and after[user] == "1" for user in USERS)
    tour.voice.say(f"{came:,} users came to version 2 ({came / len(USERS):.1%}), {left} had to leave it.")
    assert left == 0
    many = db.artifacts.put_alias("shop", "prod", weights={1: 50, 2: 30, 9: 20})
    tour.voice.say(f"Three versions, and {len(USERS):,} draws without a key:")
    chart(tour, Counter(many.resolve() for _ in USERS))
    back = db.artifacts.rollback_alias("shop", "prod", by="ada", reason="enough for today")
    tour.voice.say("Rolled back, as a whole; and the history of it:")
    tour.voice.table(
        ["change", "what", "weights", "by", "reason"],
        [
            (each.number, each.action, each.weights, each.by or "", each.reason or "")
            for each in db.artifacts.alias_history("shop", "prod")
        ],
    )
    assert picks(back) == after


@step("A rollout, and what is protected")
def rollout(tour: Tour) -> None:
    """A version is rolled out in stages, each begun by a job. What an alias serves cannot be deleted by mistake."""
    db = opened(tour)
    db.artifacts.put_alias("shop", "live", 1, protected=True)
    found = db.artifacts.start_rollout("shop", "live", 9, [(10, 0), (50, 0)], allow_protected=True)
    stages = [found.percent]
    while found.is_open:
        db.worker().drain()
        found = db.artifacts.rollout("shop", "live")
        stages.append(found.percent)
    served = db.artifacts.alias("shop", "live").versions
    tour.voice.say(
        f"{stages[0]} % at once; a worker saw to the rest: {found.state}, serving {', '.join(served)}."
    )
    assert (found.state, served) == ("done", ("9",))
    attempts: list[tuple[str, type[HoldallError], Any]] = [
        ("delete what is served", ArtifactInUseError, lambda: db.artifacts.delete("shop", 9)),
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
