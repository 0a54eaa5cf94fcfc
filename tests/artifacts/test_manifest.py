"""A manifest has exactly one form, and only portable directories have a manifest."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.artifacts.directory.manifest import MAX_MANIFEST, Manifest, Member, check_path
from holdall.errors import InvalidArtifactError

SHA = sha256(b"").hexdigest()
OTHER = sha256(b"x").hexdigest()


def file(path: str, sha: str = SHA, size: int = 0, *, executable: bool = False) -> Member:
    return Member(path, sha, size, executable)


def parse(*entries: object, mark: object = 1) -> Manifest:
    document = {"holdall": mark, "entries": list(entries)}
    return Manifest.parse(json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode())


def test_the_form_is_fixed_byte_for_byte() -> None:
    manifest = Manifest.of([file("sub/ä"), file("bin", OTHER, 1, executable=True), Member("empty/")])
    assert manifest.to_bytes().decode() == (
        '{"holdall":1,"entries":['
        f'{{"path":"bin","sha256":"{OTHER}","size":1,"executable":true}},'
        '{"path":"empty/"},'
        f'{{"path":"sub/ä","sha256":"{SHA}","size":0}}]}}'
    )
    assert Manifest.parse(manifest.to_bytes()) == manifest
    assert Manifest.of([]).to_bytes() == b'{"holdall":1,"entries":[]}'


def test_entries_are_sorted_by_the_bytes_of_their_paths() -> None:
    paths = ["\U0001f600", "\ufffd", "é", "a/b", "a-b", "B"]
    ordered = [entry.path for entry in Manifest.of([file(path) for path in paths]).entries]
    assert ordered == sorted(paths, key=str.encode) == ["B", "a-b", "a/b", "é", "\ufffd", "\U0001f600"]


def test_totals_and_sizes() -> None:
    manifest = Manifest.of([file("a", OTHER, 1), file("b", OTHER, 1), file("c"), Member("d/")])
    assert manifest.total == 2
    assert manifest.sizes == {OTHER: 1, SHA: 0}


_NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="/\\:"), min_size=1
)
_PATHS = st.lists(_NAMES.filter(lambda name: name.strip(".")), min_size=1, max_size=4).map("/".join)
_ENTRIES = st.builds(
    lambda path, number, executable: file(path, f"{number:064x}", number, executable=executable),
    _PATHS,
    st.integers(0, 2**40),
    st.booleans(),
) | _PATHS.map(lambda path: Member(f"{path}/"))


@given(st.lists(_ENTRIES, max_size=6), st.randoms())
def test_a_manifest_is_read_back_whatever_the_order_of_its_entries(
    entries: list[Member], random: object
) -> None:
    try:
        manifest = Manifest.of(entries)
    except InvalidArtifactError:
        return  # two of the entries conflict
    random.shuffle(entries)  # type: ignore[attr-defined]
    again = Manifest.of(entries)
    assert again == manifest == Manifest.parse(again.to_bytes())
    assert sorted(manifest.entries, key=repr) == sorted(entries, key=repr)


@given(st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidArtifactError):
        Manifest.parse(data)


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "/a", "a//b", "//", "a//", ".", "..", "./a", "a/./b", "a/..", "../a", "a/../../b"),
        *("a\\b", "a\x00b", "a\nb", "\x7f", "a\x85", "a\u2028", "C:", "c:/windows", "c:x", "\ud800"),
        *("x" * 256, "é" * 128, "/".join(["x" * 200] * 21)),
    ],
)
def test_an_unsafe_path_is_refused_and_named(path: str) -> None:
    with pytest.raises(InvalidArtifactError, match="the path "):
        check_path(path)
    with pytest.raises(InvalidArtifactError):
        Manifest.of([file(path)])
    if "\ud800" not in path:
        with pytest.raises(InvalidArtifactError):
            parse({"path": path, "sha256": SHA, "size": 0})


def test_ordinary_paths_are_unchanged() -> None:
    for path in ("a", "...", ".hidden", "a b", "1:b", "ab:c", "x" * 255, "a/b/", "日本/ü", "-", "a..b"):
        assert check_path(path) == path


@pytest.mark.parametrize(
    "paths",
    [
        ("a", "a"),
        ("README", "readme"),
        ("caf\u00e9", "cafe\u0301"),  # a composed letter, and a letter with a combining accent
        ("CAF\u00c9", "cafe\u0301"),
        ("stra\u00dfe", "STRASSE"),
        ("a", "a/b"),
        ("A", "a/b"),
        ("a/b", "a/b/c/d"),
        ("a/", "a"),
        ("a/", "a/b"),
        ("a/", "A/"),
        ("a/", "a/b/"),
    ],
)
def test_entries_that_would_overwrite_each_other_are_refused(paths: tuple[str, str]) -> None:
    entries = [Member(path) if path.endswith("/") else file(path) for path in paths]
    for both in (entries, entries[::-1]):
        with pytest.raises(InvalidArtifactError):
            Manifest.of(both)


def test_directories_that_only_merge_may_differ_by_case() -> None:
    assert (
        len(
            Manifest.of(
                [file("A/x"), file("a/y"), file("a-b"), file("a.b"), Member("B/"), file("b/x")]
            ).entries
        )
        == 6
    )


def test_a_digest_has_one_size() -> None:
    with pytest.raises(InvalidArtifactError, match="a different size"):
        Manifest.of([file("a", OTHER, 1), file("b", OTHER, 2)])


@pytest.mark.parametrize(
    "entry",
    [
        "a",
        {},
        {"path": 1},
        {"path": "a"},
        {"path": "a", "sha256": SHA},
        {"path": "a", "sha256": SHA, "size": "0"},
        {"path": "a", "sha256": SHA, "size": True},
        {"path": "a", "sha256": SHA, "size": 0.0},
        {"path": "a", "sha256": SHA, "size": -1},
        {"path": "a", "sha256": SHA, "size": 6 * 1024**4},
        {"path": "a", "sha256": SHA.upper(), "size": 0},
        {"path": "a", "sha256": SHA[1:], "size": 0},
        {"path": "a", "sha256": None, "size": 0},
        {"path": "a", "sha256": SHA, "size": 0, "executable": 1},
        {"path": "a", "sha256": SHA, "size": 0, "executable": False},
        {"path": "a", "sha256": SHA, "size": 0, "more": 1},
        {"path": "a/", "sha256": SHA, "size": 0},
        {"sha256": SHA, "size": 0, "path": "a"},
    ],
)
def test_an_invalid_entry_is_refused(entry: object) -> None:
    with pytest.raises(InvalidArtifactError):
        parse(entry)


def test_other_formats_and_other_forms_are_refused() -> None:
    good = {"path": "a", "sha256": SHA, "size": 0}
    assert parse(good).entries == (file("a"),)
    with pytest.raises(InvalidArtifactError, match="format 2"):
        parse(good, mark=2)
    for mark in (True, "1", None):
        with pytest.raises(InvalidArtifactError, match="not a manifest"):
            parse(good, mark=mark)
    data = Manifest.of([file("a"), file("b")]).to_bytes()
    unordered = json.dumps(
        {"holdall": 1, "entries": [{**good, "path": "b"}, good]}, separators=(",", ":")
    ).encode()
    assert len(unordered) == len(data)
    for other in (unordered, data + b"\n", b" " + data, data.replace(b'"a"', b'"\\u0061"'), data[:-1]):
        with pytest.raises(InvalidArtifactError):
            Manifest.parse(other)
    with pytest.raises(InvalidArtifactError):
        Manifest.parse(b"[" * 200_000)
    with pytest.raises(InvalidArtifactError, match="at most"):
        Manifest.parse(bytes(MAX_MANIFEST + 1))
