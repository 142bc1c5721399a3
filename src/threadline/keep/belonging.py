"""Belonging: whose a kept file is where its path does not say: agents beside sessions, teams, jobs, plans, pastes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

import msgspec
from msgspec import Struct

from threadline.errors import Unreadable
from threadline.find.side_files import PROJECTS, session_of
from threadline.find.transcripts import agent_id, session_id
from threadline.keep.catalogue import Catalogue, Version

_LARGEST = 4 << 20
"""What says whose it is stands in the first bytes, or in a small file."""
_META = ".meta.json"
_PLAN = re.compile(rb'"(?:slug|planFilePath)"\s*:\s*"(?:[^"]*[/\\])?([^"/\\]+?)(?:\.md)?"')
_BESIDE = 3


class _Named(Struct, rename="camel"):
    session_id: Any = None
    lead_session_id: Any = None


class _Prompt(Struct, rename="camel"):
    session_id: Any = None
    pasted_contents: Any = None


class Belonging:
    """Whose the files of one keep are; what has to be read for it is read once."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._known: dict[tuple[str, str, str], str | None] = {}

    def session(self, version: Version) -> str | None:
        """The session that a file belongs to, if it belongs to one."""
        parts = version.path.split("/")
        by_path = session_of(parts)
        if by_path is not None:
            return by_path
        telling = _telling(parts)
        return self._inside(version, telling) if telling is not None else None

    def along(self, session: str, files: Iterable[Version], everything: Iterable[Version]) -> Iterator[Version]:
        """Files of the same home that a session's transcripts or prompts name: its plans, and what was pasted."""
        of_session = list(files)
        if not of_session:
            return
        machine, home = of_session[0].machine, of_session[0].home
        beside = [one for one in everything if (one.machine, one.home) == (machine, home)]
        plans = {PurePosixPath(one.path).stem: one for one in beside if one.path.startswith("plans/")}
        pastes = {PurePosixPath(one.path).stem: one for one in beside if one.path.startswith("paste-cache/")}
        if plans:
            said = {name for one in of_session if one.path.endswith(".jsonl") for name in self._plans(one)}
            yield from (one for stem, one in plans.items() if stem.split("-agent-")[0] in said or stem in said)
        history = next((one for one in beside if one.path == "history.jsonl"), None)
        if pastes and history is not None:
            hashes = set(self._pasted(history, session))
            yield from (one for stem, one in pastes.items() if stem in hashes)

    def _inside(self, version: Version, telling: str) -> str | None:
        """The session that the file which tells of it names."""
        key = (version.machine, version.home, telling)
        if key not in self._known:
            versions = self._catalogue.versions.get(key)
            self._known[key] = self._named(versions[-1]) if versions else None
        return self._known[key]

    def _named(self, version: Version) -> str | None:
        data = self._head(version)
        # A transcript says it in a line, the others as a whole.
        for text in data.splitlines() if version.path.endswith(".jsonl") else [data]:
            told = _decoded(text, _Named)
            for name in (told.session_id, told.lead_session_id) if told is not None else ():
                if isinstance(name, str) and (found := session_id(name)):
                    return found
        return None

    def _head(self, version: Version) -> bytes:
        """The first bytes of a file; what is damaged says nothing, and `verify` tells it."""
        head = b""
        try:
            for data in self._catalogue.data(version):
                head += data
                if len(head) >= _LARGEST or version.path.endswith(".jsonl"):
                    break
        except Unreadable:
            return head
        return head

    def _plans(self, version: Version) -> Iterator[str]:
        try:
            for data in self._catalogue.data(version):
                yield from (name.decode(errors="replace") for name in _PLAN.findall(data))
        except Unreadable:
            return

    def _pasted(self, history: Version, session: str) -> Iterator[str]:
        try:
            data = b"".join(self._catalogue.data(history))
        except Unreadable:
            return
        for line in data.splitlines():
            if b"contentHash" not in line or session.encode() not in line:
                continue
            told = _decoded(line, _Prompt)
            if told is not None and told.session_id == session and isinstance(told.pasted_contents, dict):
                for one in told.pasted_contents.values():
                    if isinstance(one, dict) and isinstance(one.get("contentHash"), str):
                        yield one["contentHash"]


def _telling(parts: list[str]) -> str | None:
    """The path of the file that names the session which this one belongs to."""
    if parts[0] == PROJECTS and len(parts) == _BESIDE:
        name = parts[2].removesuffix(_META) + ".jsonl" if parts[2].endswith(_META) else parts[2]
        return "/".join([*parts[:2], name]) if agent_id(name) is not None else None
    if len(parts) < _BESIDE:
        return None
    if parts[0] in ("teams", "tasks"):
        return f"teams/{parts[1]}/config.json"
    return f"jobs/{parts[1]}/state.json" if parts[0] == "jobs" else None


def _decoded(data: bytes, shape: type[Any]) -> Any:
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
