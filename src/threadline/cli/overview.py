"""The overview that bare `threadline` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo
from shlex import quote
from typing import Any

import click
from msgspec.structs import asdict

from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli import output as out
from threadline.cli.resolve import open_archive
from threadline.json_values import to_json_value
from threadline.model.text import count, format_size, format_time, join_some
from threadline.model.times import zone_name
from threadline.render import display_width, plain
from threadline.summary import Overview

_MAX_PROJECTS = 10
_MAX_KINDS = 6
_MAX_PROBLEMS = 5
_MAX_PATH = 4096


def print_overview(homes: tuple[str, ...], jobs: int | None, output: str, zone: tzinfo) -> int:
    """Print the overview; return the exit code."""
    with open_archive(homes, jobs) as archive:
        overview = archive.overview()
    if not overview.homes:
        out.report_no_home()
        if output == "json":
            out.print_json(_overview_record(overview))
        return EXIT_NOTHING
    if output == "json":
        out.print_json(_overview_record(overview))
    elif output == "table":
        click.echo(format_overview(overview, homes, zone))
    else:
        out.print_rows((to_json_value(project) for project in overview.projects), output)
    return EXIT_OK if overview.transcripts else EXIT_NOTHING


def _overview_record(overview: Overview) -> dict[str, Any]:
    return {**asdict(overview), "homes": [{"path": home.path, "source": home.source} for home in overview.homes]}


def format_overview(overview: Overview, homes: Sequence[str] = (), zone: tzinfo = UTC) -> str:
    """The lines of the overview. `homes` are those that `--home` named. Days are days in `zone`."""
    sections = [
        "\n".join(_fact_lines(overview, zone)),
        _project_table(overview, zone),
        _largest_transcripts(overview),
        _problem_list(overview, homes),
        _next_commands(overview, homes),
    ]
    return "\n\n".join(section for section in sections if section)


def _fact_lines(overview: Overview, zone: tzinfo) -> Iterator[str]:
    for home in overview.homes:
        if not home.is_kept:
            yield out.wrap_text(str(home.path), f"  {'home':<14}")
    for label, text in _labelled_facts(overview, zone):
        yield out.wrap_text(text, f"  {label:<14}")


def _labelled_facts(overview: Overview, zone: tzinfo) -> Iterator[tuple[str, str]]:
    if not overview.transcripts:
        yield "sessions", "none yet: Claude Code has not written a transcript here"
        return
    kept = f", {overview.kept:,} of them only in the keep" if overview.kept else ""
    rows = f"; `list` has {overview.listed:,}, because some are in several homes or projects"
    more = rows if overview.listed > overview.sessions else ""
    more += f"; {overview.agents_only:,} more with only transcripts of agents" if overview.agents_only else ""
    yield "sessions", f"{overview.sessions:,} in {count(len(overview.projects), 'project')}{kept}{more}"
    transcripts = count(overview.transcripts, "transcript")
    yield "entries", f"{overview.entries:,} in {transcripts}, {format_size(overview.bytes)}"
    if overview.first is not None:
        first, last = (format_time(when, zone, "%Y-%m-%d") for when in (overview.first, overview.last))
        yield "from", f"{first} to {last} ({zone_name(zone)})"
    if overview.versions:
        versions = list(overview.versions)
        span = versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
        yield "versions", f"{span}, {count(len(versions), 'version')} of Claude Code"
    with_transcript = overview.agents - overview.inline_agents
    own = f"{with_transcript:,} with a transcript of their own" if with_transcript else ""
    inline = f"{overview.inline_agents:,} inside main transcripts" if overview.inline_agents else ""
    if own or inline:
        yield "subagents", ", and ".join(part for part in (own, inline) if part)
    if overview.compactions:
        yield "compactions", f"{overview.compactions:,} in {count(overview.compacted_sessions, 'session')}"
    if overview.continuations:
        yield "continuations", f"{overview.continuations:,} (sessions that start with a copy of an earlier one)"
    if overview.side_files:
        kinds = ", ".join(f"{kind} {number:,}" for kind, number in list(overview.side_files.items())[:_MAX_KINDS])
        others = len(overview.side_files) - _MAX_KINDS
        more = f", and {count(others, 'kind')} more" if others > 0 else ""
        yield "side files", f"{sum(overview.side_files.values()):,}: {kinds}{more}"
    if overview.not_entered:
        names = join_some(dict.fromkeys(f"{plain(path.name)}/" for path in overview.not_entered))
        yield "not searched", f"{names}: they contain no sessions"


def _project_table(overview: Overview, zone: tzinfo) -> str:
    if not overview.projects:
        return ""
    shown = overview.projects[:_MAX_PROJECTS]
    partial = f", newest {len(shown)} of {len(overview.projects)}" if len(overview.projects) > len(shown) else ""
    rows = [
        (
            format_time(project.last, zone, "%Y-%m-%d"),
            f"{project.sessions:,}",
            f"{project.agents:,}",
            format_size(project.bytes),
            out.shorten_path(project.project, _MAX_PATH),
        )
        for project in shown
    ]
    headings = ("last used", "sessions", "agents", "size", "project")
    table = out.format_table(headings, rows, right=(1, 2, 3), ends=True)
    return f"{out.format_heading(f'Projects{partial}')}\n{table}"


def _largest_transcripts(overview: Overview) -> str:
    if not overview.largest:
        return ""
    rows = [
        (
            format_size(transcript.bytes),
            f"{transcript.entries:,}",
            out.shorten_path(transcript.path, _MAX_PATH),
        )
        for transcript in overview.largest
    ]
    table = out.format_table(("size", "entries", "transcript"), rows, right=(0, 1), ends=True)
    return f"{out.format_heading('Largest transcripts')}\n{table}"


def _problem_list(overview: Overview, homes: Sequence[str]) -> str:
    if not overview.problems:
        return ""
    options = plain(_home_options(homes))
    shown = "\n".join(f"  {plain(str(problem))}" for problem in overview.problems[:_MAX_PROBLEMS])
    others = len(overview.problems) - _MAX_PROBLEMS
    more = f"\n  and {others:,} more: see threadline doctor{options}" if others > 0 else ""
    return f"{out.format_heading('Problems')}\n{shown}{more}"


def _home_options(homes: Sequence[str]) -> str:
    return "".join(f" --home {quote(home)}" for home in homes)


def _next_commands(overview: Overview, homes: Sequence[str]) -> str:
    """What to try next, for the same homes."""
    if not overview.transcripts:
        return "Next: threadline demo demo-home, which writes an example home"
    names = ("doctor", "list", "show last") if overview.sessions else ("doctor", "usage")
    commands = [f"threadline {command}{_home_options(homes)}" for command in names]
    lines = [f"Next: {commands[0]}"]
    for command in commands[1:]:
        longer = f"{lines[-1]} · {command}"
        lines[-1:] = [longer] if display_width(longer) <= out.terminal_width() else [lines[-1], f"      {command}"]
    return "\n".join(out.wrap_text(line.strip(), "" if line[:1] != " " else "      ", "        ") for line in lines)
