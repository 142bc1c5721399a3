"""Folders of the cache that contain copies of homes: of archives, buckets and session stores.

Each source has a folder there, named after it, so the index of the copy is found again. `about.json` beside the files
says what they are copies of, and what was left out. Folders whose source no longer exists, or that were not read for a
month, are removed when another copy is made.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct

from threadline.files import cache_folder, read_file, write_file
from threadline.model.homes import Home
from threadline.model.places import Place, Problem, ProblemKind

VERSION = 1
"""Increased when archives that were unpacked earlier have to be unpacked again."""
ABOUT, FILES = "about.json", "files"
_MAX_ABOUT_BYTES = 1 << 24
_MAX_SKIPPED = 1000
_MAX_UNUSED_SECONDS = 30 * 86400
_MAX_STEM = 40
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class About(Struct, frozen=True):
    """What is in a folder of the cache: the homes as paths below it, and what was skipped.

    `archive` is the path of the archive or session store, or the URI of the bucket. Only archives have a state.
    """

    version: int
    archive: str
    size: int
    mtime_ns: int
    ctime_ns: int
    homes: tuple[str, ...]
    skipped: dict[str, str]
    skipped_count: int


def cached_folder(kind: str, name: str, source: str) -> Path:
    """The folder in the cache for what comes from a source. `name` makes it recognisable."""
    stem = _UNSAFE.sub("-", name)[:_MAX_STEM].strip("-.")
    digest = blake2b(os.fsencode(source), digest_size=6).hexdigest()
    return cache_folder().absolute() / kind / f"{stem}-{digest}"


def write_about(
    folder: Path, source: str, homes: Iterable[str], skipped: Mapping[str, str], state: tuple[int, int, int] = (0, 0, 0)
) -> About:
    """Describe what is in a folder of the cache."""
    shown = dict(islice(skipped.items(), _MAX_SKIPPED))
    about = About(VERSION, source, *state, homes=tuple(homes), skipped=shown, skipped_count=len(skipped))
    # A path may contain bytes that are not text, which msgspec does not encode.
    write_file(folder / ABOUT, json.dumps(msgspec.to_builtins(about)).encode(), durable=False)
    return about


def load_about(folder: Path) -> About | None:
    """Read what is in a folder of the cache; None if that is not known."""
    try:
        data = read_file(folder / ABOUT, follow_symlinks=False, limit=_MAX_ABOUT_BYTES)
        return msgspec.convert(json.loads(data), About)
    except (OSError, ValueError):
        return None


def list_skipped(home: Home) -> list[Problem]:
    """Return a problem for each file of a source that was not copied. `home` is one of its homes."""
    folders = (parent.parent for parent in (home.path, *home.path.parents) if parent.name == FILES)
    about = next(filter(None, map(load_about, folders)), None)
    if about is None:
        return []
    problems = [
        Problem(ProblemKind.SKIPPED, Place(f"{about.archive}/{name}"), reason) for name, reason in about.skipped.items()
    ]
    if about.skipped_count > len(problems):
        message = f"{about.skipped_count - len(problems):,} more files of the archive were skipped"
        problems.append(Problem(ProblemKind.SKIPPED, Place(about.archive), message))
    return problems


def remove_unused(folder: Path, *, keep: Path) -> None:
    """Remove the folders of files that are gone, and of sources that were not read for long."""
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            path = Path(entry.path)
            about = load_about(path)
            if about is None or path == keep:
                continue
            is_old = (path / ABOUT).stat().st_mtime < time.time() - _MAX_UNUSED_SECONDS
            is_gone = "://" not in about.archive and not os.path.exists(about.archive)  # noqa: PTH110 - `Path` may raise
            if is_old or is_gone:
                shutil.rmtree(path, ignore_errors=True)


def folders_above(path: str) -> Iterator[str]:
    """Yield the folders above a path, the innermost first and the empty path last."""
    while path:
        path = path.rpartition("/")[0]
        yield path


def remove_file(folder: Path, name: str) -> None:
    """Remove a file below a folder of the cache, and the folders that are empty then."""
    with suppress(OSError):
        (folder / name).unlink()
        for parent in filter(None, folders_above(name)):
            (folder / parent).rmdir()
