"""The sessions of the relevance benchmark: short scripts that are converted to transcripts.

A script has a heading, and lines that begin with their kind. Successive lines of a kind belong together:

    ### name | time | project | branch | resumes other      the last part only for a copy; `forks` has new ids
    = title     > prompt    < reply     ~ thinking
    $ command   | output    ! output of a failure
    @ Tool input            + the text that it writes       followed by its output
    :mark                                                   names the next entry
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.transcripts import Part, Pen, Row, call, meta, prompt, reply, transcript, write

SCRIPTS = Path(__file__).parent / "relevance"
_HEAD = "### "
_OUTPUT = {"|", "!"}


class Script(NamedTuple):
    """A script. `lines` are pairs of kind and text."""

    name: str
    start: datetime
    project: str
    branch: str
    copy_of: str
    lines: list[tuple[str, str]]

    @property
    def session(self) -> str:
        """The session id: it looks random, and is the same in each run."""
        digest = hashlib.sha256(self.name.encode()).hexdigest()
        return f"{digest[:8]}-{digest[8:12]}-4{digest[12:15]}-8{digest[15:18]}-{digest[18:30]}"


def scripts() -> dict[str, Script]:
    """Return all scripts, by name."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(SCRIPTS.glob("*.txt")))
    all_scripts = [_parse_script(part) for text in texts for part in text.split(f"\n{_HEAD}")]
    by_name = {script.name: script for script in all_scripts}
    if len(by_name) < len(all_scripts):
        sys.exit("Two sessions of the relevance benchmark have the same name.")
    return by_name


def _parse_script(text: str) -> Script:
    head, *rest = text.removeprefix(_HEAD).rstrip().split("\n")
    name, start, project, branch, *copy_of = (part.strip() for part in head.split("|"))
    when = datetime.strptime(start, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
    lines = [(line[0], line[1:] if line[0] == ":" else line[2:]) for line in rest if line]
    return Script(name, when, project, branch, "".join(copy_of), lines)


def write_sessions(home: Path) -> dict[str, int]:
    """Write all transcripts into a home. Return the line numbers of marked entries, by `name:mark`."""
    rows: dict[str, list[Row]] = {}
    marks: dict[str, int] = {}
    for script in scripts().values():
        how, _, other = script.copy_of.partition(" ")
        before = list(_copy_rows(rows[other], script, new_ids=how == "forks")) if other else []
        rows[script.name] = [*before, *_rows(script, before, marks)]
        folder = re.sub("[^A-Za-z0-9]", "-", script.project)
        write(home / "projects" / folder / f"{script.session}.jsonl", *rows[script.name])
    return marks


def _rows(script: Script, before: list[Row], marks: dict[str, int]) -> Iterator[Row]:
    pen = Pen(script.session, start=script.start, cwd=script.project, gitBranch=script.branch)
    if before:
        pen.parent = before[-1].get("uuid")
    line = len(before) + 1
    titles, last_prompt = [text for kind, text in script.lines if kind == "="], ""
    for kind, text, part in _parts(script):
        if kind == ":":
            marks[f"{script.name}:{text}"] = line
            continue
        last_prompt = text if kind == ">" else last_prompt
        for row in transcript(part, pen=pen):
            line += 1
            yield row if isinstance(row, dict) else {}
    closing = [meta("last-prompt", lastPrompt=last_prompt), *(meta("ai-title", aiTitle=title) for title in titles)]
    yield from (row for row in transcript(*closing, pen=pen) if isinstance(row, dict))


def _parts(script: Script) -> Iterator[tuple[str, str, Part]]:
    """Yield kind, text and part of each step of the session."""
    groups = groupby(script.lines, lambda line: line[0])
    steps = [(kind, "\n".join(text for _, text in lines)) for kind, lines in groups]
    at = 0
    while at < len(steps):
        kind, text = steps[at]
        at += 1
        if kind == "=":
            continue
        content = ""
        if kind == "@" and at < len(steps) and steps[at][0] == "+":
            content, at = steps[at][1], at + 1
        result, failed = None, False
        if kind in "$@" and at < len(steps) and steps[at][0] in _OUTPUT:
            result, failed, at = steps[at][1], steps[at][0] == "!", at + 1
        yield kind, text, _part(kind, text, content, result, failed=failed)


def _part(kind: str, text: str, content: str, result: str | None, *, failed: bool) -> Part:
    if kind == ">":
        return prompt(text)
    if kind == "<":
        return reply(text)
    if kind == "~":
        return reply({"type": "thinking", "thinking": text, "signature": "c2lnbmF0dXJl"})
    if kind == "$":
        return call("Bash", text, result=result or "", error=failed)
    if kind == "@":
        tool, _, name = text.partition(" ")
        return call(tool, _input(tool, name, content), result=result or f"The file {name} has been updated.")
    if kind == ":":
        return {}
    raise ValueError(f"Unknown kind of line: {kind} {text}")


def _input(tool: str, name: str, text: str) -> Any:
    if tool == "Edit":
        return {"file_path": name, "old_string": "", "new_string": text}
    return {"file_path": name, "content": text} if tool == "Write" else name


def _copy_rows(rows: list[Row], script: Script, *, new_ids: bool) -> Iterator[Row]:
    """Yield the rows that a session repeats when it continues in another file."""
    for row in rows:
        if "uuid" not in row:
            continue
        ids = {key: f"{row[key][:24]}{script.session[-12:]}" for key in ("uuid", "parentUuid") if row[key] and new_ids}
        yield {**row, "sessionId": script.session, **ids}
