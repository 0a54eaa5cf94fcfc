"""Audits artifacts: checks what must hold in the table and the service at any moment, even after a process died.

`audit` reads the items and objects themselves, not through the database. It checks that

- every version has its bytes, their digest is the one in the version's row, and its note describes them;
- aliases point to versions that exist and are not deleted, and each version's note names exactly the aliases that
  serve it;
- an alias's history is complete, and its last entry agrees with the alias;
- the counter is at least the highest number ever seen, and no number was ever reused for other bytes;
- every object belongs to a row, to a file of a directory, or to a mark through which a later call finds it;
- a manifest's count equals the number of its users, and all its files exist.

The row of LATEST may lag behind its object until it is read (``healed``). ``settled`` demands that no mark is left.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from json import loads
from typing import Any

from artifact_rig import Store

from holdall.artifacts.home import Home
from holdall.core.objects import HeadObject
from holdall.core.values import Item
from holdall.errors import ObjectNotFoundError

__all__ = ["Seen", "State", "audit", "digest"]

Seen = dict[tuple[str, str], str]
"""The digest that each number of each artifact was first seen with; it must never change."""

_MANIFEST, _FILE = "holdall#ArtifactManifest#", "holdall#ArtifactFile#"


@dataclass
class State:
    """What a reader would find. Versions are given as digests, because their numbers may differ from run to run."""

    latest: dict[str, tuple[str, bool]] = field(default_factory=dict)
    versions: dict[str, list[tuple[str, bool]]] = field(default_factory=dict)
    aliases: dict[str, dict[str, list[tuple[str, int]]]] = field(default_factory=dict)
    objects: Counter[str] = field(default_factory=Counter)


def audit(
    store: Store, home: Home, *, seen: Seen | None = None, healed: bool = True, settled: bool = False
) -> State:
    """Check everything, and return the state found."""
    return _Audit(store, home, {} if seen is None else seen).run(healed or settled, settled)


class _Audit:
    def __init__(self, store: Store, home: Home, seen: Seen) -> None:
        self.home = home
        self.store = store
        self.seen = seen
        self.items: dict[str, dict[str, Item]] = {}
        for item in store.items(home):
            self.items.setdefault(home.pk_of(item), {})[home.sk_of(item)] = item
        self.objects = store.objects()
        self.names = sorted(
            {pk for pk in self.items if not pk.startswith(("__", "holdall#"))}
            | {pk[2 : -len("-meta")] for pk in self.items if pk.startswith("__") and pk.endswith("-meta")}
        )
        self.accounted: set[str] = set()
        self.manifests: Counter[str] = Counter()
        self.state = State()

    def run(self, healed: bool, settled: bool) -> State:
        for name in self.names:
            self.check_artifact(name, healed, settled)
        self.check_directories(settled)
        if not settled:  # LATEST can exist before its row and outlive it for a while
            self.accounted |= {key for key in self.objects if key.endswith("/LATEST")}
        unowned = sorted(self.objects.keys() - self.accounted)
        assert not unowned, f"nothing refers to {unowned}"
        self.state.objects = Counter(digest(body) for body in self.objects.values())
        return self.state

    # --- one artifact ---

    def check_artifact(self, name: str, healed: bool, settled: bool) -> None:
        rows, meta = self.items.get(name, {}), self.items.get(f"__{name}-meta", {})
        aliases = self.items.get(f"__{name}-alias", {})
        head = meta.get("head", {})
        served: dict[str, set[str]] = {}
        arms = {alias: self.read_arms(row, meta.get(f"alias#{alias}")) for alias, row in aliases.items()}
        for alias, each in arms.items():
            for sk, _ in each:
                assert sk in rows, f"{alias} serves {sk}, which does not exist"
                assert not rows[sk]["is_deleted"]["BOOL"], f"{alias} serves {sk}, which is deleted"
                served.setdefault(sk, set()).add(alias)
        for sk, row in rows.items():
            note = meta.get("head" if sk == "LATEST" else f"version#{sk}")
            assert set((note or {}).get("served_by", {}).get("SS", ())) == served.get(sk, set()), sk
            if sk == "LATEST":
                self.check_latest(name, row, head, healed)
            else:
                self.check_version(name, sk, row, note)
        for sk in [sk for sk in meta if sk.startswith("version#")]:
            assert sk.removeprefix("version#") in rows, f"{sk} describes a version that does not exist"
        self.check_marks(name, rows, meta, head, settled)
        self.check_histories(meta, arms)
        if rows:
            assert name in self.items.get("holdall#Artifacts", {}), f"{name} is not listed"
        shas = {sk: row["sha256"]["S"] for sk, row in rows.items()}
        self.state.versions[name] = [
            (shas[sk], row["is_deleted"]["BOOL"]) for sk, row in sorted(rows.items()) if sk != "LATEST"
        ]
        self.state.aliases[name] = {
            alias: [(shas[sk], weight) for sk, weight in each] for alias, each in arms.items()
        }

    def read_arms(self, row: Item, note: Item | None) -> list[tuple[str, int]]:
        assert note is not None
        for each in ("update_at", "version", "secondary_version", "secondary_version_weight"):
            assert row.get(each) == note.get(each), f"an alias's row and note differ in {each}"
        if "arms" in note:
            return [(arm["M"]["version"]["S"], int(arm["M"]["weight"]["N"])) for arm in note["arms"]["L"]]
        if "secondary_version" not in row:
            return [(row["version"]["S"], 100)]
        weight = int(row["secondary_version_weight"]["N"])
        return [(row["version"]["S"], 100 - weight), (row["secondary_version"]["S"], weight)]

    def check_version(self, name: str, sk: str, row: Item, note: Item | None) -> None:
        key, sha = self.home.object_key(name, sk), row["sha256"]["S"]
        assert key in self.objects, f"version {sk} has no bytes"
        assert digest(self.objects[key]) == sha, f"version {sk} does not have the digest in its row"
        assert self.seen.setdefault((name, sk), sha) == sha, f"the number {sk} was used twice"
        assert note is not None, f"version {sk} has no note"
        self.check_note(note, row, key)
        if "manifest" in note:
            self.manifests[note["manifest"]["S"]] += 1
        self.accounted.add(key)

    def check_latest(self, name: str, row: Item, head: Item, healed: bool) -> None:
        key = self.home.object_key(name, "LATEST")
        assert key in self.objects, "LATEST has no bytes"
        recorded = self.info(key).headers.metadata["artifact_sha256"]
        assert digest(self.objects[key]) == recorded, "LATEST does not have the digest in its metadata"
        if healed:
            assert row["sha256"]["S"] == recorded, "LATEST's row does not match its object"
            self.check_note(head, row, key)
            self.state.latest[name] = recorded, row["is_deleted"]["BOOL"]

    def check_note(self, note: Item, row: Item, key: str) -> None:
        info = self.info(key)
        assert (note["sha256"], note["update_at"]) == (row["sha256"], row["update_at"])
        assert (note["key"]["S"], note["etag"]["S"]) == (key, info.etag)
        assert int(note["size"]["N"]) == info.size
        assert ("deleted_at" in note) == row["is_deleted"]["BOOL"]
        ours = ("artifact_name", "artifact_sha256", "artifact_manifest")
        metadata = {each: value for each, value in info.headers.metadata.items() if each not in ours}
        noted = {each: value["S"] for each, value in note["metadata"]["M"].items()}
        assert noted == metadata, "the note's metadata is not the object's"
        if "artifact_manifest" in info.headers.metadata:
            assert note["manifest"] == note["sha256"]

    def check_marks(
        self, name: str, rows: dict[str, Item], meta: dict[str, Item], head: Item, settled: bool
    ) -> None:
        numbers = [int(sk) for sk in rows if sk != "LATEST"]
        numbers += [int(number) for each, number in self.seen if each == name]
        marks = [each for each in head if "|" in each or each.startswith("reserving_") or each == "purging"]
        marks += [each for each in meta if each.startswith("purge#")]
        assert not (settled and marks), f"marks are left: {marks}"
        if "LATEST" in rows:
            self.accounted.add(self.home.object_key(name, "LATEST"))
        for each in head:
            if each.startswith("reserved_"):
                number = head[each]["N"]
                numbers.append(int(number))
                self.accounted.add(self.home.object_key(name, number.zfill(6)))
            if each.startswith("next|"):
                self.manifests[head[each]["S"]] += 1
        for each, item in meta.items():
            if each.startswith("purge#"):
                self.accounted.add(item["key"]["S"])
        counter = int(head["counter"]["N"]) if "counter" in head else 0
        assert counter >= max(numbers, default=0), "the counter is behind"
        if "manifest" in head:
            assert "LATEST" in rows, "the head has a manifest, but LATEST does not exist"
            self.manifests[head["manifest"]["S"]] += 1

    def check_histories(self, meta: dict[str, Item], arms: dict[str, list[tuple[str, int]]]) -> None:
        entries: dict[str, list[tuple[int, Item]]] = {}
        for sk, item in sorted(meta.items()):
            if sk.startswith("history#"):
                _, alias, number = sk.split("#")
                entries.setdefault(alias, []).append((int(number), item))
        for alias in {sk.removeprefix("alias#") for sk in meta if sk.startswith("alias#")} | entries.keys():
            changes = int(meta[f"alias#{alias}"]["changes"]["N"])
            found = entries[alias]
            assert [number for number, _ in found] == list(range(1, changes + 1)), f"the history of {alias}"
            last = found[-1][1].get("arms")
            ends = None if last is None else [(a["L"][0]["S"], int(a["L"][1]["N"])) for a in last["L"]]
            now = [(sk.lstrip("0"), weight) for sk, weight in arms[alias]] if alias in arms else None
            assert ends == now, f"the history of {alias} does not end with its current arms"

    # --- directories ---

    def check_directories(self, settled: bool) -> None:
        pairs: Counter[str] = Counter()
        for pk, items in self.items.items():
            if not pk.startswith(_MANIFEST):
                continue
            manifest, record = pk.removeprefix(_MANIFEST), items["#"]
            refs = int(record["refs"]["N"])
            assert refs == self.manifests[manifest], f"a manifest has the wrong count {refs}"
            assert not (settled and refs == 0), "an unused manifest is left"
            if refs == 0:
                assert manifest in self.items["holdall#ArtifactSweep"], "no sweep will find a manifest"
            for sk, pair in items.items():
                if sk != "#" and "taken" not in pair:
                    pairs[sk.removeprefix("file#")] += 1
            if refs:
                self.check_files(manifest, items)
        missing = {each for each in self.manifests if _MANIFEST + each not in self.items}
        assert not missing, "a manifest has no record"
        for pk, items in self.items.items():
            if pk.startswith(_FILE) and "refs" in items["#"]:
                file = pk.removeprefix(_FILE)
                assert int(items["#"]["refs"]["N"]) == pairs[file], "a file has the wrong count"
                self.accounted.add(self.home.file_key(file))
                if "stored" in items["#"]:
                    self.accounted.add(items["#"]["stored"]["S"])
                if "moved" in items["#"]:
                    self.accounted.add(f"{self.home.file_key(file)}.{items['#']['born']['S']}")
                    self.accounted |= set(items["#"].get("leftovers", {}).get("SS", ()))

    def check_files(self, manifest: str, items: dict[str, Item]) -> None:
        assert "complete" in items["#"], "a manifest in use is not complete"
        bodies = [body for body in self.objects.values() if digest(body) == manifest]
        if not bodies:
            return  # the manifest is not stored yet
        for sha in _digests(loads(bodies[0])):
            assert f"file#{sha}" in items
            stored = self.items[_FILE + sha]["#"]["stored"]["S"]
            assert digest(self.objects[stored]) == sha, "a file of a directory has the wrong bytes"

    def info(self, key: str) -> Any:
        try:
            return self.store.service.send_blocking(HeadObject(self.home.service, key))
        except ObjectNotFoundError:
            raise AssertionError(f"{key} does not exist") from None


def _digests(manifest: Any) -> set[str]:
    """All digests that a manifest contains."""
    if isinstance(manifest, dict):
        return set().union(*map(_digests, manifest.values()))
    if isinstance(manifest, list):
        return set().union(*map(_digests, manifest))
    is_digest = isinstance(manifest, str) and len(manifest) == 64 and set(manifest) <= set("0123456789abcdef")
    return {manifest} if is_digest else set()


def digest(body: bytes) -> str:
    """The SHA-256 in hexadecimal digits."""
    return sha256(body).hexdigest()
