"""Page tokens: signed for one query, with a secret that can be rotated; they are not encrypted."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st
from queries_rig import SECRET, Db, arrange, everywhere, fresh, in_memory
from rig.torture import start_source

from holdall import Database, Index, Key, Model, SortKey, col
from holdall.core.signature import sign, verify
from holdall.errors import ConfigurationError, InvalidTokenError

NOW = datetime(2026, 11, 15, tzinfo=UTC)
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


class Letter(Model, indexes=[Index("by_tone", key=["tone"], sort_key=["number"])]):
    box: Key[str]
    number: SortKey[int]
    tone: str = "kind"


class Parcel(Model):
    box: Key[str]
    number: SortKey[int]


async def create_box(db: Db) -> str:
    name = fresh("box")
    await arrange(db, *(Letter(box=name, number=number, tone=name) for number in range(5)))
    return name


# --- tokens and queries -----------------------------------------------------------------------------------


@everywhere
async def test_a_token_belongs_to_one_query(db: Db) -> None:
    name = await create_box(db)
    token = (await db.query(Letter, box=name).page(2)).next
    assert token is not None
    others: list[Any] = [
        db.query(Letter, box=fresh("other")),
        db.query(Letter, box=name, reverse=True),
        db.query(Letter, box=name, sort=Letter.number > 0),
        db.query(Letter, box=name, where=col(Letter.tone) == name),
        db.query(Letter, index="by_tone", tone=name),
        db.query(Parcel, box=name),
    ]
    for other in others:
        with pytest.raises(InvalidTokenError, match="belongs to another query"):
            await other.page(2, after=token)
    same: list[Any] = [
        db.query(Letter, box=name),
        db.query(Letter, box=name, consistent=False),
        db.query(Letter, box=name, only=[Letter.tone]),
        db.query(Letter, box=name, lock=False),
        db.query(Letter, box=name, limit=4),
    ]
    for query in same:
        assert [letter.number for letter in (await query.page(2, after=token)).items] == [2, 3]


@in_memory
async def test_a_token_is_valid_for_another_condition_with_the_same_range(db: Db) -> None:
    name = await create_box(db)
    token = (await db.query(Letter, box=name, sort=(Letter.number >= 0) & (Letter.number <= 9)).page(2)).next
    page = await db.query(Letter, box=name, sort=Letter.number.between(0, 9)).page(9, after=token)
    assert [letter.number for letter in page.items] == [2, 3, 4]


@in_memory
async def test_no_character_of_a_token_can_be_changed(db: Db) -> None:
    name = await create_box(db)
    query = db.query(Letter, box=name)
    token = (await query.page(2)).next
    assert token is not None
    for place, character in enumerate(token):
        others = ALPHABET if place + 1 in (len(token), token.index(".")) else "AZz9.=- é\0"
        for other in others:
            if other != character:
                with pytest.raises(InvalidTokenError):
                    await query.page(2, after=token[:place] + other + token[place + 1 :])
    for changed in (
        token[:-1],
        token[1:],
        token + "A",
        token + "=",
        f" {token}",
        token + "\n",
        token.lower(),
    ):
        with pytest.raises(InvalidTokenError):
            await query.page(2, after=changed)


@in_memory
async def test_other_values_are_refused_as_tokens(db: Db) -> None:
    query = db.query(Letter, box=fresh())
    for odd in ("", ".", "..", "x", "x.y", "a.b.c", "\0", "é.é", "=.=", b"x.y", 5, ["x.y"], object()):
        with pytest.raises(InvalidTokenError):
            await query.page(2, after=odd)  # type: ignore[arg-type]


@in_memory
async def test_a_token_is_signed_but_not_encrypted(db: Db) -> None:
    """A client can read the key of the last row in it, as the guide explains."""
    name = await create_box(db)
    token = (await db.query(Letter, box=name).page(2)).next
    assert token is not None
    body = token.partition(".")[0]
    assert f"Letter#{name}" in urlsafe_b64decode(body + "=" * (-len(body) % 4)).decode()
    assert SECRET not in token


# --- secrets ----------------------------------------------------------------------------------------------

OLD, NEW, OTHER = "the-old-secret-000000", "the-new-secret-111111", "another-secret-22222"


@pytest.fixture
def store(tmp_path: Path) -> str:
    url = f"embedded:{tmp_path / 'letters.db'}"
    with Database(url, durability="normal", secret=OLD) as db, db.transaction() as tx:
        for number in range(5):
            tx.create(Letter, box="a", number=number)
    return url


def fetch_token(url: str, *secrets: str) -> str:
    with Database(url, secret=list(secrets)) as db:
        token = db.query(Letter, box="a").page(2).next
        assert token is not None
        return token


def read_numbers_after(url: str, token: str, *secrets: str) -> list[int]:
    with Database(url, secret=list(secrets)) as db:
        return [letter.number for letter in db.query(Letter, box="a").page(2, after=token).items]


def test_a_token_signed_with_another_secret_is_refused(store: str) -> None:
    with pytest.raises(InvalidTokenError):
        read_numbers_after(store, fetch_token(store, OLD), OTHER)


@pytest.mark.parametrize("database_secret", [OLD, None])
def test_a_page_can_have_its_own_secret(store: str, database_secret: str | None) -> None:
    with Database(store, secret=database_secret) as db:
        query = db.query(Letter, box="a")
        first = query.page(2, secret=NEW)
        assert [letter.number for letter in query.page(2, after=first.next, secret=NEW).items] == [2, 3]
        for secret in (OTHER, None):
            with pytest.raises((InvalidTokenError, ConfigurationError)):
                query.page(2, after=first.next, secret=secret)
        with pytest.raises(ConfigurationError, match="the page's secret is too short"):
            query.page(2, secret="short")


def test_a_secret_can_be_replaced_without_breaking_existing_tokens(store: str) -> None:
    token = fetch_token(store, OLD)
    assert read_numbers_after(store, token, NEW, OLD) == [2, 3]
    with pytest.raises(InvalidTokenError):
        read_numbers_after(store, token, NEW)


def test_the_first_secret_signs(store: str) -> None:
    token = fetch_token(store, NEW, OLD)
    assert read_numbers_after(store, token, NEW) == [2, 3]
    with pytest.raises(InvalidTokenError):
        read_numbers_after(store, token, OLD)


def test_pages_need_a_secret(store: str) -> None:
    token = fetch_token(store, OLD)
    with Database(store) as db:
        query = db.query(Letter, box="a")
        for size, after in ((9, None), (2, None), (2, token)):
            with pytest.raises(ConfigurationError, match="need a secret") as caught:
                query.page(size, after=after)
            assert "HOLDALL_SECRET" in str(caught.value)


_PROGRAM = """
import sys
from holdall import Database, Key, Model, SortKey, col
class Letter(Model):
    box: Key[str]
    number: SortKey[int]
    tone: str = "kind"
