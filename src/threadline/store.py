"""A session store for `claude-agent-sdk`, whose folder is a Claude home.

    from claude_agent_sdk import ClaudeAgentOptions, query
    from threadline.store import SessionStore

    options = ClaudeAgentOptions(session_store=SessionStore("sessions"))

The SDK copies each entry to the store while a session runs, and resumes sessions from it on any machine. Transcripts
are stored as Claude Code stores them, below `projects/`, so `threadline --home sessions …` reads them like any others.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NotRequired, Required, TypedDict

from threadline.errors import BadQuery, Missing
from threadline.files import make_private_folders, write_all, write_file
from threadline.home_files import OutsideHomeError, open_unbuffered, read_in_home
from threadline.locks import hold_lock

Entry = Mapping[str, Any]
_FileState = tuple[int, int, int]
_OWN_FOLDER = "session-store"
_METADATA = "agent_metadata"
_UNSAFE_CHARACTER = re.compile(r"[/\\:\0]")
_MAX_NAME_BYTES = 240
_OWNER_ONLY = 0o600
_MAX_SMALL_FILE = 1 << 24


class SessionKey(TypedDict):
    """The name of a transcript: a session's own, or with `subpath` another of its files, such as a subagent's."""

    project_key: Required[str]
    session_id: Required[str]
    subpath: NotRequired[str | None]


class StoredSession(TypedDict):
    """A session and when it was last written, in milliseconds since 1970."""

    session_id: str
    mtime: int


class SessionSummary(StoredSession):
    """What the SDK keeps about a session. Only the SDK interprets `data`."""

    data: dict[str, Any]


class SessionStore:
    """Stores the sessions of the SDK in a folder. Several processes may use the same folder.

    Entries are appended once: those whose `uuid` is already stored in a transcript are ignored. Files and folders can
    be read by their owner only.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._known: dict[Path, tuple[_FileState, set[str]]] = {}

    def __repr__(self) -> str:
        return f"SessionStore({str(self.folder)!r})"

    async def append(self, key: SessionKey, entries: list[Any]) -> None:
        """Add entries to a transcript, except those that it contains."""
        await asyncio.to_thread(self._append, key, entries)

    async def load(self, key: SessionKey) -> list[Any] | None:
        """Return the entries of a transcript; None if there is none."""
        return await asyncio.to_thread(self._load, key)

    async def list_sessions(self, project_key: str) -> list[StoredSession]:
        """List the sessions of a project."""
        return await asyncio.to_thread(lambda: [_stored(path) for path in self._transcripts(project_key)])

    async def list_session_summaries(self, project_key: str) -> list[SessionSummary]:
        """List what the SDK keeps about each session of a project. Only what is new since the last time is read."""
        return await asyncio.to_thread(self._list_summaries, project_key)

    async def list_subkeys(self, key: SessionKey) -> list[str]:
        """List the subpaths of a session's other transcripts."""
        return await asyncio.to_thread(self._list_subkeys, key)

    async def delete(self, key: SessionKey) -> None:
        """Delete a transcript; without a subpath, everything that belongs to the session."""
        await asyncio.to_thread(self._delete, key)

    def _path(self, key: SessionKey) -> Path:
        project, session = _check_name(key["project_key"]), _check_name(key["session_id"])
        subpath = key.get("subpath")
        if not subpath:
            return self.folder / "projects" / project / f"{session}.jsonl"
        parts = [_check_name(part) for part in subpath.split("/")]
        return self.folder / "projects" / project / session / Path(*parts[:-1]) / f"{parts[-1]}.jsonl"

    def _transcripts(self, project_key: str) -> list[Path]:
        """The transcripts of a project's sessions."""
        project = self.folder / "projects" / _check_name(project_key)
        return sorted(path for path in project.glob("*.jsonl") if path.is_file() and not path.is_symlink())

    def _append(self, key: SessionKey, entries: Iterable[Entry]) -> None:
        path = self._path(key)
        entries = list(entries)
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
                if entry.get("type") == _METADATA and key.get("subpath"):
                    metadata = entry
                elif not isinstance(id_, str):
                    lines.append(_encode(entry))
                elif id_ not in known and id_ not in added:
                    lines.append(_encode(entry))
                    added[id_] = None
            if metadata is not None:
                # Claude Code writes it to a file beside the transcript. The last one counts.
                values = {name: value for name, value in metadata.items() if name != "type"}
                write_file(_metadata_path(path), _encode(values))
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

    def _load(self, key: SessionKey) -> list[Any] | None:
        path = self._path(key)
        entries: list[Any] = []
        if path.is_file():
            entries = list(self._read_entries(path))
        elif not (key.get("subpath") and _metadata_path(path).is_file()):
            return None
        if key.get("subpath"):
            with suppress(OSError, ValueError):
                values = json.loads(read_in_home(_metadata_path(path), limit=_MAX_SMALL_FILE, home=self.folder))
                entries.append({**values, "type": _METADATA})
        return entries

    def _list_subkeys(self, key: SessionKey) -> list[str]:
        folder = self._path({"project_key": key["project_key"], "session_id": key["session_id"]}).with_suffix("")
        paths = (path for path in folder.rglob("*.jsonl") if path.is_file() and not path.is_symlink())
        return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in paths)

    def _delete(self, key: SessionKey) -> None:
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

    def _list_summaries(self, project_key: str) -> list[SessionSummary]:
        transcripts = self._transcripts(project_key)
        if not transcripts:
            return []
        fold = _load_fold()
        with hold_lock(self._own_file("lock")):
            return [self._summarize(path, project_key, fold) for path in transcripts]

    def _summarize(self, path: Path, project_key: str, fold: Callable[..., Any]) -> SessionSummary:
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


def _check_name(name: str) -> str:
    """A part of a key, which becomes the name of a file.

    Raises:
        BadQuery: it cannot be one, or leads out of the store.
    """
    is_too_long = len(os.fsencode(name)) > _MAX_NAME_BYTES
    if not name or name in {".", ".."} or is_too_long or _UNSAFE_CHARACTER.search(name):
        raise BadQuery(f"{name!r} cannot be the name of a file. Use project keys and session ids without / \\ and :.")
    return name


def _encode(entry: Entry) -> bytes:
    try:
        return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can only escape
        return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


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


def _stored(path: Path) -> StoredSession:
    return {"session_id": path.stem, "mtime": _milliseconds(path.stat())}


def _milliseconds(status: os.stat_result) -> int:
    return status.st_mtime_ns // 1_000_000


def _load_fold() -> Callable[..., Any]:
    try:
        from claude_agent_sdk import fold_session_summary  # noqa: PLC0415 - only the SDK's own programs have it
    except ImportError as error:
        raise Missing("Summaries of sessions need the SDK: pip install claude-agent-sdk") from error
    fold: Callable[..., Any] = fold_session_summary
    return fold
