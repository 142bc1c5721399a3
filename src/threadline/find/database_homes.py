"""Session stores in SQLite files (`threadline.store`), copied into the cache folder and read like any other home.

Each file has a folder there. Only the transcripts that changed since the last time are written again.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from threadline.errors import NotFound, Unreadable
from threadline.files import AtomicFile, make_private_folders, read_file, write_file
from threadline.find.home_copies import FILES, cached_folder, remove_file, remove_unused, write_about
from threadline.find.layout import META_SUFFIX, PROJECTS, TRANSCRIPT_SUFFIX
from threadline.locks import LockBusy, hold_lock
from threadline.store import StoredTranscript, read_transcripts

_FOLDER, _LOCK, _VERSIONS = "stores", "lock", "transcripts.json"
_MAX_VERSIONS_BYTES = 1 << 28
_TEMPORARY = ".copying"
_Versions = dict[str, tuple[int, int, int]]


def copy_store(path: Path) -> Path:
    """Return a copy of a session store as a home. What changed since the last time is copied.

    Raises:
        NotFound: the SQLite file is not a session store.
        Unreadable: it is damaged, or cannot be copied.
    """
    real = Path(os.path.realpath(path))
    folder = cached_folder(_FOLDER, real.name, os.fspath(real))
    try:
        make_private_folders(folder)
        with hold_lock(folder / _LOCK), read_transcripts(real) as transcripts:
            if transcripts is None:
                raise NotFound(
                    f"{str(path)!r} is not a session store. Name a home, such as ~/.claude, or a file that "
                    "threadline.store.SessionStore wrote."
                )
            _copy_transcripts(transcripts, folder)
            write_about(folder, os.fspath(real), [""], {})
            remove_unused(folder.parent, keep=folder)
    except LockBusy:
        raise Unreadable(f"Another process is copying {str(path)!r}. Try again when it has finished.") from None
    except OSError as error:
        raise Unreadable(f"{str(path)!r} cannot be copied: {error.strerror or error}.") from error
    return folder / FILES


def _copy_transcripts(transcripts: list[StoredTranscript], folder: Path) -> None:
    known = _read_versions(folder / _VERSIONS)
    projects = folder / FILES / PROJECTS
    make_private_folders(projects)
    for name in known.keys() - {transcript.path for transcript in transcripts}:
        for suffix in (TRANSCRIPT_SUFFIX, META_SUFFIX):
            remove_file(projects, f"{name}{suffix}")
    for transcript in transcripts:
        target = projects / f"{transcript.path}{TRANSCRIPT_SUFFIX}"
        if known.get(transcript.path) == transcript.version and target.exists():
            continue
        make_private_folders(target.parent)
        with AtomicFile(target.parent, owner=_TEMPORARY, durable=False) as file:
            for line in transcript.read_lines():
                file.write(line)
            file.commit(target.name, mtime_ns=transcript.version[-1] * 1_000_000)
        meta = target.with_name(f"{target.stem}{META_SUFFIX}")
        if transcript.metadata is not None:
            write_file(meta, transcript.metadata, durable=False)
        else:  # the transcript that it described was deleted, and another one has its name
            meta.unlink(missing_ok=True)
    versions: _Versions = {transcript.path: transcript.version for transcript in transcripts}
    write_file(folder / _VERSIONS, msgspec.json.encode(versions), durable=False)


def _read_versions(path: Path) -> _Versions:
    try:
        return msgspec.json.decode(
            read_file(path, follow_symlinks=False, limit=_MAX_VERSIONS_BYTES), type=dict[str, tuple[int, int, int]]
        )
    except (OSError, ValueError):
        return {}
