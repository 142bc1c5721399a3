"""The transcripts that the relevance queries are judged on, written as short scripts.

A script is a line with its name, then lines that each begin with a mark:

    ### name | time | project | branch | resumes other      the last part only in a copy; `forks` has new ids
    = title     > prompt    < reply     ~ thought           consecutive lines with the same mark are one text
    $ command   | output    ! output of a failure
    @ Tool path             + text that it writes           followed by its output
    :mark                                                   a name for the next entry
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.transcripts import Part, Pen, Row, call, meta, prompt, reply, transcript, write

SCRIPTS = Path(__file__).parent / "relevance"
_HEAD = "### "
_OUTPUT_MARKS = {"|", "!"}


class Script(NamedTuple):
    """The script of a session; `lines` are pairs of the mark and the text of a line."""

    name: str
    start: datetime
    project: str
    branch: str
    copied: str
    lines: list[tuple[str, str]]

    @property
    def session(self) -> str:
        """Its id, derived from its name."""
        digest = hashlib.sha256(self.name.encode()).hexdigest()
        return f"{digest[:8]}-{digest[8:12]}-4{digest[12:15]}-8{digest[15:18]}-{digest[18:30]}"


def scripts() -> dict[str, Script]:
    """All scripts by name."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(SCRIPTS.glob("*.txt")))
    parsed = [_script(part) for text in texts for part in text.split(f"\n{_HEAD}")]
    by_name = {script.name: script for script in parsed}
    if len(by_name) < len(parsed):
        sys.exit("Two sessions of the relevance set have the same name.")
    return by_name


def _script(text: str) -> Script:
    head, *rest = text.removeprefix(_HEAD).rstrip().split("\n")
    name, start, project, branch, *copied = (part.strip() for part in head.split("|"))
    when = datetime.strptime(start, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
    lines = [(line[0], line[1:] if line[0] == ":" else line[2:]) for line in rest if line]
    return Script(name, when, project, branch, "".join(copied), lines)


def write_scripts(home: Path) -> dict[str, int]:
    """Write all transcripts to a home; returns the lines of the entries that have a mark, by `name:mark`."""
    rows: dict[str, list[Row]] = {}
    marks: dict[str, int] = {}
    for script in scripts().values():
        how, _, other = script.copied.partition(" ")
        before = list(_copied(rows[other], script, new_ids=how == "forks")) if other else []
        rows[script.name] = [*before, *_rows(script, before, marks)]
        folder = re.sub("[^A-Za-z0-9]", "-", script.project)
        write(home / "projects" / folder / f"{script.session}.jsonl", *rows[script.name])
    return marks


def _rows(script: Script, before: list[Row], marks: dict[str, int]) -> Iterator[Row]:
    pen = Pen(script.session, start=script.start, cwd=script.project, gitBranch=script.branch)
    if before:
        pen.parent = before[-1].get("uuid")
    line = len(before) + 1
    titles, said = [text for what, text in script.lines if what == "="], ""
    for what, text, part in _parts(script):
        if what == ":":
            marks[f"{script.name}:{text}"] = line
            continue
        said = text if what == ">" else said
        for row in transcript(part, pen=pen):
            line += 1
            yield row if isinstance(row, dict) else {}
    ends = [meta("last-prompt", lastPrompt=said), *(meta("ai-title", aiTitle=title) for title in titles)]
    yield from (row for row in transcript(*ends, pen=pen) if isinstance(row, dict))


def _parts(script: Script) -> Iterator[tuple[str, str, Part]]:
    """The parts of a session in order, each with its mark and text."""
    runs = [(what, "\n".join(text for _, text in lines)) for what, lines in groupby(script.lines, itemgetter(0))]
    at = 0
    while at < len(runs):
        what, text = runs[at]
        at += 1
        if what == "=":
            continue
        written = ""
        if what == "@" and at < len(runs) and runs[at][0] == "+":
            written, at = runs[at][1], at + 1
        result, failed = None, False
        if what in "$@" and at < len(runs) and runs[at][0] in _OUTPUT_MARKS:
            result, failed, at = runs[at][1], runs[at][0] == "!", at + 1
        yield what, text, _part(what, text, written, result, failed=failed)


def _part(what: str, text: str, written: str, result: str | None, *, failed: bool) -> Part:
    if what == ">":
        return prompt(text)
    if what == "<":
        return reply(text)
    if what == "~":
        return reply({"type": "thinking", "thinking": text, "signature": "c2lnbmF0dXJl"})
    if what == "$":
        return call("Bash", text, result=result or "", error=failed)
    if what == "@":
        tool, _, name = text.partition(" ")
        return call(tool, _tool_input(tool, name, written), result=result or f"The file {name} has been updated.")
    if what == ":":
        return {}
    raise ValueError(f"{what} {text}: no part of a session begins with {what!r}.")


def _tool_input(tool: str, name: str, text: str) -> Any:
    if tool == "Edit":
        return {"file_path": name, "old_string": "", "new_string": text}
    return {"file_path": name, "content": text} if tool == "Write" else name


def _copied(rows: list[Row], script: Script, *, new_ids: bool) -> Iterator[Row]:
    """The rows of another session that this session repeats."""
    for row in rows:
        if "uuid" not in row:
            continue
        ids = {key: f"{row[key][:24]}{script.session[-12:]}" for key in ("uuid", "parentUuid") if row[key] and new_ids}
        yield {**row, "sessionId": script.session, **ids}
