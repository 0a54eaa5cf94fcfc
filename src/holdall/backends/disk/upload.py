"""Uploads in parts on disk: a directory for each, which any process can continue.

Parts that arrive in order, or in any order if all but the last have the same length, make up the object in a file
``data`` as they arrive; completing the upload then moves no bytes. Otherwise the object is assembled at the end. A
process that writes to ``data``, completes or aborts the upload has locked that file.

**After a crash.** A part exists once its record does: the record of an earlier part is removed before the bytes are
written, and the new one is created after them. Parts are not synced one by one, so after a power cut a record may exist
without its bytes. Therefore a part that this process has not written itself is read and checked before it is listed or
used. The object is synced before it is visible, like any other (see `holdall.backends.disk.object`); after that its
upload is removed. If the upload still exists then, it counts as gone anyway: the file that became the object is no
longer in it, or has two names. That file is ``data``, or if there is a file ``done``, the assembled one.

The digests of the whole object are those that the sender of the parts computed; they are stored as given.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

from holdall.backends.disk.attribute import Attributes, encode_attributes, parse_note
from holdall.backends.disk.directory import Directories, lock_file
from holdall.backends.disk.object import Objects
from holdall.backends.disk.part import DATA, Parts, Piece
from holdall.backends.disk.path import OWN
from holdall.backends.disk.scratch import Draft, Scratch
from holdall.backends.disk.transfer import checksum, copy_range, pieces, read_file, write_at, write_file
from holdall.backends.refusal import refuse_part, refuse_range, refuse_upload
from holdall.core.frozen import replace
from holdall.core.objects import CompleteUpload, CopyPart, ObjectHeaders, ObjectInfo, Part, PartPage, Upload
from holdall.core.requests import Done
from holdall.errors import IntegrityError, ObjectNotFoundError, PreconditionFailedError

_UPLOADS = (OWN, "uploads")
_ID = re.compile(r"[0-9a-f]{32}\Z")
_PAGE = 1000
_MOST = 256
_WRITE = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_ABOUT, _TOGETHER, _DONE = "upload.json", "together", "done"


class _Opened(NamedTuple):
    """An open upload: its id, its directory, and the key and attributes of the future object."""

    id: str
    directory: int
    key: str
    attributes: Attributes

    @property
    def parts(self) -> Parts:
        """The parts that it has."""
        return Parts(self.directory)


class Uploads:
    """The uploads in progress below a root."""

    def __init__(self, directories: Directories, scratch: Scratch, objects: Objects) -> None:
        self._directories = directories
        self._scratch = scratch
        self._objects = objects
        self._ours: dict[str, set[str]] = {}
        scratch.sweep_too(self._sweep_completed)

    def begin(self, key: str, headers: ObjectHeaders, tags: Mapping[str, str]) -> Upload:
        """Begin an upload."""
        id = os.urandom(16).hex()
        with self._scratch.draft_directory() as draft:
            about = encode_attributes(key, id, Attributes(headers, upload=id, tags=tags or None))
            write_file(draft.file, _ABOUT, about)
            write_file(draft.file, DATA, b"")
            with self._directories.make(_UPLOADS) as uploads:
                os.rename(draft.name, id, src_dir_fd=draft.directory, dst_dir_fd=uploads)
        return Upload(key, id)

    def put_part(self, upload: Upload, number: int, body: bytes) -> Part:
        """Keep a part."""
        etag = checksum([body])

        def write(file: int, offset: int) -> str:
            write_at(file, body, offset)
            return etag

        return self._keep_part(upload, number, len(body), write)

    def copy_part(self, request: CopyPart) -> Part:
        """Keep a part that is a range of an object."""
        with self._objects.open(request.source, request.if_match) as found:
            if request.start + request.size > found.stat.st_size:
                raise refuse_range(request, found.stat.st_size)

            def write(file: int, offset: int) -> str:
                count = copy_range(found.file, request.start, request.size, file, offset)
                if count != request.size:
                    raise PreconditionFailedError(
                        f"the object {request.source!r} was truncated while it was copied"
                    )
                return checksum(pieces(file, offset, count))

            return self._keep_part(request.upload, request.number, request.size, write)

    def parts(self, upload: Upload, after: int | None) -> PartPage:
        """A page of the parts that an upload has."""
        with self._open(upload) as opened:
            found = [piece for number, piece in opened.parts.all().items() if number > (after or 0)]
            whole = [piece for piece in found[:_PAGE] if self._whole(opened, piece)]
        parts = tuple(Part(piece.number, piece.etag, piece.size) for piece in whole)
        return PartPage(parts, found[_PAGE - 1].number if len(found) > _PAGE else None)

    def under_way(self, prefix: str) -> tuple[Upload, ...]:
        """The uploads of keys with a prefix."""
        found = []
        with suppress(FileNotFoundError), self._directories.open(_UPLOADS) as uploads:
            for id in os.listdir(uploads):  # noqa: PTH208 - an open directory
                with suppress(ObjectNotFoundError), self._open_by_id(id) as opened:
                    if opened.key.startswith(prefix):
                        found.append(Upload(opened.key, id))
        return tuple(sorted(found, key=lambda upload: (upload.key.encode(), upload.id)))

    def complete(self, request: CompleteUpload) -> ObjectInfo:
        """Make the object of the parts."""
        upload = request.upload
        try:
            with self._open(upload) as opened, self._data(opened) as data:
                if request.if_absent is not None:
                    self._objects.check_absent(upload.key)
                if request.if_match is not None:
                    self._objects.check_match(upload.key, request.if_match)
                info = self._complete(request, opened, data)
        except ObjectNotFoundError:
            return self._find_completed(upload)
        with suppress(OSError):  # the object exists, and its upload counts as gone
            self._remove(upload.id)
        return info

    def abort(self, upload: Upload) -> Done:
        """Abort an upload."""
        with suppress(ObjectNotFoundError), self._open(upload) as opened, self._data(opened):
            self._remove(upload.id)
        return Done()

    # --- opening ---

    @contextmanager
    def _open(self, upload: Upload) -> Iterator[_Opened]:
        with self._open_by_id(upload.id) as opened:
            if opened.key != upload.key:
                raise refuse_upload(upload.id)
            yield opened

    @contextmanager
    def _open_by_id(self, id: str) -> Iterator[_Opened]:
        with ExitStack() as stack:
            try:
                if not _ID.match(id):
                    raise FileNotFoundError
                directory = stack.enter_context(self._directories.open((*_UPLOADS, id)))
                about = read_file(directory, _ABOUT)
            except (FileNotFoundError, NotADirectoryError):
                raise refuse_upload(id) from None
            note = parse_note(about)
            if note is None or not _is_unfinished(directory):
                raise refuse_upload(id)
            yield _Opened(id, directory, note.key, note.attributes)

    @contextmanager
    def _data(self, opened: _Opened) -> Iterator[int]:
        """The file of the parts, locked."""
        try:
            data = os.open(DATA, _WRITE, dir_fd=opened.directory)
        except FileNotFoundError:
            raise refuse_upload(opened.id) from None
        try:
            with lock_file(data):
                if not _is_unfinished(opened.directory):  # another process may have finished it meanwhile
                    raise refuse_upload(opened.id)
                yield data
        finally:
            os.close(data)

    # --- parts ---

    def _keep_part(self, upload: Upload, number: int, size: int, write: Callable[[int, int], str]) -> Part:
        with self._open(upload) as opened, self._data(opened) as data:
            piece = opened.parts.keep(number, size, data, write)
        self._trust(upload.id, piece)
        return Part(number, piece.etag, size)

    def _whole(self, opened: _Opened, piece: Piece) -> bool:
        """Whether the bytes of a part are intact; after a crash they may not be."""
        if piece.stamp in self._ours.get(opened.id, ()):
            return True
        if not opened.parts.is_whole(piece):
            return False
        self._trust(opened.id, piece)
        return True

    def _trust(self, id: str, piece: Piece) -> None:
        """Remember a part that this process has written or checked."""
        if len(self._ours) > _MOST:
            self._ours.clear()  # mostly abandoned uploads; a forgotten part is only checked again
        self._ours.setdefault(id, set()).add(piece.stamp)

    # --- the end ---

    def _complete(self, request: CompleteUpload, opened: _Opened, data: int) -> ObjectInfo:
        kept = opened.parts.all()
        wanted = [_check_piece(opened.key, part, kept.get(part.number)) for part in request.parts]
        for piece in wanted:
            if not self._whole(opened, piece):
                raise _explain_damage(opened.key, piece)
        attributes = replace(
            opened.attributes, md5=request.md5, sha256=request.sha256, put_id=request.if_absent
        )
        with self._whole_object(opened, wanted, data) as draft:
            # parts that were not named may follow those that were
            os.ftruncate(draft.file, sum(piece.size for piece in wanted))
            if draft.name == _TOGETHER:
                write_file(opened.directory, _DONE, b"")
            return self._objects.publish(
                opened.key,
                draft,
                attributes,
                absent=request.if_absent is not None,
                if_match=request.if_match,
            )

    @contextmanager
    def _whole_object(self, opened: _Opened, wanted: Sequence[Piece], data: int) -> Iterator[Draft]:
        """The file that contains all parts in order."""
        if _in_order(wanted):
            yield Draft(opened.directory, DATA, data)
            return
        _unlink(opened.directory, _DONE)
        write_file(opened.directory, _TOGETHER, b"")
        together = os.open(_TOGETHER, _WRITE, dir_fd=opened.directory)
        try:
            _put_together(opened, wanted, together)
            yield Draft(opened.directory, _TOGETHER, together)
        except BaseException:
            if _is_unfinished(opened.directory):
                _unlink(opened.directory, _DONE)
                _unlink(opened.directory, _TOGETHER)
            raise
        finally:
            os.close(together)

    def _find_completed(self, upload: Upload) -> ObjectInfo:
        """The object of an upload whose completion is repeated because its reply was lost."""
        with suppress(ObjectNotFoundError), self._objects.open(upload.key) as found:
            if found.attributes is not None and found.attributes.upload == upload.id:
                return found.info
        raise refuse_upload(upload.id)

    def _remove(self, id: str) -> None:
        self._ours.pop(id, None)
        with suppress(FileNotFoundError), self._directories.open(_UPLOADS) as uploads:
            self._scratch.remove_directory(uploads, id)

    def _sweep_completed(self, before: float) -> None:
        """Remove what is left of uploads whose process died right after completing them."""
        with suppress(FileNotFoundError), self._directories.open(_UPLOADS) as uploads:
            for id in os.listdir(uploads):  # noqa: PTH208 - an open directory
                old = os.stat(id, dir_fd=uploads, follow_symlinks=False).st_ctime < before
                if old and _ID.match(id) and not self._is_under_way(id):
                    self._scratch.remove_directory(uploads, id)

    def _is_under_way(self, id: str) -> bool:
        with suppress(ObjectNotFoundError), self._open_by_id(id):
            return True
        return False


def _is_unfinished(directory: int) -> bool:
    """Whether the upload has not become an object yet."""
    if _names(directory, DATA) != 1:
        return False
    return not _names(directory, _DONE) or _names(directory, _TOGETHER) == 1


def _names(directory: int, file: str) -> int:
    """How many names a file has."""
    try:
        return os.stat(file, dir_fd=directory, follow_symlinks=False).st_nlink
    except FileNotFoundError:
        return 0


def _unlink(directory: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)


def _check_piece(key: str, part: Part, piece: Piece | None) -> Piece:
    if piece is None or piece.etag != part.etag:
        raise refuse_part(key, part, missing=piece is None)
    return piece


def _in_order(wanted: Sequence[Piece]) -> bool:
    """Whether the parts follow each other in the shared file."""
    size = 0
    for piece in wanted:
        if piece.offset != size:
            return False
        size += piece.size
    return True


def _put_together(opened: _Opened, wanted: Sequence[Piece], target: int) -> None:
    size = 0
    for piece in wanted:
        with opened.parts.open(piece) as (file, start):
            count = copy_range(file, start, piece.size, target, size)
        if count != piece.size:
            raise _explain_damage(opened.key, piece)
        size += count


def _explain_damage(key: str, piece: Piece) -> IntegrityError:
    return IntegrityError(
        f"part {piece.number} of the upload of {key!r} is damaged",
        hint="upload that part again",
    )
