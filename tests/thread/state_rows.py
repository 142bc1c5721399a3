"""Sessions about files: rows as the tools write them, and patches as Claude Code computes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from difflib import SequenceMatcher
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.transcripts import SESSION, START, Part, Pen, Row, call, lines, prompt, transcript

from threadline.load import read
from threadline.model.places import Place
from threadline.model.session import Session
from threadline.thread.state.patch import tabs_as_spaces

NO_NEWLINE = "\\ No newline at end of file"


def session_of(*parts: Part, agents: dict[str, Sequence[Part]] | None = None) -> Session:
    """Return the session of a transcript's parts, with agents."""
    with TemporaryDirectory() as folder:
        main = Path(folder) / f"{SESSION}.jsonl"
        main.write_bytes(b"".join(map(_line, transcript(prompt("go"), *parts))))
        for name, agent_parts in (agents or {}).items():
            path = main.with_suffix("") / "subagents" / f"agent-{name}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(lines(*transcript(*agent_parts, pen=_agent_pen(name))))
        return read(main, continued=False)


def _agent_pen(name: str) -> Pen:
    """Return a pen with an agent's own ids, in the main session, some seconds later."""
    session = f"{SESSION[:-1]}2"
    return Pen(session, START + timedelta(seconds=8), sessionId=SESSION, agentId=name, isSidechain=True)


def _line(row: Row | bytes) -> bytes:
    """Encode a row in ASCII, so that a lone surrogate can be written."""
    return row if isinstance(row, bytes) else json.dumps(row, separators=(",", ":")).encode() + b"\n"


def place_at_line(session: Session, number: int) -> Place:
    """Return the place of a line of the main transcript."""
    return Place(str(session.path), number)


def patch_lines(text: str) -> list[str]:
    """Return a text's lines as a patch counts them: a newline ends a line and starts none."""
    text_lines = text.split("\n")
    return text_lines[:-1] if text_lines[-1] == "" else [*text_lines[:-1], text_lines[-1] + NO_NEWLINE]


def hunks(old: str, new: str) -> list[Row]:
    """Return the patch between two texts as Claude Code writes it.

    It has three lines of context, and leading tabs are shown as two spaces.
    """
    before, after = patch_lines(old), patch_lines(new)
    result: list[Row] = []
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(3):
        hunk_lines: list[str] = []
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                hunk_lines += _signed(" ", before[i1:i2])
            else:
                hunk_lines += _signed("-", before[i1:i2]) + _signed("+", after[j1:j2])
        first, last = group[0], group[-1]
        result.append(
            {
                "oldStart": first[1] + 1,
                "oldLines": last[2] - first[1],
                "newStart": first[3] + 1,
                "newLines": last[4] - first[3],
                "lines": hunk_lines,
            }
        )
    return result


def _signed(sign: str, texts: list[str]) -> list[str]:
    signed: list[str] = []
    for text in texts:
        bare = text.removesuffix(NO_NEWLINE)
        signed.append(sign + tabs_as_spaces(bare))
        signed += [NO_NEWLINE] if bare != text else []
    return signed


def write_call(path: str, content: str, original: str | None = None, **fields: Any) -> Part:
    """Write a call that creates or overwrites a file."""
    details = {
        "type": "create" if original is None else "update",
        "filePath": path,
        "content": content,
        "structuredPatch": [] if original is None else hunks(original, content),
        "originalFile": original,
        **fields,
    }
    return call("Write", {"file_path": path, "content": content}, "written", details=details)


def edit_call(
    path: str, before: str, old: str, new: str, *, has_original: bool = True, every: bool = False, **fields: Any
) -> Part:
    """Write a call that replaces something in a file. With `has_original`, the result has the previous text."""
    after = before.replace(old, new) if every else before.replace(old, new, 1)
    details = {
        "filePath": path,
        "oldString": old,
        "newString": new,
        "originalFile": before if has_original else None,
        "structuredPatch": hunks(before, after),
        "userModified": False,
        "replaceAll": every,
        **fields,
    }
    tool_input = {"file_path": path, "old_string": old, "new_string": new, "replace_all": every}
    return call("Edit", tool_input, "edited", details=details)


def read_call(path: str, text: str, start: int = 1, count: int | None = None) -> Part:
    """Write a call that reads lines of a file: all of them, or `count` from `start`."""
    all_lines = text.split("\n")
    shown_lines = all_lines[start - 1 :] if count is None else all_lines[start - 1 : start - 1 + count]
    file = {
        "filePath": path,
        "content": "\n".join(shown_lines),
        "numLines": len(shown_lines),
        "startLine": start,
        "totalLines": len(all_lines),
    }
    numbered = "\n".join(f"{number}\t{line}" for number, line in enumerate(shown_lines, start))
    return call("Read", {"file_path": path}, numbered, details={"type": "text", "file": file})
