"""The overview as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from threadline.cli import output as out
from threadline.cli.places import short_path
from threadline.model.kept import KEEP
from threadline.survey.overview import Overview

_MOST_PROJECTS = 10
_MOST_KINDS = 6
_MOST_PROBLEMS = 5
_WHOLE = 4096


def page(seen: Overview, named: Sequence[str] = ()) -> str:
    """The whole page; `named` are the homes as they were given with `--home`."""
    sections = ["\n".join(_facts(seen)), _projects(seen), _largest(seen), _problems(seen), _next(seen, named)]
    return "\n\n".join(section for section in sections if section)


def _facts(seen: Overview) -> Iterator[str]:
    for home in seen.homes:
        if home.source != KEEP:
            yield f"  {'home':<14}{out.plain(str(home.path))}"
    for label, text in _labelled(seen):
        yield out.wrapped(text, f"  {label:<14}")


def _labelled(seen: Overview) -> Iterator[tuple[str, str]]:
    if not seen.transcripts:
        yield "sessions", "none yet: Claude Code has written no transcript here"
        return
    kept = f", {seen.kept:,} of them only in the keep" if seen.kept else ""
    yield "sessions", f"{seen.sessions:,} in {out.counted(len(seen.projects), 'project')}{kept}"
    yield "entries", f"{seen.entries:,} in {out.counted(seen.transcripts, 'transcript')}, {out.size(seen.bytes)}"
    if seen.first is not None:
        yield "from", f"{out.day(seen.first)} to {out.day(seen.last)} (UTC)"
    if seen.versions:
        versions = list(seen.versions)
        between = versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
        yield "versions", f"{between}, {out.counted(len(versions), 'version')} of Claude Code"
    own = f"{seen.agents:,} with a transcript of their own" if seen.agents else ""
    inline = f"{seen.inline_agents:,} inside main transcripts" if seen.inline_agents else ""
    if own or inline:
        yield "subagents", ", and ".join(part for part in (own, inline) if part)
    if seen.compactions:
        yield "compactions", f"{seen.compactions:,} in {out.counted(seen.compacted_sessions, 'session')}"
    if seen.continuations:
        yield "continuations", f"{seen.continuations:,} (sessions that begin with a copy of another's beginning)"
    if seen.side_files:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in list(seen.side_files.items())[:_MOST_KINDS])
        others = len(seen.side_files) - _MOST_KINDS
        more = f", and {out.counted(others, 'kind')} more" if others > 0 else ""
        yield "side files", f"{sum(seen.side_files.values()):,}: {kinds}{more}"


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
            short_path(project.project, _WHOLE),
        )
        for project in shown
    ]
    headings = ("last used", "sessions", "agents", "size", "project")
    return f"{out.heading(f'Projects{some}')}\n{out.table(headings, rows, right=(1, 2, 3), ends=True)}"


def _largest(seen: Overview) -> str:
    if not seen.largest:
        return ""
    rows = [(out.size(one.bytes), f"{one.entries:,}", short_path(one.path, _WHOLE)) for one in seen.largest]
    shown = out.table(("size", "entries", "transcript"), rows, right=(0, 1), ends=True)
    return f"{out.heading('Largest transcripts')}\n{shown}"


def _problems(seen: Overview) -> str:
    if not seen.problems:
        return ""
    shown = "\n".join(f"  {out.plain(str(problem))}" for problem in seen.problems[:_MOST_PROBLEMS])
    others = len(seen.problems) - _MOST_PROBLEMS
    more = f"\n  and {others:,} more: see threadline doctor" if others > 0 else ""
    return f"{out.heading('Problems')}\n{shown}{more}"


def _next(seen: Overview, named: Sequence[str]) -> str:
    """What to type next, for the same homes."""
    if not seen.transcripts:
        return "Next: threadline demo demo-home, a made-up home to look at"
    homes = "".join(f" --home {quote(home)}" for home in named)
    commands = [f"threadline {command}{homes}" for command in ("doctor", "list", "show last")]
    lines = [f"Next: {commands[0]}"]
    for command in commands[1:]:
        longer = f"{lines[-1]} · {command}"
        lines[-1:] = [longer] if out.columns(longer) <= out.terminal_width() else [lines[-1], f"      {command}"]
    return "\n".join(map(out.plain, lines))
