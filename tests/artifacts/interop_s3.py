"""A bucket as S3's own API shows it, read in plain HTTP, so that Holdall's code is not checked with itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection
from urllib.parse import quote, unquote, urlencode, urlsplit
from xml.etree import ElementTree

__all__ = ["Bucket", "StoredObject"]

_META = "x-amz-meta-"


@dataclass(frozen=True)
class StoredObject:
    """An object, with everything that its writer specified."""

    body: bytes
    content_type: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)


class Bucket:
    """A new bucket on a server that asks for no signature.

    The bucket keeps versions of its objects, because without versioning, ministack keeps the old object's tags when
    another replaces it. S3 does not.
    """

    def __init__(self, url: str, name: str) -> None:
        self.name = name
        self._connection = HTTPConnection(urlsplit(url).netloc)
        self._ask("PUT", "")
        kept = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
        self._ask("PUT", "?versioning", kept.encode())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def objects(self) -> dict[str, StoredObject]:
        """All objects by their keys."""
        listed = ElementTree.fromstring(self._ask("GET", "?list-type=2")[1])
        assert _text(listed, "IsTruncated") == "false"
        keys = [_text(each, "Key") for each in listed.iter() if each.tag.endswith("}Contents")]
        return {key: self.get(key) for key in keys}

    def get(self, key: str) -> StoredObject:
        """One object."""
        path = f"/{quote(key)}"
        headers, body = self._ask("GET", path)
        tags = ElementTree.fromstring(self._ask("GET", f"{path}?tagging")[1])
        return StoredObject(
            body,
            headers.get("content-type"),
            {name.removeprefix(_META): unquote(text) for name, text in headers.items() if _META in name},
            {_text(each, "Key"): _text(each, "Value") for each in tags.iter() if each.tag.endswith("}Tag")},
        )

    def find_modified(self, key: str) -> datetime:
        """When an object was last put, according to S3."""
        return parsedate_to_datetime(self._ask("GET", f"/{quote(key)}")[0]["last-modified"])

    def put(self, key: str, given: StoredObject) -> None:
        """Put an object with exactly these headers and tags."""
        headers = {f"{_META}{name}": text for name, text in given.metadata.items()}
        headers |= {"content-type": given.content_type} if given.content_type else {}
        headers |= {"x-amz-tagging": urlencode(given.tags)} if given.tags else {}
        self._ask("PUT", f"/{quote(key)}", given.body, headers)

    def _ask(
        self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> tuple[dict[str, str], bytes]:
        self._connection.request(method, f"/{self.name}{target}", body, dict(headers or {}))
        reply = self._connection.getresponse()
        content = reply.read()
        if reply.status != 200:
            raise RuntimeError(f"{method} {target} of {self.name}: {reply.status} {content[:200]!r}")
        return {name.lower(): text for name, text in reply.getheaders()}, content


def _text(element: ElementTree.Element, name: str) -> str:
    found = [each.text or "" for each in element if re.sub("{.*}", "", each.tag) == name]
    assert len(found) == 1, f"found {name} {len(found)} times"
    return found[0]
