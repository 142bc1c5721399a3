"""Restore kept files into a Claude home byte for byte, with their times. Only their owner may read them.

Paths come from manifests, which may come from anywhere: nothing is written outside the home, through a symlink, or to
a path that `keep` itself would not store (settings or commands would let others run code). Modes are not restored.

Files are written in batches (`files.BatchWriter`). A killed restore leaves no half-written file under its real name;
the next one removes the leftovers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from shutil import disk_usage

from msgspec import Struct

from threadline.annotations import FILE_NAME, annotations_file
from threadline.errors import Unreadable
from threadline.files import BatchWriter, make_private
from threadline.find import PROJECTS
from threadline.home_files import open_in_home, real_projects_dir
from threadline.keep.catalogue import Catalogue, Version
from threadline.keep.sessions import is_kept_path

_OWNER = ".threadline-restore"
"""Starts the names of temporary files, so that the next restore recognises leftovers."""
_RESERVED_SPACE = 64 * 1024 * 1024
"""How many bytes of the disk are left free."""
_FAILURES = (Unreadable, OSError, OverflowError, ValueError)


class RestoreResult(Struct, frozen=True):
    """The files that were restored, those that existed with the same content, and why others were not restored."""

    files: tuple[Path, ...] = ()
    same: tuple[Path, ...] = ()
    refused: tuple[str, ...] = ()


def restore_files(
    catalogue: Catalogue,
    versions: Iterable[Version],
    home: Path,
    *,
    force: bool = False,
    progress: Callable[[int], None] | None = None,
) -> RestoreResult:
    """Restore files into a home. Existing files with other content stay, unless `force`."""
    restorer = _Restorer(catalogue, home, progress or (lambda _done: None), force=force)
    # The smallest first: a file that is too large, or claims to be, does not prevent others from being restored.
    selected = [
        version for version in sorted(versions, key=lambda version: version.size) if restorer.should_write(version)
    ]
    # In pack order: a frame that is decompressed for one file contains others.
    with BatchWriter(_OWNER) as writer:
        for version in sorted(selected, key=catalogue.position):
            restorer.write(version, writer)
    return restorer.result(writer)


class _Restorer:
    def __init__(self, catalogue: Catalogue, home: Path, progress: Callable[[int], None], *, force: bool) -> None:
        self._catalogue = catalogue
        self._home = home
        self._progress = progress
        self._force = force
        self._space = _free_space(home) - _RESERVED_SPACE
        self._same: list[Path] = []
        self._refused: list[str] = []

    def result(self, writer: BatchWriter) -> RestoreResult:
        failed = [f"{os.path.relpath(path, self._home)}: {_error_text(error)}" for path, error in writer.failed]
        return RestoreResult(tuple(writer.finished), tuple(self._same), (*self._refused, *failed))

    def should_write(self, version: Version) -> bool:
        """Whether a file is missing, may be written, and fits on the disk. Annotations do not belong in a home."""
        if version.path == FILE_NAME and self._home != annotations_file().parent:
            return False
        try:
            target = _target_path(self._home, version.path)
            if target.exists() and self._has_same_content(version, target):
                if self._force:
                    make_private(target, version.mtime_ns)
                self._same.append(target)
            elif (problem := self._check_target(version, target)) is not None:
                self._refused.append(problem)
            else:
                self._space -= version.size
                return True
        except _FAILURES as error:
            self._refused.append(f"{version.path}: {_error_text(error)}")
        self._progress(version.size)
        return False

    def _check_target(self, version: Version, target: Path) -> str | None:
        """Why a file is not restored to its target; None if it can be."""
        if os.path.lexists(target) and not self._force:
            return f"{target} exists with other content. Use --force to replace it."
        if self._has_grown(version, target):
            return f"{target} has grown since it was stored, and --force would lose that. Run `threadline keep` first."
        if target.is_dir() and not target.is_symlink():
            return f"{target} is a folder. Move it away first."
        if version.size > self._space:
            reserve = _RESERVED_SPACE // 2**20
            return f"{version.path}: not enough disk space for its {version.size:,} bytes ({reserve} MB stay free)."
        return None

    def _has_grown(self, version: Version, target: Path) -> bool:
        """Whether a file has grown since it was kept: the new bytes are nowhere else."""
        if target != Path(version.home, version.path) or target.is_symlink() or not target.is_file():
            return False
        newest = self._catalogue.versions.get(version.key, [version])[-1]
        if not 0 < newest.size < target.stat().st_size:
            return False
        return self._starts_with(newest, target)

    def _has_same_content(self, version: Version, path: Path) -> bool:
        if path.is_symlink() or not path.is_file() or path.stat().st_size != version.size:
            return False
        return self._starts_with(version, path)

    def _starts_with(self, version: Version, path: Path) -> bool:
        with os.fdopen(open_in_home(path, home=self._home), "rb") as file:
            return all(file.read(len(data)) == data for data in self._catalogue.data(version))

    def write(self, version: Version, writer: BatchWriter) -> None:
        """Write a file, which gets its name once it is on disk."""
        try:
            target = _target_path(self._home, version.path)
            writer.write(target, self._catalogue.data(version), version.mtime_ns)
        except _FAILURES as error:
            self._refused.append(f"{version.path}: {_error_text(error)}")
        self._progress(version.size)


def _error_text(error: Exception) -> str:
    """An error as a sentence, without the name of a temporary file."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text if text.endswith(".") else f"{text}."


def _free_space(home: Path) -> int:
    """How many bytes are free on the disk of a home, which need not exist yet."""
    folder = next((path for path in (home, *home.parents) if path.is_dir()), None)
    return disk_usage(folder).free if folder is not None else 0


def _target_path(home: Path, path: str) -> Path:
    """Where a path from a manifest is inside a home.

    Raises:
        Unreadable: it leads out of the home, or must not be written.
    """
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or any(map(_is_unsafe_part, parts)):
        raise Unreadable("its path leads out of the home, so it was not restored.")
    # With settings, commands and the like, Claude Code would run what somebody else wrote.
    if path != FILE_NAME and not is_kept_path(path):
        raise Unreadable("`keep` does not store files with this path, so it was not restored.")
    target = home.joinpath(*parts)
    moved_projects = real_projects_dir(os.path.realpath(home))
    for parent in target.parents:
        if parent == home:
            break
        # People move `projects` to another disk, and Claude Code follows the symlink.
        is_moved_projects = moved_projects is not None and parent == home / PROJECTS
        if parent.is_symlink() and not is_moved_projects:
            raise Unreadable(f"{parent} is a symlink, so nothing was restored below it.")
    return target


def _is_unsafe_part(part: str) -> bool:
    """Whether no file can have this part in its path, or it means something else on this system."""
    is_special = os.name == "nt" and any(sign in part for sign in '\\:*?"<>|')
    return part in ("..", ".") or "\0" in part or is_special
