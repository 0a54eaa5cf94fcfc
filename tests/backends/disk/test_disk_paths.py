"""Keys and paths: each key has its own path on every file system, and each path belongs to at most one key."""

from __future__ import annotations

import unicodedata
from pathlib import PurePosixPath

import pytest
from disk_rig import RAILS_KEY, is_allowed
from hypothesis import example, given
from hypothesis import strategies as st

from holdall.backends.disk.path import OWN, ROOT, Shelf, inside, key_at, own_shelf, place_of

HEX = "0123456789abcdef" * 4
SAFE = set("abcdefghijklmnopqrstuvwxyz0123456789._-%")


ODD = st.sampled_from(
    [
        *(
            "",
            "a",
            "A",
            ".a",
            "a.",
            "...",
            "con",
            "CON",
            "con.txt",
            "nul",
            "com1",
            "lpt9.tar.gz",
            "aux.",
            "~",
        ),
        *(
            "%",
            "%41",
            "a=",
            "a+",
            "=",
            "+",
            "é",
            "e\u0301",
            "ß",
            "İ",
            "x" * 200,
            "x" * 201,
            "X" * 67,
            "_",
            "objects",
        ),
        *(
            "temporary",
            "uploads",
            "variants",
            RAILS_KEY,
            HEX,
            "a~1-2",
            "a b",
            "\\",
            ":",
            "\n",
            "\x7f",
            "\u202e",
        ),
    ]
)
SEGMENTS = st.one_of(ODD, st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
KEYS = st.one_of(
    st.lists(SEGMENTS, min_size=1, max_size=6).map("/".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=340),
    st.text("ab/", max_size=12),
    st.text("/aB", min_size=900, max_size=1024),
    st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyz0123456789"), min_size=14, max_size=130),
).filter(is_allowed)


def path_of(key: str) -> str:
    directories, name = place_of(key)
    return "/".join((*directories, name))


@given(KEYS)
@example("/")
@example("/" * 1024)
@example("a/" * 512)
@example("\U0010ffff" * 256)
@example("." * 3 + "/" + "." * 300)
def test_a_path_can_be_converted_back_to_its_key(key: str) -> None:
    assert key_at(*place_of(key)) == key


@given(st.lists(KEYS, min_size=2, max_size=12, unique=True))
@example(["a", "A", "%41", "a=", "a+"])
@example(["é", "e\u0301"])
@example(["a", "a/", "a//", "/a", "a/b"])
@example(["x" * 200, "x" * 201, "x" * 200 + "/", "x" * 200 + "/x"])
@example(["/".join("a" * 33), "/".join("a" * 34), "/".join("a" * 32)])
def test_no_two_keys_share_a_path_even_if_case_and_unicode_forms_are_ignored(keys: list[str]) -> None:
    folded = [unicodedata.normalize("NFKC", path_of(key)).casefold() for key in keys]
    assert len(set(folded)) == len(keys)
    for one in folded:  # and no key's file has the path of another key's directory
        assert not any(other.startswith(f"{one}/") for other in folded)


@given(KEYS)
def test_a_path_is_below_the_root_and_valid_on_every_file_system(key: str) -> None:
    directories, name = place_of(key)
    for part in (*directories, name):
        assert part not in ("", ".", "..")
        assert len(part.encode()) <= 210
        assert set(part.removesuffix("=").removesuffix("+")) <= SAFE
        assert not part.startswith(".")
        assert not part.endswith(".")
        assert part.partition(".")[0] not in ("con", "prn", "aux", "nul", "com1", "lpt9")
    assert len(directories) <= 64
    assert len(path_of(key)) < 3500
    assert not PurePosixPath(path_of(key)).is_absolute()


@given(KEYS, st.data())
def test_a_shelf_covers_a_prefix_of_all_keys_on_it(key: str, data: st.DataObject) -> None:
    directories, name = place_of(key)
    shelf: Shelf | bytes | None = ROOT
    for directory in directories:
        assert isinstance(shelf, Shelf)
        shelf = inside(shelf, directory, True)
    assert isinstance(shelf, Shelf)
    assert key.encode().startswith(shelf.covers)
    assert inside(shelf, name, False) == key.encode()
    if directories[0] == OWN:
        prefix = key[: data.draw(st.integers(0, len(key)))].encode()
        start = own_shelf(prefix)
        assert directories[: len(start.directories)] == start.directories
        assert prefix.startswith(start.covers)


@pytest.mark.parametrize(
    ("key", "path"),
    [
        (RAILS_KEY, f"xt/ap/{RAILS_KEY}"),
        ("a" * 16, f"aa/aa/{'a' * 16}"),
        ("a" * 128, f"aa/aa/{'a' * 128}"),
        (f"variants/{RAILS_KEY}/{HEX}", f"va/ri/variants/{RAILS_KEY}/{HEX}"),
        ("a" * 15, f"_/objects/{'a' * 15}"),
        ("a" * 129, f"_/objects/{'a' * 129}"),
        ("A" + "a" * 27, f"_/objects/%41{'a' * 27}"),
        (f"variants/{RAILS_KEY}", f"_/objects/variants=/{RAILS_KEY}"),
        (f"variants/{RAILS_KEY}/{HEX}/x", f"_/objects/variants=/{RAILS_KEY}=/{HEX}=/x"),
        (f"other/{RAILS_KEY}/{HEX}", f"_/objects/other=/{RAILS_KEY}=/{HEX}"),
        ("photos/2026/Ada 1.png", "_/objects/photos=/2026=/%41da%201.png"),
        ("a//b/", "_/objects/a=/%=/b=/%"),
        ("con/nul.txt", "_/objects/%63on=/%6eul.txt"),
        (".a./..b", "_/objects/%2ea%2e=/%2e.b"),
        ("x" * 250, f"_/objects/{'x' * 200}+/{'x' * 50}"),
        ("x" * 250 + "/y", f"_/objects/{'x' * 200}+/{'x' * 50}=/y"),
        ("a/" * 34 + "z", f"_/objects/{'a=/' * 32}a%2fa%2fz"),
    ],
)
def test_keys_of_active_storage_have_its_paths_and_other_keys_readable_ones(key: str, path: str) -> None:
    assert path_of(key) == path


@pytest.mark.parametrize(
    "path",
    [
        "README",
        "_/README",
        "_/objects/A",
        "_/objects/%4",
        "_/objects/%4A",
        "_/objects/%61",
        "_/objects/%00",
        "_/objects/%2e",
        "_/objects/.a",
        "_/objects/con",
        "_/objects/%ff",
        "_/objects/a~1-2",
        "_/objects/a/b",
        "_/objects/a=/.",
        "_/objects/a+/b",
        f"_/objects/{RAILS_KEY}",
        f"_/objects/{'x' * 201}",
        "_/temporary/a",
        f"xt/{RAILS_KEY}",
        f"ab/cd/{RAILS_KEY}",
        f"xt/ap/{RAILS_KEY}~1-2",
        f"xt/ap/variants/{RAILS_KEY}/{HEX}",
        f"va/ri/variants/{HEX}",
        f"va/ri/variants/{RAILS_KEY}/short",
        f"va/ri/other/{RAILS_KEY}/{HEX}",
        f"xt/ap/{RAILS_KEY.upper()}",
    ],
)
def test_other_paths_belong_to_no_key(path: str) -> None:
    *directories, name = path.split("/")
    assert key_at(tuple(directories), name) is None
