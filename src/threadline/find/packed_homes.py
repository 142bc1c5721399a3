"""Homes in zip and tar archives, unpacked into the cache folder and read like any others.

An archive is unpacked again when it has changed (`home_copies`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path

from threadline.errors import NotFound, Unreadable
from threadline.files import make_private_folders, staging_folder
from threadline.find.fingerprint import change_time_ns
from threadline.find.home_copies import (
    ABOUT,
    FILES,
    VERSION,
    About,
    cached_folder,
    folders_above,
    load_about,
    remove_unused,
    write_about,
)
from threadline.find.layout import CONFIG_NAME, HOME_MARKERS, PROJECTS, is_transcript_name
from threadline.find.unpack import PackedArchive, detect_format
from threadline.home_files import is_secret_path

_OWNER = ".unpacking"
# Claude Code names the folders of projects after paths: `-home-you-app`, `C--Users-you-app`.
_PROJECT_FOLDER = re.compile(r"-|[A-Za-z]--")
_MIN_TRANSCRIPT_PARTS = 3
"""`projects`, a folder and a file."""


def is_packed(path: Path) -> bool:
    """Whether a file is an archive, in a format that can be read or not."""
    try:
        return detect_format(path) is not None
    except OSError:
        return False


def unpack_homes(
    path: Path, planned: Callable[[int], None] | None = None, progress: Callable[[int], None] | None = None
) -> list[Path]:
    """Return the homes in an archive, which is unpacked if it was not before, or has changed since.

    `planned` is called with the number of bytes to read before an archive is read, `progress` with those that were.

    Raises:
        NotFound: the archive contains no home.
        Unreadable: it is damaged, too large, or cannot be read.
        Missing: reading it needs a package that is not installed.
    """
    real = Path(os.path.realpath(path))
    target = cached_folder("unpacked", real.name, os.fspath(real))
    try:
        before = real.stat()
        about = _read_about(target, real, before)
        if about is None:
            make_private_folders(target.parent)
            with staging_folder(target.parent, _OWNER) as staging:
                if planned is not None:
                    planned(2 * before.st_size)
                about = _unpack(real, before, staging, progress)
                if _read_about(target, real, before) is None:  # no other process was faster
                    _replace_folder(target, staging)
            remove_unused(target.parent, keep=target)
        with suppress(OSError):
            os.utime(target / ABOUT)  # it was used
    except OSError as error:
        raise Unreadable(f"{str(path)!r} cannot be unpacked: {error.strerror or error}.") from error
    return [target / FILES / home for home in about.homes]


def _unpack(archive: Path, before: os.stat_result, staging: Path, progress: Callable[[int], None] | None) -> About:
    """Unpack the homes of an archive into a folder, and describe them there."""
    with PackedArchive(archive, progress) as packed:
        files = [name for name in packed.files if not is_macos_metadata(name)]
        homes = choose_homes(files)
        if not homes:
            raise NotFound(
                f"The archive {str(archive)!r} contains nothing that Claude Code writes. Pack a whole home, such as "
                "~/.claude."
            )
        names = {name: below for name in files if (below := path_in_home(name, homes)) is not None}
        folder = staging / FILES
        folder.mkdir(mode=0o700)
        for home in homes:
            make_private_folders(folder / home)
        packed.unpack(names.keys(), folder, is_empty=lambda name: is_secret_path(names[name].split("/")))
        skipped = {name: reason for name, reason in packed.skipped.items() if concerns_home(name, homes)}
    after = archive.stat()
    if _state(after) != _state(before):
        raise Unreadable(f"{str(archive)!r} was changed while it was read. Try again.")
    return write_about(staging, os.fspath(archive), homes, skipped, _state(before))


def is_macos_metadata(name: str) -> bool:
    """Whether a file has attributes of another one, which archives of macOS contain: it looks like a transcript."""
    return name.startswith("__MACOSX/") or name.rpartition("/")[2].startswith("._")


def choose_homes(names: Iterable[str]) -> dict[str, None]:
    """Return the folders of an archive that are homes, which may be its root: the empty path.

    A home has transcripts in `projects`. Without any, it has other files that Claude Code writes.
    """
    by_transcript: set[str] = set()
    by_marker: set[str] = set()
    for name in names:
        parts = name.split("/")
        for at in range(len(parts) - 1, -1, -1):
            if parts[at] in HOME_MARKERS:
                home = "/".join(parts[:at])
                by_marker.add(home)
                if _is_transcript_in_home(parts, at):
                    by_transcript.add(home)
                    break
    homes = by_transcript or by_marker
    # Backups inside a home are not homes of their own.
    return dict.fromkeys(sorted(home for home in homes if homes.isdisjoint(folders_above(home))))


def _is_transcript_in_home(parts: list[str], at: int) -> bool:
    if parts[at] != PROJECTS or len(parts) - at < _MIN_TRANSCRIPT_PARTS or not is_transcript_name(parts[-1]):
        return False
    return bool(_PROJECT_FOLDER.match(parts[at + 1])) or (at > 0 and parts[at - 1].startswith(".claude"))


def path_in_home(name: str, homes: Collection[str]) -> str | None:
    """Return the path of a file below its home, or beside it if it belongs to it; None for other files."""
    for folder in folders_above(name):
        if folder in homes:
            return name[len(folder) + 1 :] if folder else name
    folder, _, last = name.rpartition("/")
    is_config = last == CONFIG_NAME and (f"{folder}/.claude" if folder else ".claude") in homes
    return last if is_config else None


def concerns_home(name: str, homes: Collection[str]) -> bool:
    """Whether a skipped file may belong to a home: it is in one, or nobody knows where it would be."""
    return path_in_home(name.lstrip("/"), homes) is not None or ".." in name.split("/")


def _state(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, change_time_ns(status)


def _read_about(folder: Path, archive: Path, status: os.stat_result) -> About | None:
    """Read what was unpacked of an archive, if it still has this state."""
    about = load_about(folder)
    if about is None or about.version != VERSION or about.archive != os.fspath(archive):
        return None
    is_current = (about.size, about.mtime_ns, about.ctime_ns) == _state(status)
    return about if is_current and all((folder / FILES / home).is_dir() for home in about.homes) else None


def _replace_folder(target: Path, staging: Path) -> None:
    """Move new files into place. The old ones are removed with the staging folder."""
    new = staging / "new"
    new.mkdir(mode=0o700)
    (staging / FILES).rename(new / FILES)
    (staging / ABOUT).rename(new / ABOUT)
    with suppress(FileNotFoundError):
        target.rename(staging / "old")
    try:
        new.rename(target)
    except OSError:
        if load_about(target) is None:  # no other process has done it meanwhile
            raise
