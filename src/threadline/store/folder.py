"""Store sessions in a folder that is a Claude home: transcripts are below `projects/`, as Claude Code writes them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from threadline.files import make_private_folders, write_all, write_file
from threadline.home_files import OutsideHomeError, open_unbuffered, read_in_home
from threadline.locks import hold_lock
from threadline.store.keys import (
    METADATA,
    Entry,
    SessionKey,
    StoredSession,
    StoredSummary,
    check_name,
    encode_entry,
    load_fold,
    transcript_path,
)

_FileState = tuple[int, int, int]
_OWN_FOLDER = "session-store"
_MAX_SMALL_FILE = 1 << 24
_OWNER_ONLY = 0o600


class SessionFolder:
    """The sessions in a folder. Several processes may use it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[Path, tuple[_FileState, set[str]]] = {}

    def _path(self, key: SessionKey) -> Path:
        return self.folder / "projects" / f"{transcript_path(key)}.jsonl"

    def _transcripts(self, project_key: str) -> list[Path]:
        """The transcripts of a project's sessions."""
        project = self.folder / "projects" / check_name(project_key)
        return sorted(path for path in project.glob("*.jsonl") if path.is_file() and not path.is_symlink())

    def append(self, key: SessionKey, entries: list[Entry]) -> None:
        """Add entries to a transcript, except those that it contains."""
        path = self._path(key)
        if not entries:
            return
        self._check_parent(path)
        make_private_folders(path.parent)
        with hold_lock(self._own_file("lock")):
            known = self._known_ids(path)
            metadata: Entry | None = None
            added: dict[str, None] = {}
            lines = []
            for entry in entries:
                id_ = entry.get("uuid")
                if entry.get("type") == METADATA and key.get("subpath"):
                    metadata = entry
                elif not isinstance(id_, str):
                    lines.append(encode_entry(entry))
                elif id_ not in known and id_ not in added:
                    lines.append(encode_entry(entry))
                    added[id_] = None
            if metadata is not None:
                # Claude Code writes it to a file beside the transcript. The last one counts.
                values = {name: value for name, value in metadata.items() if name != "type"}
                write_file(_metadata_path(path), encode_entry(values))
            # What was written is known only when all of it is. After an error, the transcript is read again.
            self._known.pop(path, None)
            if lines:
                _append_lines(path, lines)
            known.update(added)
            if path.exists():
                self._known[path] = _file_state(path), known

    def _known_ids(self, path: Path) -> set[str]:
        """The uuids in a transcript. It is read only if another process has changed it."""
        if not path.exists():
            return set()
        state, known = self._known.get(path, (None, set()))
        if state == _file_state(path):
            return known
        ids = (entry.get("uuid") for entry in self._read_entries(path))
        return {id_ for id_ in ids if isinstance(id_, str)}

    def load(self, key: SessionKey) -> list[Any] | None:
        """Return the entries of a transcript; None if there is none."""
        path = self._path(key)
        entries: list[Any] = []
        if path.is_file():
            entries = list(self._read_entries(path))
        elif not (key.get("subpath") and _metadata_path(path).is_file()):
            return None
        if key.get("subpath"):
            with suppress(OSError, ValueError, RecursionError):
                values = json.loads(read_in_home(_metadata_path(path), limit=_MAX_SMALL_FILE, home=self.folder))
                if isinstance(values, dict):
                    entries.append({**values, "type": METADATA})
        return entries

    def list_sessions(self, project_key: str) -> list[StoredSession]:
        """List the sessions of a project."""
        sessions: list[StoredSession] = []
        for path in self._transcripts(project_key):
            with suppress(FileNotFoundError):  # deleted meanwhile
                sessions.append({"session_id": path.stem, "mtime": _milliseconds(path.stat())})
        return sessions

    def list_subkeys(self, key: SessionKey) -> list[str]:
        """List the subpaths of a session's other transcripts."""
        folder = self._path({"project_key": key["project_key"], "session_id": key["session_id"]}).with_suffix("")
        paths = (path for path in folder.rglob("*.jsonl") if path.is_file() and not path.is_symlink())
        return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in paths)

    def delete(self, key: SessionKey) -> None:
        """Delete a transcript; without a subpath, everything that belongs to the session."""
        path = self._path(key)
        if not self.folder.is_dir():
            return
        self._check_parent(path)
        with hold_lock(self._own_file("lock")):
            self._known = {other: known for other, known in self._known.items() if other != path}
            path.unlink(missing_ok=True)
            if key.get("subpath"):
                _metadata_path(path).unlink(missing_ok=True)
                return
            self._summary_path(path).unlink(missing_ok=True)
            folder = path.with_suffix("")
            self._known = {other: known for other, known in self._known.items() if folder not in other.parents}
            if folder.is_dir() and not folder.is_symlink():
                shutil.rmtree(folder)

    def list_session_summaries(self, project_key: str) -> list[StoredSummary]:
        """List what the SDK keeps about each session of a project. Only what is new since the last time is read."""
        if not self._transcripts(project_key):
            return []
        fold = load_fold()
        with hold_lock(self._own_file("lock")):
            return [self._summarize(path, project_key, fold) for path in self._transcripts(project_key)]

    def _summarize(self, path: Path, project_key: str, fold: Callable[..., Any]) -> StoredSummary:
        """The summary of a session, updated with what was written since it was stored."""
        stored: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            stored = json.loads(read_in_home(self._summary_path(path), limit=_MAX_SMALL_FILE, home=self.folder))
        status = path.stat()
        size, summary = stored.get("size", 0), stored.get("summary")
        if size != status.st_size or summary is None:
            if size > status.st_size:
                size, summary = 0, None
            key = {"project_key": project_key, "session_id": path.stem}
            summary = fold(summary, key, list(self._read_entries(path, size)))
            value = {"size": status.st_size, "summary": summary}
            target = self._summary_path(path)
            make_private_folders(target.parent)
            write_file(target, json.dumps(value).encode(), durable=False)
        return {"session_id": path.stem, "mtime": _milliseconds(status), "data": summary["data"]}

    def _read_entries(self, path: Path, start: int = 0) -> Iterator[dict[str, Any]]:
        """The entries of a transcript from a byte on. Lines that are not JSON objects are skipped."""
        with open_unbuffered(path, home=self.folder) as file:
            file.seek(start)
            data = file.read()
        for line in data.split(b"\n"):
            with suppress(ValueError, RecursionError):
                value = json.loads(line) if line else None
                if isinstance(value, dict):
                    yield value

    def _check_parent(self, path: Path) -> None:
        """Raise if the folder of a transcript is a link that leads out of the store."""
        real = path.parent.resolve()
        if not real.is_relative_to(self.folder.resolve()):
            raise OutsideHomeError(path, str(real))

    def _summary_path(self, path: Path) -> Path:
        return self._own_file("summaries") / path.parent.name / f"{path.stem}.json"

    def _own_file(self, name: str) -> Path:
        folder = self.folder / _OWN_FOLDER
        make_private_folders(folder)
        return folder / name


def _append_lines(path: Path, lines: list[bytes]) -> None:
    """Append lines. A line that a crash has cut is ended first."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags, _OWNER_ONLY), "r+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":
                lines.insert(0, b"\n")
        write_all(file, b"".join(lines))
        os.fsync(file.fileno())


def _file_state(path: Path) -> _FileState:
    """What differs if another process has written to a file, or has replaced it."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _metadata_path(path: Path) -> Path:
    return path.with_suffix(".meta.json")


def _milliseconds(status: os.stat_result) -> int:
    return status.st_mtime_ns // 1_000_000
