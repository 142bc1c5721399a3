"""Anchors: the name that an entry has inside a page, the same in every page that shows it."""

from __future__ import annotations

import re
from pathlib import PurePath

from threadline.model.entries import Entry
from threadline.model.ids import AgentId

_ANCHOR = re.compile(r"(?:(?P<agent>[0-9A-Za-z_-]+)\.)?L(?P<line>[0-9]{1,12})")
_STRANGE = re.compile(r"[^0-9A-Za-z_-]")


def anchor(entry: Entry, agent: AgentId | str | None = None) -> str:
    """`L120` for line 120 of the main transcript, `a1b2c3.L7` for line 7 of an agent's."""
    line = f"L{entry.line.number}"
    return f"{named(agent)}.{line}" if agent is not None else line


def elsewhere(transcript: str) -> str:
    """What stands for an agent in the anchors of rows that it has from another file, as from a workflow's journal.

    >>> elsewhere("/home/projects/-work/5560/subagents/workflows/wf_1/journal.jsonl")
    'wf_1-journal'
    """
    path = PurePath(transcript)
    return named(f"{path.parent.name}-{path.stem}")


def named(agent: AgentId | str) -> str:
    """An agent's id as it stands in anchors and addresses: whatever a file's name holds, it is one plain word."""
    return _STRANGE.sub("_", str(agent))


def parted(text: str) -> tuple[str | None, int] | None:
    """The agent (None: the main one) and the line that an anchor names; None where it is not an anchor."""
    found = _ANCHOR.fullmatch(text)
    return (found["agent"], int(found["line"])) if found else None
