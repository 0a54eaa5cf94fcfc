"""Keys never collide in one table: models, unique values, jobs, claims, artifacts and attachments."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdall import Key, Model, SortKey
from holdall.artifacts.name import (
    check_alias,
    check_new_name,
    encode_alias_pk,
    encode_meta_pk,
    encode_version_sk,
)
from holdall.artifacts.record import NAMES, RolloutRecord, history_sk, note_sk
from holdall.attachments.home import Home, Owner
from holdall.core.schema import KeyAttribute
from holdall.errors import InvalidRequestError
from holdall.jobs.record import job_partition, locate_key, locate_occurrence, locate_queue
from holdall.tables.layout import Address, Layout

LAYOUT = Layout("A", "t", KeyAttribute("pk", "S"), KeyAttribute("sk", "S"))


class Alpha(Model):
    first: Key[str]


class AlphaBeta(Model):
    first: Key[str]
    second: Key[str]


class Gamma(Model):
    first: Key[str]
    place: SortKey[str]


class Delta(Model, collection="alpha"):
    first: Key[str]


class Epsilon(Model, collection="alpha"):
    first: Key[str]
    place: SortKey[str]


def _tricky(least: int = 1) -> st.SearchStrategy[str]:
    pieces = [
        "a",
        "b",
        "-",
        "_",
        "__",
        "#",
        "%",
        "LATEST",
        "alias",
        "meta",
        "-alias",
        "-meta",
        "000001",
        "Alpha",
        "alpha",
        "Delta#",
        "holdall",
        "Attachment",
        "Blob",
    ]
    return st.lists(st.sampled_from(pieces), min_size=least, max_size=5).map("".join)


def _of_artifacts(name: str, alias: str, number: int) -> list[tuple[Any, tuple[str, str]]]:
    sk, meta = encode_version_sk(number), encode_meta_pk(name)
    return [
        (("artifact", name, "LATEST"), (name, "LATEST")),
        (("artifact", name, sk), (name, sk)),
        (("alias", name, alias), (encode_alias_pk(name), alias)),
        (("head", name), (meta, note_sk("LATEST"))),
        (("note", name, sk), (meta, note_sk(sk))),
        (("alias note", name, alias), (meta, f"alias#{alias}")),
        (("history", name, alias, number), (meta, history_sk(alias, number))),
        (("rollout", name, alias), (meta, RolloutRecord.prefix + alias)),
        (("purge", name, sk), (meta, f"purge#{sk}")),
        (("listed", name), (NAMES, name)),
    ]


def _of_models(first: str, second: str) -> list[tuple[Any, tuple[str, str]]]:
    keys: list[Any] = [
        Alpha.key(first=first),
        AlphaBeta.key(first=first, second=second),
        Gamma.key(first=first, place=second),
        Epsilon.key(first=first, place=second),
    ]
    return [
        (("Delta", first), Delta.key(first=first).encoded),
        *(
            ((key.model.__name__, first, second if index else ""), key.encoded)
            for index, key in enumerate(keys)
        ),
    ]


def _pair(address: Address) -> tuple[str, str]:
    return LAYOUT.logical(address.attributes)


def _of_jobs(queue: str, key: str) -> list[tuple[Any, tuple[str, str]]]:
    now = datetime(2026, 11, 15, tzinfo=UTC)
    return [
        (("job", queue, "x"), (job_partition(queue, "0"), "x")),
        (("key", queue, key), _pair(locate_key(LAYOUT, queue, key))),
        (("occurrence", queue), _pair(locate_occurrence(LAYOUT, queue, "s", now))),
        (("queue", queue), _pair(locate_queue(LAYOUT, queue))),
    ]


def _of_attachments(kind: str, id: str, name: str, number: int) -> list[tuple[Any, tuple[str, str]]]:
    """The keys of an owner and a blob, whose ids and names are any text without the separator."""
    home, owner = Home(LAYOUT, "ActiveStorage", "#"), Owner(kind, id)
    hour = datetime(2026, 11, 15, number, tzinfo=UTC)
    blob, attachment = f"{id}{number}", f"{name}{number}"
    places = {
        ("blob", blob): home.blob(blob),
        ("variant", blob, name): home.variant(blob, name),
        ("reference", blob, attachment): home.reference(blob, attachment),
        ("attachment", owner, name, attachment): home.attachment(owner, name, attachment),
        ("slot", owner, name): home.slot(owner, name),
        ("upload", blob): home.upload(blob),
        ("marker", hour, blob): home.marker(hour, blob),
        ("hour", hour): home.hour(hour),
        ("digest", kind, id): home.content(kind, id),
    }
    return [(identity, _pair(address)) for identity, address in places.items()]


@given(st.lists(st.tuples(_tricky(), _tricky(), _tricky(), st.integers(1, 3)), min_size=2, max_size=6))
def test_different_items_never_have_the_same_key(drawn: list[tuple[str, str, str, int]]) -> None:
    found: dict[tuple[str, str], Any] = {}
    for first, second, third, number in drawn:
        things = [
            *_of_models(first, second),
            *_of_jobs(third.replace("#", "").replace("%", "") or "q", second),
        ]
        with suppress(InvalidRequestError):  # invalid names
            things += _of_artifacts(check_new_name(first), check_alias(second), number)
        plain = [each.replace("#", "") or "x" for each in (first, second, third)]
        things += _of_attachments(plain[0], plain[1], plain[2], number)
        for identity, key in things:
            assert found.setdefault(key, identity) == identity
