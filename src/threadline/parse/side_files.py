"""Read side files (todos, tasks, agent metadata, statistics, history), leniently, as the type of their kind."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from threadline.errors import Error
from threadline.files import open_transcript
from threadline.model.homes import SideFile, SideFileKind
from threadline.model.places import Place, Problem, ProblemKind
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
from threadline.shape import UnknownPart, find_unknown, fit, lenient_loads

# Side files are small. A larger file is not one of these types.
_MAX_SIZE = 64 * 1024 * 1024
# An editor's lock file contains the token for talking to the editor. It is never returned.
_SECRET_KEYS = frozenset({"authToken"})


class SideReading(Struct, frozen=True):
    """The content of a side file, with its problems and unknown fields. None if its kind has no type."""

    content: Any
    problems: tuple[Problem, ...] = ()
    unknown: tuple[UnknownPart, ...] = ()


def read_side_bytes(path: Path) -> bytes:
    """Return the bytes of a side file, 64 MB at most."""
    descriptor = open_transcript(path)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_MAX_SIZE)


def decode_side_value(data: bytes, shape: Any, place: Place) -> SideReading:
    """Decode a JSON value leniently, with its problems."""
    bare = data.strip(b"\0 \t\r\n")
    if not bare:
        return SideReading(None)
    try:
        loaded = lenient_loads(bare)
    except (ValueError, RecursionError):
        problem = Problem(ProblemKind.FOREIGN, place, "not JSON", recovered=False, lost=len(data))
        return SideReading(None, (problem,))
    value = loaded.value
    if isinstance(value, dict):
        value = {key: item for key, item in value.items() if key not in _SECRET_KEYS}
    content, misfits = fit(value, shape)
    problems = [Problem(ProblemKind(kind), place, message) for kind, message in loaded.defects]
    problems += [Problem(ProblemKind.WRONG_TYPE, place.within(misfit.json_path), misfit.message) for misfit in misfits]
    return SideReading(content, tuple(problems), tuple(find_unknown(value, shape)))


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
    return decode_side_value(read_side_bytes(side.path), shape, Place(str(side.path), 1))


def read_agent_meta(path: Path) -> AgentMeta | None:
    """Read the `.meta.json` beside an agent's transcript; None if it is missing or unreadable."""
    with suppress(Error):
        content = decode_side_value(read_side_bytes(path), AgentMeta, Place(str(path), 1)).content
        return content if isinstance(content, AgentMeta) else None
    return None


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
