"""Build a session from parts, and render it as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.transcripts import SESSION, Part, transcript, write

from threadline.load import read
from threadline.model.session import Session
from threadline.render import TextOptions, session_to_text
from threadline.thread import find_notifications


def session(folder: Path, *parts: Part, agents: dict[str, list[Any]] | None = None) -> Session:
    """Write the parts as a main transcript with agents below it, and read the session."""
    main = write(folder / f"{SESSION}.jsonl", *transcript(*parts))
    for name, rows in (agents or {}).items():
        write(folder / SESSION / "subagents" / f"agent-{name}.jsonl", *rows)
    return read(main)


def text_lines(sample: Session, **options: Any) -> list[str]:
    """The lines of a session's text, without its header."""
    lines = list(session_to_text(sample, TextOptions(**{"width": 80, **options}), find_notifications(sample)))
    return lines[next((number for number, line in enumerate(lines) if not line), 0) + 1 :]
