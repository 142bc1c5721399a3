"""Format the overview that bare `threadline` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from threadline.cli import output as out
from threadline.cli.output import shorten_path
from threadline.model.homes import KEEP_SOURCE
from threadline.summary import Overview

_MAX_PROJECTS = 10
_MAX_KINDS = 6
_MAX_PROBLEMS = 5
_MAX_PATH = 4096


def format_overview(seen: Overview, named: Sequence[str] = ()) -> str:
    """The whole page; `named` are the homes as they were given with `--home`."""
    sections = [
        "\n".join(_fact_lines(seen)),
        _project_table(seen),
        _largest_transcripts(seen),
        _problem_list(seen),
        _next_commands(seen, named),
    ]
    return "\n\n".join(section for section in sections if section)


def _fact_lines(seen: Overview) -> Iterator[str]:
    for home in seen.homes:
        if home.source != KEEP_SOURCE:
            yield f"  {'home':<14}{out.plain(str(home.path))}"
    for label, text in _labelled_facts(seen):
        yield out.wrap_text(text, f"  {label:<14}")


def _labelled_facts(seen: Overview) -> Iterator[tuple[str, str]]:
    if not seen.transcripts:
        yield "sessions", "none yet: Claude Code has written no transcript here"
        return
    kept = f", {seen.kept:,} of them only in the keep" if seen.kept else ""
    yield "sessions", f"{seen.sessions:,} in {out.counted(len(seen.projects), 'project')}{kept}"
    yield "entries", f"{seen.entries:,} in {out.counted(seen.transcripts, 'transcript')}, {out.format_size(seen.bytes)}"
    if seen.first is not None:
        yield "from", f"{out.format_day(seen.first)} to {out.format_day(seen.last)} (UTC)"
    if seen.versions:
        versions = list(seen.versions)
        between = versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
        yield "versions", f"{between}, {out.counted(len(versions), 'version')} of Claude Code"
    with_transcript = seen.agents - seen.inline_agents
    own = f"{with_transcript:,} with a transcript of their own" if with_transcript else ""
    inline = f"{seen.inline_agents:,} inside main transcripts" if seen.inline_agents else ""
    if own or inline:
        yield "subagents", ", and ".join(part for part in (own, inline) if part)
    if seen.compactions:
        yield "compactions", f"{seen.compactions:,} in {out.counted(seen.compacted_sessions, 'session')}"
    if seen.continuations:
        yield "continuations", f"{seen.continuations:,} (sessions that begin with a copy of another's beginning)"
    if seen.side_files:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in list(seen.side_files.items())[:_MAX_KINDS])
        others = len(seen.side_files) - _MAX_KINDS
        more = f", and {out.counted(others, 'kind')} more" if others > 0 else ""
        yield "side files", f"{sum(seen.side_files.values()):,}: {kinds}{more}"


def _project_table(seen: Overview) -> str:
    if not seen.projects:
        return ""
    shown = seen.projects[:_MAX_PROJECTS]
    some = f", newest {len(shown)} of {len(seen.projects)}" if len(seen.projects) > len(shown) else ""
    rows = [
        (
            out.format_day(project.last),
            f"{project.sessions:,}",
            f"{project.agents:,}",
            out.format_size(project.bytes),
            shorten_path(project.project, _MAX_PATH),
        )
        for project in shown
    ]
    headings = ("last used", "sessions", "agents", "size", "project")
    return f"{out.format_heading(f'Projects{some}')}\n{out.format_table(headings, rows, right=(1, 2, 3), ends=True)}"


def _largest_transcripts(seen: Overview) -> str:
    if not seen.largest:
        return ""
    rows = [(out.format_size(one.bytes), f"{one.entries:,}", shorten_path(one.path, _MAX_PATH)) for one in seen.largest]
    shown = out.format_table(("size", "entries", "transcript"), rows, right=(0, 1), ends=True)
    return f"{out.format_heading('Largest transcripts')}\n{shown}"


def _problem_list(seen: Overview) -> str:
    if not seen.problems:
        return ""
    shown = "\n".join(f"  {out.plain(str(problem))}" for problem in seen.problems[:_MAX_PROBLEMS])
    others = len(seen.problems) - _MAX_PROBLEMS
    more = f"\n  and {others:,} more: see threadline doctor" if others > 0 else ""
    return f"{out.format_heading('Problems')}\n{shown}{more}"


def _next_commands(seen: Overview, named: Sequence[str]) -> str:
    """What to type next, for the same homes."""
    if not seen.transcripts:
        return "Next: threadline demo demo-home, a made-up home to look at"
    homes = "".join(f" --home {quote(home)}" for home in named)
    commands = [f"threadline {command}{homes}" for command in ("doctor", "list", "show last")]
    lines = [f"Next: {commands[0]}"]
    for command in commands[1:]:
        longer = f"{lines[-1]} · {command}"
        lines[-1:] = [longer] if out.display_width(longer) <= out.terminal_width() else [lines[-1], f"      {command}"]
    return "\n".join(map(out.plain, lines))
