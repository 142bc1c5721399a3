"""What a transcript's path says about it, in every layout Claude Code has used.

====================================================  ==============  ===========================
below `projects/<folder>/`                            kind            since
====================================================  ==============  ===========================
`<session>.jsonl`                                     main            about 0.2.9x
`agent-<id>.jsonl`                                    agent           2.0.28 to 2.1.1
`<session>/subagents/**/agent-<id>.jsonl`             agent           2.1.2
`<session>/subagents/workflows/<run>/agent-*.jsonl`   workflow-agent  2.1.154
`<session>/subagents/workflows/<run>/journal.jsonl`   journal         2.1.154
any other `.jsonl`                                    other
====================================================  ==============  ===========================
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from threadline.model.found import Home, Transcript, TranscriptKind
from threadline.model.ids import AgentId, SessionId

if TYPE_CHECKING:
    from collections.abc import Sequence

SUFFIX = ".jsonl"
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
# Versions of UUID are not told apart: the format has used several. A longer run of hex digits is no UUID.
_STARTS_WITH_UUID = re.compile(rf"({_UUID})(?![0-9a-z])", re.IGNORECASE)
_MAIN = re.compile(rf"({_UUID})\.jsonl", re.IGNORECASE)
_AGENT = re.compile(r"agent-(.+)\.jsonl", re.IGNORECASE | re.DOTALL)


class Naming(NamedTuple):
    """What a path says: the kind of transcript, and the session, agent and workflow run it names."""

    kind: TranscriptKind
    session: SessionId | None = None
    agent: AgentId | None = None
    run: str | None = None


def naming(parts: Sequence[str]) -> Naming:
    """Read the path of a `.jsonl`, given as its parts below the project's folder."""
    *above, name = parts
    if not above:
        return _beside_sessions(name)
    session = SessionId(session_id(above[0]) or above[0])
    if len(above) == 1 or above[1] != "subagents":
        return Naming(TranscriptKind.OTHER, session_id(above[0]))
    run = _run(above[2:])
    if (agent := agent_id(name)) is not None:
        kind = TranscriptKind.AGENT if run is None else TranscriptKind.WORKFLOW_AGENT
        return Naming(kind, session, agent, run)
    if run is not None and name == "journal.jsonl":
        return Naming(TranscriptKind.JOURNAL, session, run=run)
    return Naming(TranscriptKind.OTHER, session, run=run)


def transcript(
    path: Path, home: Home, folder: str, status: os.stat_result, below: Sequence[str], *, meta: Path | None = None
) -> Transcript:
    """Make the transcript at a path; `below` is that path's parts below the project's folder."""
    named = naming(below)
    return Transcript(
        path=path,
        home=home,
        folder=folder,
        kind=named.kind,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        session=named.session,
        agent=named.agent,
        run=named.run,
        meta=meta if named.agent is not None else None,
    )


def session_id(name: str) -> SessionId | None:
    """Give the UUID that a file or directory name begins with, in the lower case that entries use."""
    match = _STARTS_WITH_UUID.match(name)
    return SessionId(match[1].lower()) if match else None


def agent_id(name: str) -> AgentId | None:
    """Give the id in `agent-<id>.jsonl`."""
    match = _AGENT.fullmatch(name)
    return AgentId(match[1]) if match else None


_LAST = frozenset(SUFFIX[-1] + SUFFIX[-1].upper())


def is_transcript(name: str) -> bool:
    """Say whether a file of this name below a project is a transcript, of whatever kind."""
    return name[-1:] in _LAST and name.lower().endswith(SUFFIX)


def _beside_sessions(name: str) -> Naming:
    if match := _MAIN.fullmatch(name):
        return Naming(TranscriptKind.MAIN, SessionId(match[1].lower()))
    if (agent := agent_id(name)) is not None:
        return Naming(TranscriptKind.AGENT, agent=agent)
    return Naming(TranscriptKind.OTHER)


def _run(directories: Sequence[str]) -> str | None:
    if "workflows" not in directories:
        return None
    below = directories[directories.index("workflows") + 1 :]
    return below[0] if below else None