url, secret, token = sys.argv[1:]
with Database(url, secret=secret) as db:
    query = db.query(Letter, box="a", where=col(Letter.tone).in_("kind", "cold"), sort=Letter.number >= 0)
    page = query.page(2, after=token or None)
    print(*(letter.number for letter in page.items), page.next)
"""


def test_a_token_is_valid_in_another_process(store: str) -> None:
    token, seen = "", list[int]()
    for _ in range(3):
        with start_source(_PROGRAM, store, OLD, token) as program:
            (line,) = program.finish()
        *found, token = line.split()
        seen += map(int, found)
    assert (seen, token) == ([0, 1, 2, 3, 4], "None")


# --- signatures -------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab\0é"), inner, max_size=3),
    max_leaves=8,
)


@hypothesis_given(JSON)
def test_verify_returns_the_signed_value(payload: Any) -> None:
    token = sign([OLD], "page", payload)
    assert set(token) <= {*ALPHABET, "."}
    assert verify([NEW, OLD], "page", token, now=NOW) == payload


@hypothesis_given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_an_unsigned_text_is_not_a_token(text: str) -> None:
    with pytest.raises(InvalidTokenError):
        verify([OLD], "page", text, now=NOW)


@pytest.mark.parametrize("purpose", ["", "pag", "pages", "page\0", "Page"])
def test_a_token_is_valid_for_one_purpose(purpose: str) -> None:
    with pytest.raises(InvalidTokenError):
        verify([OLD], purpose, sign([OLD], "page", 1), now=NOW)


def test_a_token_can_expire() -> None:
    token = sign([OLD], "page", "x", expires=NOW)
    assert verify([OLD], "page", token, now=NOW - timedelta(seconds=1)) == "x"
    with pytest.raises(InvalidTokenError, match="has expired"):
        verify([OLD], "page", token, now=NOW)


def test_the_expiry_of_a_token_is_signed_too() -> None:
    body = sign([OLD], "page", "x", expires=NOW).partition(".")[0]
    ended = json.loads(urlsafe_b64decode(body + "=="))
    assert ended == [int(NOW.timestamp()), "x"]
    endless, signature = sign([OLD], "page", "x").split(".")
    assert endless != body
    with pytest.raises(InvalidTokenError):
        verify([OLD], "page", f"{body}.{signature}", now=NOW)


def test_nothing_is_signed_or_verified_without_a_secret() -> None:
    with pytest.raises(ConfigurationError):
        sign([], "page", 1)
    with pytest.raises(ConfigurationError):
        verify([], "page", sign([OLD], "page", 1), now=NOW)
