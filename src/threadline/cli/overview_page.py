"""The overview as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator
from os.path import expanduser
from pathlib import Path

from threadline.cli import output as out
from threadline.survey import Overview

_MOST_PROJECTS = 10
_LEAST_PATH = 30


def page(seen: Overview) -> str:
    """The whole page."""
    sections = ["\n".join(_facts(seen)), _projects(seen), _largest(seen), _problems(seen), _next()]
    return "\n\n".join(section for section in sections if section)


def _facts(seen: Overview) -> Iterator[str]:
    for label, text in _labelled(seen):
        yield f"  {label:<14}{out.plain(text)}"


def _labelled(seen: Overview) -> Iterator[tuple[str, str]]:
    for home in seen.homes:
        yield "home", f"{home.path}"
    if not seen.transcripts:
        yield "sessions", "none yet: Claude Code has written no transcript here"
        return
    yield "sessions", f"{seen.sessions:,} in {_count(len(seen.projects), 'project')}"
    yield "entries", f"{seen.entries:,} in {_count(seen.transcripts, 'transcript')}, {out.size(seen.bytes)}"
    if seen.first is not None:
        yield "from", f"{out.day(seen.first)} to {out.day(seen.last)} (UTC)"
    if seen.versions:
        versions = list(seen.versions)
        yield "versions", f"{versions[0]} to {versions[-1]}, {_count(len(versions), 'version')} of Claude Code"
    inline = f", and {seen.inline_agents:,} inside main transcripts" if seen.inline_agents else ""
    yield "subagents", f"{seen.agents:,} with a transcript of their own{inline}"
    sessions = f" in {_count(seen.compacted_sessions, 'session')}" if seen.compactions else ""
    yield "compactions", f"{seen.compactions:,}{sessions}"
    yield "continuations", f"{seen.continuations:,} (sessions that begin with a copy of another's beginning)"
    if seen.side_files:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in list(seen.side_files.items())[:6])
        more = f", and {len(seen.side_files) - 6} kinds more" if len(seen.side_files) > 6 else ""  # noqa: PLR2004 - as above
        yield "side files", f"{sum(seen.side_files.values()):,}: {kinds}{more}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _projects(seen: Overview) -> str:
    if not seen.projects:
        return ""
    shown = seen.projects[:_MOST_PROJECTS]
    some = f", newest {len(shown)} of {len(seen.projects)}" if len(seen.projects) > len(shown) else ""
    rows = [
        (
            out.day(project.last),
            f"{project.sessions:,}",
            f"{project.agents:,}",
            out.size(project.bytes),
            _path(project.project, 56),
        )
        for project in shown
    ]
    headings = ("last used", "sessions", "agents", "size", "project")
    return f"Projects{some}\n{out.table(headings, rows, right=(1, 2, 3))}"


def _largest(seen: Overview) -> str:
    if not seen.largest:
        return ""
    taken = 2 + len("1,000.0 MB") + 2 + len("1,000,000") + 2
    room = max(_LEAST_PATH, out.terminal_width() - taken)
    rows = [(out.size(one.bytes), f"{one.entries:,}", _path(one.path, room)) for one in seen.largest]
    return f"Largest transcripts\n{out.table(('size', 'entries', 'transcript'), rows, right=(0, 1))}"


def _path(path: str | Path, width: int) -> str:
    text = str(path)
    home = expanduser("~")  # noqa: PTH111 - Path.home raises where there is none
    if text.startswith(home + "/"):
        text = "~" + text[len(home) :]
    return out.clip_left(out.plain(text), width)


def _problems(seen: Overview) -> str:
    if not seen.problems:
        return ""
    shown = "\n".join(f"  {out.plain(str(problem))}" for problem in seen.problems[:5])
    more = f"\n  and {len(seen.problems) - 5} more" if len(seen.problems) > 5 else ""  # noqa: PLR2004 - as above
    return f"Problems\n{shown}{more}"


def _next() -> str:
    return "Next: threadline doctor · threadline entries PATH · threadline --help"
