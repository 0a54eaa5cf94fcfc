"""Keys: any text can be a key, and no character has a special meaning."""

from __future__ import annotations

import random
import string
from itertools import pairwise

from holdall.core.objects import (
    CopyObject,
    DeleteObject,
    DeleteObjects,
    GetObject,
    HeadObject,
    ListUploads,
    PutObject,
)
from holdall.testing.file_contract.check import NAME, Service, check
from holdall.testing.file_contract.listing import in_order

PUNCTUATION = (
    *(f"p{sign}q" for sign in " !\"#$%&'()*+,-.:;<=>?@[\\]^_`{|}~"),
    *(" leading", "trailing ", "two  spaces", "trailing.", "...", ".hidden", "a..b", "-rf", "~root"),
    *("%", "%2", "%20", "%25", "%2F", "%00", "%2e%2e/x", "+", "&amp;", "&", "<Key>", "]]>", "<!--", '"', "'"),
    *("*", "?", "a=b&c=d", "a?b=c", "a#b", "?prefix=", "$HOME", "{0}", "%s"),
    *("\\\\server\\share", "C:\\x", "c:x", "a:b", "con", "NUL", "aux.txt", "com1", "lpt9.x"),
    *("desktop.ini", "a~1", "a.tmp", "a.part", "a.json", "a.lock"),
)
ALPHABETS = (
    *("ü", "u\u0308", "\u212b", "\u00c5", "A\u030a", "ﬁ", "fi", "ß", "ss", "İ", "i̇", "ı", "\u03a9", "\u2126"),
    *("日本語", "ключ", "مفتاح", "\u200fשלום", "😀", "👩‍👩‍👧", "\u200b", "\ufeff", "\u00a0"),
    *("\u3000", "\u2028", "\u0085", "\u009f", "\ue000", "\uffee", "\ufffd", "\ufffe", "\uffff"),
    *("\U00010000", "\U0010ffff"),
)
CONTROLS = ("\n", "\r", "\r\n", "\t", "\x01", "\x0b", "\x1b[31m", "\x7f", "a\nb", "a\r\nX-Header: b", "\n\n")
SLASHES = ("a", "a/", "a//", "a/b", "a//b", "a/b/", "/", "//", "/a", "/a/b", "a/ /b", "a/.b", "a/b.", "b/a")
CASES = ("Case", "case", "CASE", "cASE", "dir/Case", "Dir/case", "STRASSE", "strasse", "straße")


async def _all_at_once(service: Service, names: tuple[str, ...]) -> None:
    """Put, find, read, list (in order, and as a prefix) and delete every key."""
    assert len(set(names)) == len(names)
    await service.side_by_side([service.put(name, name.encode()) for name in names])
    assert await service.names() == in_order(names)
    assert await service.names(limit=3) == in_order(names)

    async def look_at(name: str) -> None:
        assert await service.body(name) == name.encode()
        assert (await service.head(name)).key == service.key(name)
        assert await service.names(name) == in_order([other for other in names if other.startswith(name)])

    await service.side_by_side([look_at(name) for name in names])
    one_by_one, together = names[::2], names[1::2]
    await service.side_by_side([service.delete(name) for name in one_by_one])
    assert await service.names() == in_order(together)
    keys = tuple(service.key(name) for name in together)
    assert (await service.send(DeleteObjects(NAME, keys))).failures == {}
    assert await service.names() == []


@check()
async def punctuation_means_nothing(service: Service) -> None:
    await _all_at_once(service, PUNCTUATION)


@check()
async def every_alphabet_works_and_different_texts_are_different_keys(service: Service) -> None:
    await _all_at_once(service, ALPHABETS)


@check()
async def control_characters_are_characters(service: Service) -> None:
    await _all_at_once(service, CONTROLS)


@check()
async def slashes_make_no_directories(service: Service) -> None:
    await _all_at_once(service, SLASHES)


@check()
async def case_matters(service: Service) -> None:
    await _all_at_once(service, CASES)


@check("long_keys")
async def a_key_can_be_as_long_as_the_limit(service: Service) -> None:
    room = 1024 - len(service.prefix.encode())
    await _all_at_once(
        service,
        (
            *("x" * room, "x" * (room - 1), "x" * 255, "x" * 256, "x" * 254 + "/y"),
            *("ü" * (room // 2), "😀" * (room // 4), "日" * (room // 3), " " * room, "%" * room),
            *("a/" * (room // 2), "A/" * (room // 2), "/" * room, "\x01" * room, "x" * 300 + "/" + "y" * 300),
        ),
    )


@check()
async def copies_go_from_any_key_to_any_key(service: Service) -> None:
    names = ("a b", "a+b", "a%20b", "ü/😀", "a?b=c&d", "<&>'\"", "a\nb", "/a", "a//b", "\x01", "%2F", "#")
    for source, target in pairwise(names):
        await service.put(source, source.encode())
        await service.copy(source, target)
        assert await service.body(target) == source.encode()
        assert await service.body(source) == source.encode()


@check()
async def uploads_go_to_any_key(service: Service) -> None:
    names = ("a b", "a+b", "a%20b", "ü/😀", "a?b=c&d", "<&>'\"", "a\nb", "/a", "a//b", "\x01", "\ufffe", "#")
    for name in names:
        upload = await service.begin(name)
        assert upload.key == service.key(name)
        part = await service.part(upload, 1, name.encode())
        assert await service.send(ListUploads(NAME, service.key(name))) == (upload,)
        await service.complete(upload, part)
        assert await service.body(name) == name.encode()
    assert await service.names() == in_order(names)


@check()
async def keys_of_one_shape_do_not_get_in_the_way_of_another(service: Service) -> None:
    """Random names of attachments, their variants, and keys that look like paths where such names might be stored."""
    name = "".join(random.SystemRandom().choices(string.digits + string.ascii_lowercase, k=28))
    shapes = (
        *(
            name,
            f"{name[:2]}/{name[2:4]}/{name}",
            f"{name[:2]}/{name[2:4]}",
            name[:4],
            f"{name}/",
            f"{name}.json",
        ),
        *(f"variants/{name}/{'0' * 64}", f"va/ri/variants/{name}/{'0' * 64}", name.upper(), f"/{name}"),
    )
    keys = [service.stray(shape) for shape in shapes]
    for key in keys:
        await service.send(PutObject(NAME, key, key.encode()))
    for key in keys:
        assert (await service.send(HeadObject(NAME, key))).key == key
        assert (await service.send(GetObject(NAME, key))).body == key.encode()
    await service.send(CopyObject(NAME, name, service.key("copied")))
    await service.send(DeleteObject(NAME, name))
    for key in keys[1:]:
        assert (await service.send(GetObject(NAME, key))).body == key.encode()
    assert await service.body("copied") == name.encode()
