"""Trees: directories that a download fills under a temporary name and renames when they are complete."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from holdall.errors import InvalidArtifactError, InvalidOptionsError
from holdall.local.draft import name_draft, remove_tree


class Tree:
    """A directory that a download fills; ``paths`` has its files and empty directories once it is prepared."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.name = place.name
        self.beside = place
        self.paths: dict[str, Path] = {}


def find_tree(to: Any) -> Tree:
    """Check where a directory is to be created; refuse if something is there, before anything is fetched."""
    place = Path(to).resolve()
    if place.is_dir():
        if any(place.iterdir()):
            raise InvalidOptionsError(
                f"the directory {to} is not empty", hint="pass the path of a new or empty directory"
            )
        if place == Path.cwd():  # the process would stay in the directory that is replaced
            raise InvalidOptionsError(
                f"{to} is the working directory", hint="pass the path of a new directory inside it"
            )
    elif place.exists():
        raise InvalidOptionsError(
            f"{to} exists and is not a directory", hint="pass the path of a new or empty directory"
        )
    elif not place.parent.is_dir():
        raise InvalidOptionsError(
            f"there is no directory {place.parent} to write to",
            hint="create it first",
        )
    return Tree(place)


def prepare_tree(tree: Tree, mark: str, entries: Mapping[str, bool], resume: bool) -> None:
    """Create all directories for these paths; an entry that is True is itself a directory.

    Of the files that an earlier download left, only those that belong to the tree stay. All paths are checked before
    any directory is created.
    """
    tree.beside = name_draft(tree.place, mark)
    tree.paths = {path: _locate(tree.beside, path) for path in entries}
    directories = {tree.beside}
    files: set[Path] = set()
    for path, is_directory in entries.items():
        place = tree.paths[path]
        (directories if is_directory else files).add(place)
        while (place := place.parent) not in directories:
            directories.add(place)
    if resume:
        _keep_only(tree.beside, files, directories)
    for directory in sorted(directories):
        directory.mkdir(exist_ok=resume)


def _locate(directory: Path, path: str) -> Path:
    """Where a path of a manifest is on disk; never outside the directory, whatever the manifest contains."""
    parts = path.removesuffix("/").split("/")
    if any(part in ("", ".", "..") or PurePath(part).parts != (part,) for part in parts):
        raise InvalidArtifactError(f"the path {path!r:.200} leads out of its directory")
    return directory.joinpath(*parts)


def _keep_only(directory: Path, files: set[Path], directories: set[Path]) -> None:
    for path in list(directory.iterdir()) if directory.is_dir() else ():
        if path.is_symlink() or not path.is_dir():
            if path not in files or path.is_symlink():
                path.unlink(missing_ok=True)
        elif path in directories:
            _keep_only(path, files, directories)
        else:
            remove_tree(path)


def set_mode(path: Path, executable: bool) -> None:
    """Make a program executable for everyone who may read it, and other files not executable."""
    mode = path.stat().st_mode & 0o7777
    wanted = mode | (mode & 0o444) >> 2 if executable else mode & ~0o111
    if wanted != mode:
        path.chmod(wanted)


def place_tree(tree: Tree) -> None:
    """Rename the directory to its final name, in one step; it takes the mode of an empty directory that it replaces."""
    if tree.place.is_dir():
        tree.beside.chmod(tree.place.stat().st_mode & 0o7777)
    try:
        tree.beside.replace(tree.place)
    except OSError:
        find_tree(tree.place)  # another process may have put something there
        raise


def drop_tree(tree: Tree) -> None:
    """Remove a directory that was not completed."""
    if tree.beside != tree.place:
        remove_tree(tree.beside)
