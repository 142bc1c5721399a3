"""Homes as the index knows them: their transcripts need not be listed again."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from threadline.find.looking import look_again
from threadline.find.transcripts import SUFFIX, naming
from threadline.model.found import Found, Home, Transcript, TranscriptKind
from threadline.model.ids import AgentId, SessionId
from threadline.model.problem import Problem

_ASKED = """
SELECT h.path, p.folder, t.path, t.kind, t.session, t.agent, t.size, t.mtime_ns
FROM transcripts t JOIN projects p USING(project_id) JOIN homes h ON h.home_id = t.home_id
"""
_KINDS = {str(kind): kind for kind in TranscriptKind}
_WITH_RUN = frozenset({TranscriptKind.WORKFLOW_AGENT, TranscriptKind.JOURNAL})
_META = ".meta.json"


def found(
    connection: sqlite3.Connection, homes: Sequence[Home], problems: Sequence[Sequence[Problem]] | None = None
) -> list[Found]:
    """What `look` without side files gives of each home, of an index that is fresh.

    An agent's `meta` is where it would lie; whether it does is told when it is opened. `problems` are those of the
    look that found the index to be fresh, or of another, home by home.
    """
    by_home: dict[str, list[Transcript]] = {str(home.path): [] for home in homes}
    named = {str(home.path): home for home in homes}
    rows = connection.execute(_ASKED).fetchall()
    for one in _transcripts(rows, named):
        by_home[str(one.home.path)].append(one)
    looked = [
        look_again(home, sorted(by_home[str(home.path)], key=lambda one: str(one.path)), told)
        for home, told in zip(homes, problems or [()] * len(homes), strict=True)
    ]
    return list(_once(looked)) if len(looked) > 1 else looked


def _once(looked: Sequence[Found]) -> Iterator[Found]:
    """Each home; of one that shares its projects with another through a link, only what the index calls its own."""
    met: set[str] = set()
    for one in looked:
        projects = os.path.realpath(one.home.path / "projects")
        own = {transcript.folder for transcript in one.transcripts}
        kept = tuple(project for project in one.projects if project.folder in own)
        yield replace(one, projects=kept) if projects in met else one
        met.add(projects)


def parted(problems: Sequence[Problem], homes: Sequence[Home]) -> list[list[Problem]]:
    """Problems home by home."""
    return [[one for one in problems if str(one.place.transcript).startswith(str(home.path))] for home in homes]


def _transcripts(rows: list[tuple[object, ...]], homes: dict[str, Home]) -> Iterator[Transcript]:
    directories: dict[str, Path] = {}
    for top, folder, path, kind, session, agent, size, mtime_ns in rows:
        home = homes.get(_text(top))
        if home is None:
            continue
        text = _text(path)
        directory, _, name = text.rpartition(os.sep)
        if directory not in directories:
            directories[directory] = Path(directory + os.sep)
        of_kind = _KINDS[str(kind)]
        yield Transcript(
            directories[directory] / name,
            home,
            _text(folder),
            of_kind,
            int(size),  # type: ignore[call-overload]
            int(mtime_ns),  # type: ignore[call-overload]
            SessionId(str(session)) if session is not None else None,
            AgentId(str(agent)) if agent is not None else None,
            _run(text, home) if of_kind in _WITH_RUN else None,
            directories[directory] / f"{name[: -len(SUFFIX)]}{_META}" if agent is not None else None,
        )


def _text(kept: Any) -> str:
    return kept if kept.__class__ is str else os.fsdecode(kept)


def _run(path: str, home: Home) -> str | None:
    parts = Path(path).parts
    below = parts[len(home.path.parts) + 2 :]  # projects/<folder>
    return naming(below).run if below else None
