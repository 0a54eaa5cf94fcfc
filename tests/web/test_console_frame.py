"""The console as a whole: signing in, sessions, rejected requests, and the headers of every reply."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from console_rig import TOKEN, make_visitor, open_visitor
from web_rig import ask_app

from holdall import Database
from holdall.errors import ConfigurationError
from holdall.web import Console, create_app
from holdall.web.console.session import Sessions
from holdall.web.console.settings import SignInLinks


@pytest.fixture(scope="module")
def db() -> Iterator[Database]:
    with Database("memory:") as found:
        yield found


def test_the_console_is_off_unless_enabled(db: Database) -> None:
    assert ask_app(create_app(db), "GET", "/console/sign-in").status_code == 404


def test_pages_redirect_to_the_sign_in_form_until_the_visitor_signs_in(db: Database) -> None:
    visitor = make_visitor(db)
    for path in ("/", "/models", "/models/console_rig:Order"):
        reply = visitor.get(path)
        assert (reply.status_code, reply.headers["location"]) == (303, "/console/sign-in")
    assert visitor.get("/sign-in").status_code == 200
    visitor.sign_in()
    assert visitor.get("/").status_code == 200
    assert visitor.get("/sign-in").headers["location"] == "/console/"


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN.upper(), "é\x00\U0001f600"])
def test_a_wrong_token_is_rejected(db: Database, token: str) -> None:
    visitor = make_visitor(db)
    reply = visitor.post("/sign-in", {"token": token})
    assert reply.status_code == 403
    assert "This is not the console&#39;s token." in reply.text
    assert "set-cookie" not in reply.headers


def test_the_cookie_is_hidden_from_scripts_and_limited_to_the_console(db: Database) -> None:
    visitor = make_visitor(db)
    cookie = visitor.post("/sign-in", {"token": TOKEN}).headers["set-cookie"].lower()
    assert {"httponly", "samesite=strict", "path=/console", "max-age=43200"} <= set(cookie.split("; "))
    assert "secure" not in cookie
    reply = ask_app(visitor.app, "POST", "https://x/console/sign-in", data={"token": TOKEN})
    assert "secure" in reply.headers["set-cookie"].lower()


def test_consoles_on_two_ports_of_one_host_keep_their_sessions_apart(db: Database) -> None:
    """A browser keeps one cookie jar per host, for all ports."""
    consoles = [Console(token=f"{TOKEN}{number}") for number in range(2)]
    apps = [create_app(db, console=console) for console in consoles]
    jar: dict[str, str] = {}
    for app, console in zip(apps, consoles, strict=True):
        jar.update(ask_app(app, "POST", "/console/sign-in", data={"token": console.token}).cookies)
    headers = {"cookie": "; ".join(f"{name}={value}" for name, value in jar.items())}
    assert [ask_app(app, "GET", "/console/", headers=headers).status_code for app in apps] == [200, 200]


def test_pages_show_the_file_name_of_an_embedded_database(db: Database, tmp_path: Path) -> None:
    """The console of a database and that of its copy show the same table; the file name tells them apart."""
    with Database(f"embedded:{tmp_path}/<b>copy.db") as copy:
        copy.table.create()
        page = make_visitor(copy).sign_in().get("/").text
    assert "in &lt;b&gt;copy.db</span>" in page
    assert str(tmp_path) not in page
    assert "copy.db" not in make_visitor(db).sign_in().get("/").text


def test_forged_and_expired_cookies_and_those_of_another_token_are_rejected() -> None:
    sessions = Sessions(TOKEN, timedelta(hours=1))
    cookie = sessions.begin()
    session = sessions.read(cookie)
    assert session is not None
    assert Sessions(TOKEN, timedelta(hours=1)).read(cookie) == session, "another process with the same token"
    id, until, mac = cookie.split(".")
    for wrong in (
        "",
        "..",
        f"{id}.{until}.",
        f"{id}.{int(until) + 1}.{mac}",
        f"é.{until}.{mac}",
        f"{cookie}.x",
    ):
        assert sessions.read(wrong) is None
    assert Sessions(f"{TOKEN}!", timedelta(hours=1)).read(cookie) is None
    expired = Sessions(TOKEN, timedelta(seconds=-1))
    assert expired.read(expired.begin()) is None
    sessions.end(session)
    assert sessions.read(cookie) is None


def test_an_expired_session_gets_the_sign_in_form_and_cannot_change_anything(db: Database) -> None:
    visitor = open_visitor(db)
    visitor.cookie = Sessions(TOKEN, timedelta(seconds=-1)).begin()
    assert visitor.get("/").headers["location"] == "/console/sign-in"
    assert visitor.post("/sign-out", csrf="x").status_code == 403


def test_a_link_signs_in_once(db: Database) -> None:
    visitor = make_visitor(db)
    link = urlsplit(visitor.console.sign_in_link("http://x/"))
    path = f"{link.path.removeprefix('/console')}?{link.query}"
    assert visitor.get(path).status_code == 303
    assert visitor.get("/").status_code == 200
    other = make_visitor(db)
    other.app = visitor.app
    assert "This link was already used" in other.get(path).text
    assert other.cookie is None
    assert not SignInLinks().take("")


def test_signing_out_ends_the_session(db: Database) -> None:
    visitor = open_visitor(db)
    kept = visitor.cookie
    assert visitor.post("/sign-out").status_code == 303
    visitor.cookie = kept
    assert visitor.get("/").status_code == 303


def test_a_change_needs_the_csrf_token_of_its_session_and_a_page_of_this_site(db: Database) -> None:
    visitor, other = open_visitor(db), open_visitor(db)
    for csrf in ("", "x", other.csrf):
        assert visitor.post("/sign-out", csrf=csrf).status_code == 403
    for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "http://evil"}):
        assert visitor.post("/sign-out", headers=headers).status_code == 403
    for body in (b"\xff=1", b"csrf=%ff"):
        reply = visitor.ask(
            "POST", "/sign-out", {"content-type": "application/x-www-form-urlencoded"}, content=body
        )
        assert reply.status_code in (400, 403)
    assert visitor.ask("POST", "/sign-out", {}, json={"csrf": visitor.csrf}).status_code == 415
    big = {"csrf": visitor.csrf, "x": "x" * 3_000_000}
    assert visitor.ask("POST", "/sign-out", {}, data=big).status_code == 413
    assert visitor.get("/").status_code == 200, "the visitor was not signed out"


def test_every_reply_has_the_security_headers(db: Database) -> None:
    visitor = open_visitor(db)
    for path in ("/", "/models", "/nothing", "/sign-in", "/static/nothing"):
        headers = visitor.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "same-origin"
    for name in ("console.css", "console.js", "mark.svg"):
        reply = visitor.get(f"/static/{name}")
        assert reply.status_code == 200
        assert "immutable" in reply.headers["cache-control"]
        assert reply.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("name", ["..%2fapp.py", "console.css%00", "%2e%2e/settings.py"])
def test_other_files_are_not_served(db: Database, name: str) -> None:
    assert open_visitor(db).get(f"/static/{name}").status_code == 404


def test_an_unknown_page_or_method_gets_an_error_page(db: Database) -> None:
    visitor = open_visitor(db)
    assert "There is no page at this address." in visitor.get("/nothing").text
    assert visitor.get("/nothing").status_code == 404
    assert visitor.post("/models").status_code == 405
    assert visitor.get("/models/nothing:Here").status_code == 404


def test_the_console_works_below_another_path(db: Database) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    app = Starlette(
        routes=[Mount("/inner", create_app(db, console=Console(token=TOKEN, path="/look/after")))]
    )
    reply = ask_app(app, "POST", "/inner/look/after/sign-in", data={"token": TOKEN})
    assert reply.headers["location"] == "/inner/look/after/"
    assert "path=/inner/look/after" in reply.headers["set-cookie"].lower()
    assert (
        'href="/inner/look/after/static/console.css' in ask_app(app, "GET", "/inner/look/after/sign-in").text
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"token": "short"}, "at least 16 characters, not 5"),
        ({"path": "console"}, "must begin with a slash"),
        ({"path": "/console/"}, "not end with one"),
        ({"session": timedelta(seconds=5)}, "at least a minute"),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Console(**options)  # type: ignore[arg-type]


def test_each_console_has_its_own_token_unless_one_is_given() -> None:
    assert len({Console().token for _ in range(5)}) == 5
    assert Console(token=TOKEN).token == TOKEN


def test_without_jinja_the_error_hints_at_what_to_install(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("holdall.web.console.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ConfigurationError, match="the console needs Jinja2") as caught:
        create_app(db, console=Console(token=TOKEN))
    assert caught.value.hint == 'install it with: pip install "holdall[web]"'
