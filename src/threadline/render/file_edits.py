"""The edit of a file as a row for programs, with the same keys in every interface."""

from __future__ import annotations

from typing import Any

from threadline.model.edits import FileEdit


def edit_row(edit: FileEdit) -> dict[str, Any]:
    """An edit as a row for programs."""
    return {
        "timestamp": edit.timestamp,
        "path": edit.path,
        "how": str(edit.how),
        "tool": edit.tool,
        "session": edit.session,
        "project": edit.project,
        "agent": edit.agent,
        "turn": edit.turn,
        "prompt": edit.prompt,
        "model": edit.model,
        "call": edit.call,
        "place": str(edit.place),
        "source": str(edit.source),
        "proven": edit.proven,
        "statement": edit.statement,
        "diff": edit.diff,
    }
