"""Sessions about files: rows as the tools write them, patches as Claude Code makes them, and a file system to match."""

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
    """The session that a transcript's parts make, with agents below it."""
    with TemporaryDirectory() as folder:
        main = Path(folder) / f"{SESSION}.jsonl"
        main.write_bytes(b"".join(map(_line, transcript(prompt("go"), *parts))))
        for name, said in (agents or {}).items():
            path = main.with_suffix("") / "subagents" / f"agent-{name}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(lines(*transcript(*said, pen=_agent_pen(name))))
        return read(main, continued=False)


def _agent_pen(name: str) -> Pen:
    """An agent's own ids, in the main session, some seconds later."""
    session = f"{SESSION[:-1]}2"
    return Pen(session, START + timedelta(seconds=8), sessionId=SESSION, agentId=name, isSidechain=True)


def _line(row: Row | bytes) -> bytes:
    """A row in ASCII, so that half a surrogate pair can be written."""
    return row if isinstance(row, bytes) else json.dumps(row, separators=(",", ":")).encode() + b"\n"


def line_of(session: Session, number: int) -> Place:
    """A line of the main transcript."""
    return Place(str(session.path), number)


def whole_lines(text: str) -> list[str]:
    """A text's lines as a patch counts them: a newline ends a line and starts none."""
    found = text.split("\n")
    return found[:-1] if found[-1] == "" else [*found[:-1], found[-1] + NO_NEWLINE]


def hunks(old: str, new: str) -> list[Row]:
    """The patch between two texts, three lines of context, leading tabs shown as two spaces: as Claude Code has it."""
    before, after = whole_lines(old), whole_lines(new)
    found: list[Row] = []
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(3):
        said: list[str] = []
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                said += _signed(" ", before[i1:i2])
            else:
                said += _signed("-", before[i1:i2]) + _signed("+", after[j1:j2])
        first, last = group[0], group[-1]
        found.append(
            {
                "oldStart": first[1] + 1,
                "oldLines": last[2] - first[1],
                "newStart": first[3] + 1,
                "newLines": last[4] - first[3],
                "lines": said,
            }
        )
    return found


def _signed(sign: str, texts: list[str]) -> list[str]:
    said: list[str] = []
    for text in texts:
        bare = text.removesuffix(NO_NEWLINE)
        said.append(sign + tabs_as_spaces(bare))
        said += [NO_NEWLINE] if bare != text else []
    return said


def wrote(path: str, content: str, original: str | None = None, **fields: Any) -> Part:
    """A file was written."""
    own = {
        "type": "create" if original is None else "update",
        "filePath": path,
        "content": content,
        "structuredPatch": [] if original is None else hunks(original, content),
        "originalFile": original,
        **fields,
    }
    return call("Write", {"file_path": path, "content": content}, "written", details=own)


def edited(
    path: str, before: str, old: str, new: str, *, told: bool = True, every: bool = False, **fields: Any
) -> Part:
    """Something in a file was replaced; `told`: the result has the text from before."""
    after = before.replace(old, new) if every else before.replace(old, new, 1)
    own = {
        "filePath": path,
        "oldString": old,
        "newString": new,
        "originalFile": before if told else None,
        "structuredPatch": hunks(before, after),
        "userModified": False,
        "replaceAll": every,
        **fields,
    }
    given = {"file_path": path, "old_string": old, "new_string": new, "replace_all": every}
    return call("Edit", given, "edited", details=own)


def read_text(path: str, text: str, start: int = 1, count: int | None = None) -> Part:
    """Lines of a file were read: all of them, or `count` from `start`."""
    every = text.split("\n")
    seen = every[start - 1 :] if count is None else every[start - 1 : start - 1 + count]
    file = {
        "filePath": path,
        "content": "\n".join(seen),
        "numLines": len(seen),
        "startLine": start,
        "totalLines": len(every),
    }
    shown = "\n".join(f"{number}\t{line}" for number, line in enumerate(seen, start))
    return call("Read", {"file_path": path}, shown, details={"type": "text", "file": file})
