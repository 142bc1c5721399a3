"""Files beside the transcripts: bytes to what they hold, with what was wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from msgspec import Struct

from threadline.model.found import SideFile, SideFileKind
from threadline.model.place import Place
from threadline.model.problem import Problem, ProblemKind
from threadline.model.results.tasks import Task, Todo
from threadline.model.side import (
    AgentMeta,
    HistoryPrompt,
    IdeLock,
    InboxMessage,
    Job,
    LiveSession,
    SessionsIndex,
    StatsCache,
    Team,
    TitleFile,
    WorkflowRun,
)
from threadline.parse.chunks import chunks, open_transcript
from threadline.shape import fit, loads, unknown
from threadline.shape.unknown import Unknown

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
"""The side files that hold one JSON value, and its shape."""

# A side file is small; what is bigger than this is not one of the shapes above.
_MOST = 64 * 1024 * 1024
# An editor's lock holds the key to talk to it, and nobody but the editor's peer has any business with that.
_WITHHELD = frozenset({"authToken"})


class SideReading(Struct, frozen=True):
    """What a side file holds: typed where its kind has a shape, else None; what was wrong, and what is unknown."""

    content: Any
    problems: tuple[Problem, ...] = ()
    unknown: tuple[Unknown, ...] = ()


def read_side_file(side: SideFile) -> SideReading:
    """Read a side file whose kind has a shape. Secrets, settings and plain files are never opened.

    Raises:
        NotFound: it is gone.
        Unreadable: the machine refuses to let it be read.
    """
    if side.kind is SideFileKind.HISTORY:
        return _history(side.path)
    shape = SIDE_SHAPES.get(side.kind)
    if shape is None or side.path.suffix not in {".json", ".lock"}:
        return SideReading(None)
    return _value(_bytes(side.path), shape, Place(str(side.path), 1))


def _bytes(path: Path) -> bytes:
    descriptor = open_transcript(path)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_MOST)


def _value(data: bytes, shape: Any, place: Place) -> SideReading:
    bare = data.strip(b"\0 \t\r\n")
    if not bare:
        return SideReading(None)
    try:
        loaded = loads(bare)
    except (ValueError, RecursionError):
        problem = Problem(ProblemKind.FOREIGN, place, "not JSON", recovered=False, lost=len(data))
        return SideReading(None, (problem,))
    value = loaded.value
    if isinstance(value, dict):
        value = {key: item for key, item in value.items() if key not in _WITHHELD}
    content, misfits = fit(value, shape)
    problems = [Problem(ProblemKind(kind), place, message) for kind, message in loaded.forgiven]
    problems += [Problem(ProblemKind.WRONG_TYPE, place.within(misfit.json_path), misfit.message) for misfit in misfits]
    return SideReading(content, tuple(problems), tuple(unknown(value, shape)))


def _history(path: Path) -> SideReading:
    prompts: list[HistoryPrompt] = []
    problems: list[Problem] = []
    strange: list[Unknown] = []
    number = 1
    for chunk in chunks(path):
        for raw in chunk.lines:
            reading = _value(raw, HistoryPrompt, Place(str(path), number, length=len(raw)))
            number += 1
            problems += reading.problems
            strange += reading.unknown
            if reading.content is not None:
                prompts.append(reading.content)
    return SideReading(prompts, tuple(problems), tuple(strange))
