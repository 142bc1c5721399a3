"""Homes in zip and tar archives, unpacked into the cache folder and read like any others.

Each archive has a folder there, named after its path, so its index is found again. It is unpacked again when the
archive has changed. `about.json` beside the files says what was unpacked. Folders of archives that no longer exist, or
were not read for a month, are removed when another one is unpacked.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct

from threadline.errors import NotFound, Unreadable
from threadline.files import cache_folder, make_private_folders, read_file, staging_folder, write_file
from threadline.find.fingerprint import change_time_ns
from threadline.find.layout import CONFIG_NAME, HOME_MARKERS, PROJECTS, is_transcript_name
from threadline.find.unpack import PackedArchive, detect_format
from threadline.home_files import is_secret_path
from threadline.model.homes import Home
from threadline.model.places import Place, Problem, ProblemKind

_VERSION = 1
"""Increased when archives that were unpacked earlier have to be unpacked again."""
ABOUT, FILES = "about.json", "files"
_MAX_ABOUT_BYTES = 1 << 24
_MAX_SKIPPED = 1000
_MAX_UNUSED_SECONDS = 30 * 86400
_MAX_STEM = 40
_OWNER = ".unpacking"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
# Claude Code names the folders of projects after paths: `-home-you-app`, `C--Users-you-app`.
_PROJECT_FOLDER = re.compile(r"-|[A-Za-z]--")
_MIN_TRANSCRIPT_PARTS = 3
"""`projects`, a folder and a file."""


class About(Struct, frozen=True):
    """What is in a folder of the cache: the homes as paths below it, and what was skipped.

    It comes from an archive in a certain state, or from a bucket: then `archive` is its URI, and there is no state.
    """

    version: int
    archive: str
    size: int
    mtime_ns: int
    ctime_ns: int
    homes: tuple[str, ...]
    skipped: dict[str, str]
    skipped_count: int


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


def list_skipped(home: Home) -> list[Problem]:
    """Return a problem for each file of an archive that was not unpacked. `home` is one of its homes."""
    folders = (parent.parent for parent in (home.path, *home.path.parents) if parent.name == FILES)
    about = next(filter(None, map(_load_about, folders)), None)
    if about is None:
        return []
    problems = [
        Problem(ProblemKind.SKIPPED, Place(f"{about.archive}/{name}"), reason) for name, reason in about.skipped.items()
    ]
    if about.skipped_count > len(problems):
        message = f"{about.skipped_count - len(problems):,} more files of the archive were skipped"
        problems.append(Problem(ProblemKind.SKIPPED, Place(about.archive), message))
    return problems


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


def write_about(
    folder: Path, source: str, homes: Iterable[str], skipped: Mapping[str, str], state: tuple[int, int, int] = (0, 0, 0)
) -> About:
    """Describe what is in a folder of the cache."""
    shown = dict(islice(skipped.items(), _MAX_SKIPPED))
    about = About(_VERSION, source, *state, homes=tuple(homes), skipped=shown, skipped_count=len(skipped))
    # A path may contain bytes that are not text, which msgspec does not encode.
    write_file(folder / ABOUT, json.dumps(msgspec.to_builtins(about)).encode(), durable=False)
    return about


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


def folders_above(path: str) -> Iterator[str]:
    """Yield the folders above a path, the innermost first and the empty path last."""
    while path:
        path = path.rpartition("/")[0]
        yield path


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


def cached_folder(kind: str, name: str, source: str) -> Path:
    """The folder in the cache for what comes from a source. `name` makes it recognisable."""
    stem = _UNSAFE.sub("-", name)[:_MAX_STEM].strip("-.")
    digest = blake2b(os.fsencode(source), digest_size=6).hexdigest()
    return cache_folder().absolute() / kind / f"{stem}-{digest}"


def _state(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, change_time_ns(status)


def _read_about(folder: Path, archive: Path, status: os.stat_result) -> About | None:
    """Read what was unpacked of an archive, if it still has this state."""
    about = _load_about(folder)
    if about is None or about.version != _VERSION or about.archive != os.fspath(archive):
        return None
    is_current = (about.size, about.mtime_ns, about.ctime_ns) == _state(status)
    return about if is_current and all((folder / FILES / home).is_dir() for home in about.homes) else None


def _load_about(folder: Path) -> About | None:
    try:
        data = read_file(folder / ABOUT, follow_symlinks=False, limit=_MAX_ABOUT_BYTES)
        return msgspec.convert(json.loads(data), About)
    except (OSError, ValueError):
        return None


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
        if _load_about(target) is None:  # no other process has done it meanwhile
            raise


def remove_unused(folder: Path, *, keep: Path) -> None:
    """Remove the folders of archives that are gone, and of archives and buckets that were not read for long."""
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            path = Path(entry.path)
            about = _load_about(path)
            if about is None or path == keep:
                continue
            is_old = (path / ABOUT).stat().st_mtime < time.time() - _MAX_UNUSED_SECONDS
            is_gone = "://" not in about.archive and not os.path.exists(about.archive)  # noqa: PTH110 - `Path` may raise
            if is_old or is_gone:
                shutil.rmtree(path, ignore_errors=True)


def remove_file(folder: Path, name: str) -> None:
    """Remove a file below a folder of the cache, and the folders that are empty then."""
    with suppress(OSError):
        (folder / name).unlink()
        for parent in filter(None, folders_above(name)):
            (folder / parent).rmdir()
