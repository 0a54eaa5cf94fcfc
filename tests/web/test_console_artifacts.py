"""The console's pages of artifacts: what they show, and how a visitor changes the split of an alias."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from console_artifact_rig import publish_model
from console_rig import Visitor, make_visitor, open_visitor

from holdall import Database
from holdall.web.console.alias import list_arms
from holdall.web.console.template import format_duration, format_percent

NAME = "console-model"
LIVE = f"/artifacts/alias?name={NAME}&alias=live"
MOVE = f"/artifacts/alias/move?name={NAME}&alias=live"
BACK = f"/artifacts/alias/roll-back?name={NAME}&alias=live"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with Database("memory:", files=f"file:{tmp_path}") as found:
        publish_model(found)
        yield found


@pytest.fixture
def visitor(db: Database) -> Visitor:
    return open_visitor(db, read_only=False)


def read_shares(db: Database, alias: str = "live") -> dict[str, float]:
    """The share of each version that an alias serves."""
    return db.artifacts.alias(NAME, alias).shares


def test_a_database_without_artifacts_has_an_empty_page() -> None:
    with Database("memory:") as db:
        assert "No artifacts" in open_visitor(db).get("/artifacts").text


def test_artifacts_are_listed_with_the_splits_of_their_aliases(visitor: Visitor) -> None:
    page = visitor.get("/artifacts").text
    assert 'aria-label="live: 2 90%, 3 10%"' in page
    assert f"/artifacts/artifact?name={NAME}" in page
    assert f"/artifacts/artifact?name={NAME}" not in visitor.get("/artifacts?prefix=other").text


def test_a_long_list_has_pages(visitor: Visitor, db: Database) -> None:
    for number in range(25):
        db.artifacts.put(f"many-{number:02}", b"x")
    page = visitor.get("/artifacts?prefix=many").text
    assert page.count("/artifacts/artifact?name=many-") == 24
    assert 'href="/console/artifacts?prefix=many&amp;after=many-23" rel="next"' in page
    page = visitor.get("/artifacts?prefix=many&after=many-23").text
    assert re.findall(r"artifact\?name=(many-\d+)", page) == ["many-24"]
    assert "Next page" not in page
    assert "First page" in page
    assert "No other artifact." in visitor.get("/artifacts?prefix=many&after=many-24").text
    assert visitor.get("/artifacts?prefix=many&after=x").status_code == 422


def test_many_aliases_have_pages(visitor: Visitor, db: Database) -> None:
    db.artifacts.put("split", b"x")
    for number in range(50):
        db.artifacts.put_alias("split", f"alias-{number:02}")
    address = "/artifacts/artifact?name=split"
    page = visitor.get(address).text
    assert len(set(re.findall(r"alias=(alias-\d+)", page))) == 48
    assert "Aliases 1 to 48 of 50" in page
    assert "and 38 other aliases" in page
    page = visitor.get(f"{address}&aliases=48").text
    assert "Aliases 49 to 50 of 50" in page
    assert "First aliases" in page
    for wrong in ("x", "-1", "50", "9" * 30, "²"):
        assert "Aliases 1 to 48 of 50" in visitor.get(f"{address}&aliases={wrong}").text


def test_versions_are_shown_newest_first_page_by_page(visitor: Visitor, db: Database) -> None:
    for number in range(30):
        db.artifacts.put("long", f"{number}".encode())
        db.artifacts.publish("long")
    db.artifacts.delete("long", 30)
    page = visitor.get("/artifacts/artifact?name=long").text
    assert [f">Version {number}<" in page for number in (30, 29, 6, 5)] == [False, True, True, False]
    assert ">LATEST<" in page
    older = visitor.get("/artifacts/artifact?name=long&before=6").text
    assert 'before=6" rel="next"' in page
    assert ">Version 5<" in older
    assert ">Version 6<" not in older
    page = visitor.get("/artifacts/artifact?name=long&deleted=1").text
    assert ">Version 30<" in page
    assert 'class="badge bad">deleted' in page


def test_a_version_shows_the_aliases_that_serve_it(visitor: Visitor) -> None:
    page = visitor.get(f"/artifacts/artifact?name={NAME}").text
    assert "live</bdi> 10%" in page
    assert "team: ml" in page


def test_an_alias_shows_its_history_and_its_rollout(visitor: Visitor) -> None:
    page = visitor.get(LIVE).text
    assert "a &lt;try&gt;" in page
    assert 'aria-label="Change 1: 1 100%"' in page
    assert "Rollout</h2>" not in page
    page = visitor.get(f"/artifacts/alias?name={NAME}&alias=next").text
    assert "From version 2 to version 3: 5 per cent" in page
    assert "1 hour" in page
    assert "until approved" in page


def test_a_deleted_alias_shows_its_history_and_can_be_restored(visitor: Visitor, db: Database) -> None:
    db.artifacts.delete_alias(NAME, "live")
    assert "the alias was deleted" in visitor.get(LIVE).text
    assert visitor.post(BACK).status_code == 303
    assert read_shares(db) == {"2": 0.9, "3": 0.1}


def test_a_split_is_moved_after_a_confirmation(visitor: Visitor, db: Database) -> None:
    page = visitor.get(f"{MOVE}&weight-2=1&weight-3=3&weight-1=").text
    assert 'aria-label="Now: 2 90%, 3 10%"' in page
    assert 'aria-label="Then: 2 25%, 3 75%"' in page
    form = {"weight-2": "1", "weight-3": "3"}
    assert visitor.post(MOVE, form, csrf="x").status_code == 403
    assert read_shares(db) == {"2": 0.9, "3": 0.1}
    assert visitor.post(MOVE, {**form, "reason": "better"}).status_code == 303
    assert read_shares(db) == {"2": 0.25, "3": 0.75}
    change = db.artifacts.alias_history(NAME, "live")[0]
    assert (change.by, change.reason) == ("console", "better")


def test_the_confirmation_of_a_move_warns_that_it_ends_a_rollout(visitor: Visitor) -> None:
    page = visitor.get(f"/artifacts/alias/move?name={NAME}&alias=next&weight-1=1").text
    assert "It ends the rollout in progress." in page
    assert "It ends the rollout" not in visitor.get(f"{MOVE}&weight-1=1").text


def test_nothing_moves_if_the_alias_has_changed_since_the_page_was_shown(
    visitor: Visitor, db: Database
) -> None:
    seen = db.artifacts.alias(NAME, "live").revision or ""
    db.artifacts.put_alias(NAME, "live", 3)
    for address, form in ((MOVE, {"weight-1": "1"}), (BACK, {})):
        reply = visitor.post(address, {**form, "revision": seen})
        assert reply.status_code == 409
        assert "it has changed since you read it" in reply.text
    assert read_shares(db) == {"3": 1.0}


def test_one_click_rolls_back(visitor: Visitor, db: Database) -> None:
    assert visitor.post(BACK, csrf="x").status_code == 403
    assert visitor.post(BACK).status_code == 303
    assert read_shares(db) == {"1": 1.0}
    assert visitor.post(BACK, {"to": "2"}).status_code == 303
    assert read_shares(db) == {"2": 0.9, "3": 0.1}
    assert visitor.post(BACK, {"to": "99"}).status_code == 422


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({}, 422),
        ({"weight-1": "0"}, 422),
        ({"weight-1": "-1"}, 422),
        ({"weight-1": "1.5"}, 422),
        ({"weight-1": "\u0663"}, 422),
        ({"weight-1": "9" * 30}, 422),
        ({"weight-9": "1"}, 404),
        ({"weight-<b>": "1"}, 404),
        ({"weight-": "1"}, 404),
    ],
)
def test_an_invalid_split_is_rejected(
    visitor: Visitor, db: Database, form: dict[str, str], status: int
) -> None:
    query = "".join(f"&{key}={value}" for key, value in form.items())
    assert visitor.get(f"{MOVE}{query}").status_code in (status, 422)
    assert visitor.post(MOVE, form).status_code in (status, 422)
    assert read_shares(db) == {"2": 0.9, "3": 0.1}


def test_a_protected_alias_is_not_changed(visitor: Visitor, db: Database) -> None:
    page = visitor.get(f"/artifacts/alias?name={NAME}&alias=kept").text
    assert "A protected alias cannot be changed here." in page
    assert "alias/move" not in page
    assert visitor.post(f"/artifacts/alias/move?name={NAME}&alias=kept", {"weight-2": "1"}).status_code == 403
    assert read_shares(db, "kept") == {"1": 1.0}


def test_a_read_only_console_moves_nothing(db: Database) -> None:
    reader = open_visitor(db)
    page = reader.get(LIVE).text
    assert "alias/move" not in page
    assert "alias/roll-back" not in page
    for reply in (
        reader.get(f"{MOVE}&weight-1=1"),
        reader.post(MOVE, {"weight-1": "1"}),
        reader.post(BACK),
    ):
        assert reply.status_code == 403
        assert "This console is read-only" in reply.text
    assert read_shares(db) == {"2": 0.9, "3": 0.1}


def test_artifacts_need_a_session(db: Database) -> None:
    stranger = make_visitor(db)
    for path in ("/artifacts", f"/artifacts/artifact?name={NAME}", LIVE, MOVE):
        assert stranger.get(path).headers["location"] == "/console/sign-in"
    assert stranger.post(BACK).status_code == 403


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/artifacts/artifact", 422),
        ("/artifacts/artifact?name=none", 404),
        ("/artifacts/artifact?name=__x", 422),
        (f"/artifacts/artifact?name={NAME}&before=x", 422),
        (f"/artifacts/alias?name={NAME}&alias=none", 404),
        (f"/artifacts/alias?name={NAME}", 422),
        (f"/artifacts/alias/move?name={NAME}&alias=none&weight-1=1", 404),
    ],
)
def test_an_invalid_address_is_rejected(visitor: Visitor, path: str, status: int) -> None:
    assert visitor.get(path).status_code == status


def test_a_version_has_the_same_colour_in_all_bars() -> None:
    assert list_arms({"10": 0.5, "9": 0.3, "LATEST": 0.2}) == [
        ("9", 0.3, 3),
        ("10", 0.5, 4),
        ("LATEST", 0.2, 5),
    ]
    tones = [tone for _, _, tone in list_arms({str(6 * number): 0.1 for number in range(1, 9)})]
    assert sorted(set(tones[:6])) == list(range(6))


def test_shares_and_durations_are_short() -> None:
    assert [format_percent(share) for share in (1.0, 0.5, 1 / 3, 0.0)] == ["100%", "50%", "33.3%", "0%"]
    texts = [format_duration(seconds) for seconds in (86400, 7200, 60, 90, 1, 0)]
    assert texts == ["1 day", "2 hours", "1 minute", "90 seconds", "1 second", "0 seconds"]


# --- rollouts -------------------------------------------------------------------------------------------------


def steer(visitor: Visitor, move: str, alias: str = "next", **form: str) -> int:
    """Open the confirmation page of a move, and send its form; return the status."""
    address = f"/artifacts/rollout/{move}?name={NAME}&alias={alias}"
    page = visitor.get(address).text
    hidden = dict(re.findall(r'type="hidden" name="(id|revision)" value="([^"]*)"', page))
    return visitor.post(address, {**hidden, **form}).status_code


def test_a_rollout_is_paused_resumed_advanced_and_aborted(visitor: Visitor, db: Database) -> None:
    for move, state, served in (
        ("pause", "paused", {"2": 0.95, "3": 0.05}),
        ("resume", "running", {"2": 0.95, "3": 0.05}),
        ("advance", "waiting", {"2": 0.5, "3": 0.5}),
        ("pause", "paused", {"2": 0.5, "3": 0.5}),
        ("abort", "aborted", {"2": 1.0}),
    ):
        assert steer(visitor, move, reason="as <planned>") == 303
        assert (db.artifacts.rollout(NAME, "next").state, read_shares(db, "next")) == (state, served)
    change = db.artifacts.alias_history(NAME, "next")[0]
    assert (change.by, change.reason) == ("console", "as <planned>")


def test_the_page_offers_only_moves_that_are_possible(visitor: Visitor, db: Database) -> None:
    def list_offers() -> list[str]:
        return re.findall(
            r"/artifacts/rollout/(\w+)\?", visitor.get(f"/artifacts/alias?name={NAME}&alias=next").text
        )

    assert list_offers() == ["advance", "pause", "abort"]
    db.artifacts.pause_rollout(NAME, "next")
    assert list_offers() == ["resume", "abort"]
    for move in ("pause", "advance"):
        assert visitor.get(f"/artifacts/rollout/{move}?name={NAME}&alias=next").status_code == 409
    db.artifacts.abort_rollout(NAME, "next")
    assert list_offers() == []


def test_the_confirmation_page_explains_what_the_move_does(visitor: Visitor, db: Database) -> None:
    def explain(move: str) -> str:
        return visitor.get(f"/artifacts/rollout/{move}?name={NAME}&alias=next").text

    assert "Version 3 gets 50 per cent of the traffic at once, until the next stage is approved." in explain(
        "advance"
    )
    assert "Version 3 keeps 5 per cent of the traffic" in explain("pause")
    assert "version 2 gets all traffic at once" in explain("abort")
    assert db.artifacts.advance_rollout(NAME, "next").state == "waiting"
    assert "Version 3 gets all traffic at once, and the rollout is done." in explain("advance")


def test_a_move_is_refused_if_the_rollout_has_changed_since_the_visitor_saw_it(
    visitor: Visitor, db: Database
) -> None:
    seen = db.artifacts.rollout(NAME, "next")
    form = {"id": seen.id, "revision": seen.revision}
    address = f"/artifacts/rollout/%s?name={NAME}&alias=next"
    db.artifacts.advance_rollout(NAME, "next")
    assert visitor.post(address % "advance", form).status_code == 409
    assert db.artifacts.rollout(NAME, "next").percent == 50, "the visitor did not approve the next stage"
    db.artifacts.abort_rollout(NAME, "next")
    db.artifacts.start_rollout(NAME, "next", 1, [(5, None)])
    for move in ("advance", "pause", "resume", "abort"):
        assert visitor.post(address % move, form).status_code == 409
        assert visitor.post(address % move, {}).status_code == 409
    assert db.artifacts.rollout(NAME, "next").percent == 5


def test_the_rollout_of_a_protected_alias_can_only_be_paused_and_resumed(
    visitor: Visitor, db: Database
) -> None:
    db.artifacts.start_rollout(NAME, "kept", 2, [(5, 60)], allow_protected=True)
    page = visitor.get(f"/artifacts/alias?name={NAME}&alias=kept").text
    assert re.findall(r"/artifacts/rollout/(\w+)\?", page) == ["pause"]
    assert [steer(visitor, move, "kept") for move in ("advance", "abort")] == [403, 403]
    assert steer(visitor, "pause", "kept") == 303
    assert db.artifacts.rollout(NAME, "kept").state == "paused"


def test_a_move_needs_permission_a_csrf_token_and_a_known_name(visitor: Visitor, db: Database) -> None:
    address = f"/artifacts/rollout/%s?name={NAME}&alias=%s"
    reader = open_visitor(db)
    page = reader.get(f"/artifacts/alias?name={NAME}&alias=next").text
    assert "/artifacts/rollout/" not in page
    assert steer(reader, "abort") == 403
    assert visitor.post(address % ("abort", "next"), csrf="x").status_code == 403
    assert visitor.get(address % ("explode", "next")).status_code == 404
    assert visitor.post(address % ("explode", "next")).status_code == 404
    assert visitor.get(address % ("abort", "live")).status_code == 409, "it never had a rollout"
    assert db.artifacts.rollout(NAME, "next").state == "running"


# --- starting a rollout -----------------------------------------------------------------------------------------

START = f"/artifacts/roll-out?name={NAME}&alias=%s"
STAGES = {"version": "3", "percent-0": "10", "time-0": "2", "unit-0": "hours"}


@pytest.fixture
def single(db: Database) -> str:
    """An alias that serves one version."""
    db.artifacts.put_alias(NAME, "single", 1)
    return START % "single"


def test_a_rollout_is_started(visitor: Visitor, db: Database, single: str) -> None:
    assert "Roll out in stages" in visitor.get(f"/artifacts/alias?name={NAME}&alias=single").text
    assert re.findall(r'<option value="(\d+)"', visitor.get(single).text) == ["3", "2"]
    form = {**STAGES, "percent-1": "50", "unit-1": "until approved", "reason": "a <try>", "approve": "on"}
    assert visitor.post(single, form, csrf="x").status_code == 403
    assert visitor.post(single, form).status_code == 303
    rollout = db.artifacts.rollout(NAME, "single")
    assert rollout.stages == ((10, 7200.0), (50, None), (100, None))
    assert (rollout.by, rollout.reason, rollout.approve) == ("console", "a <try>", True)
    page = visitor.get(f"/artifacts/alias?name={NAME}&alias=single").text
    assert "Roll out in stages" not in page
    assert visitor.post(single, form).status_code == 409


@pytest.mark.parametrize(
    "wrong",
    [
        {"percent-0": ""},
        {"percent-0": "100", "unit-0": "days"},
        {"percent-0": "1.5"},
        {"percent-0": "-5"},
        {"time-0": ""},
        {"time-0": "9" * 30},
        {"unit-0": "<u>"},
        {"percent-1": "5", "time-1": "1", "unit-1": "days"},
        {"version": "LATEST"},
        {"version": "<u>"},
    ],
)
def test_the_error_of_an_invalid_rollout_is_shown_above_its_form(
    visitor: Visitor, db: Database, single: str, wrong: dict[str, str]
) -> None:
    reply = visitor.post(single, {**STAGES, "reason": "typed <i>", **wrong})
    assert reply.status_code == 422
    assert 'role="alert"' in reply.text
    assert "typed &lt;i&gt;" in reply.text
    assert "<u>" not in reply.text
    assert read_shares(db, "single") == {"1": 1.0}


def test_a_rollout_is_refused_read_only_and_for_an_unsuitable_or_changed_alias(
    visitor: Visitor, db: Database, single: str
) -> None:
    reader = open_visitor(db)
    assert (reader.get(single).status_code, reader.post(single, STAGES).status_code) == (403, 403)
    assert visitor.post(START % "live", STAGES).status_code == 409, "it serves two versions"
    assert visitor.post(START % "kept", STAGES).status_code == 403, "it is protected"
    assert visitor.post(START % "none", STAGES).status_code == 404
    for alias in ("live", "kept", "next"):
        page = visitor.get(f"/artifacts/alias?name={NAME}&alias={alias}").text
        assert "/artifacts/roll-out" not in page
    revision = db.artifacts.alias(NAME, "single").revision or ""
    db.artifacts.put_alias(NAME, "single", 2)
    assert visitor.post(single, {**STAGES, "revision": revision}).status_code == 409
    assert read_shares(db, "single") == {"2": 1.0}
