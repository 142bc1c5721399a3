"""The session store, in a folder or in a SQLite file."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from threadline.store.database import SessionDatabase, is_database
from threadline.store.folder import SessionFolder
from threadline.store.keys import SessionKey, StoredSession, StoredSummary


class SessionStore:
    """Stores the sessions of the SDK in a folder, or in a SQLite file. Several processes may use the same one.

    A path that ends in `.db`, `.sqlite` or `.sqlite3` names a SQLite file, any other path a folder. Entries are
    appended once: those whose `uuid` is already stored in a transcript are ignored. Files and folders can be read by
    their owner only.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._backend: SessionDatabase | SessionFolder = (
            SessionDatabase(self.path) if is_database(self.path) else SessionFolder(self.path)
        )

    def __repr__(self) -> str:
        return f"SessionStore({str(self.path)!r})"

    async def append(self, key: SessionKey, entries: list[Any]) -> None:
        """Add entries to a transcript, except those that it contains."""
        await asyncio.to_thread(self._backend.append, key, entries)

    async def load(self, key: SessionKey) -> list[Any] | None:
        """Return the entries of a transcript; None if there is none."""
        return await asyncio.to_thread(self._backend.load, key)

    async def list_sessions(self, project_key: str) -> list[StoredSession]:
        """List the sessions of a project."""
        return await asyncio.to_thread(self._backend.list_sessions, project_key)

    async def list_session_summaries(self, project_key: str) -> list[StoredSummary]:
        """List what the SDK keeps about each session of a project. Only what is new since the last time is read."""
        return await asyncio.to_thread(self._backend.list_session_summaries, project_key)

    async def list_subkeys(self, key: SessionKey) -> list[str]:
        """List the subpaths of a session's other transcripts."""
        return await asyncio.to_thread(self._backend.list_subkeys, key)

    async def delete(self, key: SessionKey) -> None:
        """Delete a transcript; without a subpath, everything that belongs to the session."""
        await asyncio.to_thread(self._backend.delete, key)
