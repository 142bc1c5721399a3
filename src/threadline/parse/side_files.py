"""Read side files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from threadline.errors import Error
from threadline.model.homes import SideFile, SideFileKind
from threadline.model.places import Place, Problem
from threadline.model.results import Task, Todo
from threadline.model.side_files import (
    AgentMeta,
    HistoryPrompt,
    IdeLock,
    InboxMessage,
    Job,
    LiveSession,
    SessionsIndex,
    Team,
    TitleFile,
    WorkflowRun,
)
from threadline.model.usage import StatsCache
from threadline.parse.lines import read_chunks
from threadline.parse.side_values import SideReading, decode_side_value, read_side_bytes, read_side_content
from threadline.shape import UnknownPart

SIDE_SHAPES: dict[SideFileKind, Any] = {
    SideFileKind.TODOS: list[Todo],
    SideFileKind.TASK: Task,
    SideFileKind.TEAM: Team,
    SideFileKind.INBOX: list[InboxMessage],
    SideFileKind.AGENT_META: AgentMeta,
    SideFileKind.SESSIONS_INDEX: SessionsIndex,
    SideFileKind.STATS_CACHE: StatsCache,
    SideFileKind.LIVE_SESSION: LiveSession,
    SideFileKind.WORKFLOW_RUN: WorkflowRun,
    SideFileKind.JOB: Job,
    SideFileKind.IDE_LOCK: IdeLock,
    SideFileKind.TITLE: TitleFile,
}
"""The side files that contain one JSON value, and its type."""


def read_side_file(side: SideFile) -> SideReading:
    """Read a side file whose kind has a type. Secrets, settings and plain files are never opened.

    Raises:
        NotFound: it does not exist any more.
        Unreadable: it cannot be read.
    """
    if side.kind is SideFileKind.HISTORY:
        return _read_history(side.path)
    shape = SIDE_SHAPES.get(side.kind)
    if shape is None or side.path.suffix not in {".json", ".lock"}:
        return SideReading(None)
    return decode_side_value(read_side_bytes(side.path, side.home.path), shape, Place(str(side.path), 1))


def read_todos(path: Path, home: Path) -> list[Todo] | None:
    """Read a file under `todos/` of a home; None if it is missing or unreadable."""
    with suppress(Error):
        content = decode_side_value(read_side_bytes(path, home), list[Todo], Place(str(path), 1)).content
        return content if isinstance(content, list) else None
    return None


def read_task(path: Path, home: Path) -> Task | None:
    """Read a file under `tasks/` of a home; None if it is missing or unreadable."""
    return read_side_content(path, home, Task)


def _read_history(path: Path) -> SideReading:
    prompts: list[HistoryPrompt] = []
    problems: list[Problem] = []
    unknown: list[UnknownPart] = []
    number = 1
    for chunk in read_chunks(path):
        for raw in chunk.lines:
            reading = decode_side_value(raw, HistoryPrompt, Place(str(path), number, length=len(raw)))
            number += 1
            problems += reading.problems
            unknown += reading.unknown
            if reading.content is not None:
                prompts.append(reading.content)
    return SideReading(prompts, tuple(problems), tuple(unknown))
