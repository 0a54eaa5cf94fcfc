"""Digests: they follow the standards and do not depend on the pieces; CRC32C works with and without a package."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from base64 import b64decode, b64encode
from hashlib import md5, sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.core import digests
from holdall.core.digests import Digests, PartDigests, etag_of_parts, hex_of
from holdall.errors import InvalidOptionsError

VECTORS = [
    (b"", 0x00000000),
    (b"123456789", 0xE3069283),
    # RFC 3720, B.4
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
    (
        bytes.fromhex(
            "01c00000000000000000000000000000" "14000000000004000000001400000018"
            "28000000000000000200000000000000"
        ),
        0xD9963A56,
    ),
]  # fmt: skip
NATIVE = ["google_crc32c", "crc32c"]


def crc_of(data: bytes) -> str:
    return b64encode(digests._extend_in_python(data, 0).to_bytes(4, "big")).decode()


@pytest.mark.parametrize(("data", "crc"), VECTORS)
def test_crc32c_follows_the_standard(data: bytes, crc: int) -> None:
    assert digests._extend_in_python(data, 0) == crc
    taken = Digests(["crc32c"])
    taken.update(data)
    assert taken.crc32c is not None
    assert b64decode(taken.crc32c) == crc.to_bytes(4, "big")


@pytest.mark.parametrize("package", NATIVE)
def test_a_package_for_crc32c_computes_the_same(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    blocked = [name for name in NATIVE if name != package]
    assert _compute_without(blocked) == [f"{crc:08x}" for _, crc in VECTORS]


def test_without_a_package_python_computes_the_same() -> None:
    assert _compute_without(NATIVE) == [f"{crc:08x}" for _, crc in VECTORS]


def _compute_without(blocked: list[str]) -> list[str]:
    """Compute the CRCs of the vectors, each in two pieces, in a process that cannot import these packages."""
    program = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({blocked!r}))\n"
        "from holdall.core.digests import crc32c, _extend_in_python\n"
        f"assert (crc32c() is _extend_in_python) == {len(blocked) == 2}\n"
        f"for data in {[data for data, _ in VECTORS]!r}:\n"
        "    print(f'{crc32c()(data[5:], crc32c()(data[:5], 0)):08x}')\n"
    )
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}  # some packages warn that they are slow
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.split()


@given(pieces=st.lists(st.binary(max_size=50), max_size=8))
def test_digests_do_not_depend_on_the_pieces(pieces: list[bytes]) -> None:
    taken = Digests(digests.ALL)
    for piece in pieces:
        taken.update(memoryview(piece))
    whole = b"".join(pieces)
    assert taken.size == len(whole)
    assert taken.md5 == b64encode(md5(whole, usedforsecurity=False).digest()).decode()
    assert taken.sha256 == b64encode(sha256(whole).digest()).decode()
    assert taken.crc32c == crc_of(whole)


def test_digests_that_were_not_requested_are_none() -> None:
    taken = Digests(["md5"])
    taken.update(b"bytes")
    assert (taken.sha256, taken.crc32c, taken.size) == (None, None, 5)
    nothing = Digests([])
    nothing.update(b"bytes")
    assert (nothing.md5, nothing.size) == (None, 5)
    assert (Digests().md5, Digests().sha256) == (
        "1B2M2Y8AsgTpgAmY7PhCfg==",
        b64encode(sha256().digest()).decode(),
    )


def test_a_checksum_that_does_not_exist_is_refused() -> None:
    unknown: Any = ["md5", "sha1", "crc64"]
    with pytest.raises(InvalidOptionsError, match="unknown checksum: crc64, sha1"):
        Digests(unknown)


def test_a_digest_can_be_read_in_hexadecimal() -> None:
    assert hex_of("1B2M2Y8AsgTpgAmY7PhCfg==") == "d41d8cd98f00b204e9800998ecf8427e"


@given(st.binary(max_size=60), st.integers(1, 20), st.integers(1, 25))
def test_the_digest_of_parts_does_not_depend_on_the_pieces(data: bytes, part_size: int, step: int) -> None:
    digests = PartDigests(part_size)
    for start in range(0, len(data), step):
        digests.update(data[start : start + step])
    parts = [data[start : start + part_size] for start in range(0, len(data), part_size)]
    assert digests.etag == etag_of_parts([md5(part).digest() for part in parts])
    assert digests.size == len(data)
